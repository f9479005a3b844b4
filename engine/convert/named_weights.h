#pragma once
// The tensors of a weights file of any format that paddle-convert reads, under the names and with
// the axes that rules give them. For training that begins with weights from elsewhere.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/packed_weights.h"
#include "convert/rules.h"
#include "convert/source.h"

namespace paddle::convert {

class NamedWeights {
 public:
  /// `rules` is a YAML file, or "". kUsage or kModel for the file, kConfig for rules that do not
  /// fit it, two tensors with one name among them.
  NamedWeights(const std::string& path, const std::string& rules);

  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return tensors_.contains(name); }
  DType dtype(const std::string& name) const;
  Dims shape(const std::string& name) const;
  Array read(const std::string& name) const;
  /// An array of the stored shape of this tensor, such as a state of an optimizer, with the axes
  /// that the rules give the tensor.
  Array arranged(const std::string& name, const Array& stored) const;
  /// A matrix [rows, features] by its rows as the file has them, or [features, rows] with
  /// `is_transposed`. Blocks and 16-bit floats stay what they are with kAsIs.
  PackedWeight read_packed(const std::string& name, WeightType type) const;
  /// The form of what it gives.
  PackedForm packed_form(const std::string& name, WeightType type) const;
  /// The name in the file.
  const std::string& stored_name(const std::string& name) const;
  bool is_transposed(const std::string& name) const { return !tensors_.at(name).perm.empty(); }
  /// Contents of the file that are left out: one line each.
  const std::vector<std::string>& notes() const { return source_->notes(); }
  /// Rules that matched nothing: one line each.
  const std::vector<std::string>& idle_rules() const { return idle_rules_; }

 private:
  struct Entry {
    size_t source = 0;
    std::vector<int64_t> perm;  ///< empty: as stored
  };
  std::unique_ptr<Source> source_;
  std::map<std::string, Entry> tensors_;
  std::vector<std::string> idle_rules_;
};

}  // namespace paddle::convert
