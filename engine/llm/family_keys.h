#pragma once
// The keys of a model's files as the expressions of its family read them, with errors that name
// them: what is wrong in a file of a user is not said at a line of the family.

#include <set>
#include <string>
#include <vector>

#include "config/document.h"
#include "llm/model_files.h"

namespace paddle::llm {

class FamilyKeys {
 public:
  /// `is_given`: the user has named the family's file, so that its expressions may be wrong.
  FamilyKeys(const ModelFiles& files, bool is_given);

  /// The value of an expression as JSON. kModel, with the keys that it names, if it has none;
  /// kConfig at its place in a family that the user has named.
  std::string read(const config::Node& expression);
  /// The same for a param of the family, whose own value says what it may be: a text, a list, a
  /// finite number, and for sizes (`width`, `layers`, `heads`, …) an integer that is not negative,
  /// nor 0 unless the family's own value is.
  std::string read_param(const std::string& name, const config::Node& expression,
                         const config::Node* own);
  /// kModel, with the keys of these expressions.
  [[noreturn]] void reject(const std::vector<const config::Node*>& expressions,
                           const std::string& problem) const;
  /// The same for a condition that does not hold.
  [[noreturn]] void reject_where(const config::Node& condition) const;
  /// kModel for a key that no expression has named, nor `ignored`, and for such keys of its value.
  /// Keys that begin with an underscore are those of tools, and never change a model.
  void check_all_read(const std::set<std::string>& ignored) const;

 private:
  std::vector<std::string> describe(const config::Node& expression, bool with_missing) const;
  void check_known(const std::string& key, const std::string& path,
                   const jinja::Value* value) const;

  const ModelFiles& files_;
  bool is_given_;
  jinja::Value variables_;
  std::set<std::string> known_;
};

}  // namespace paddle::llm
