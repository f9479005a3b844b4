#pragma once
// Code in the model language that a plug-in states for one of its parts: the body of an operation,
// the update of an optimizer. It runs under the active interpreter.

#include <map>
#include <string>
#include <vector>

#include "base/kind_options.h"
#include "config/schema.h"
#include "lang/eval/values.h"
#include "lang/syntax/program.h"

namespace paddle::plugin {

struct TextCode {
  std::string owner;  ///< for messages: "acme.signum"
  std::string file;   ///< that states it
  lang::Code code;
};

/// Reads the code of a node. kConfig with the place of a syntax error, and for calls of random
/// operations: the same values must give the same result.
TextCode read_text_code(const config::Node& node, std::string owner, std::string file);

/// A node with code, and the names that are known in it.
struct StatedCode {
  config::Node node;
  std::vector<std::string> names;
};
/// kConfig with its place for each name in the codes that is neither known there nor an operation,
/// of the engine, a loaded plug-in or among these.
void check_code_names(const std::vector<StatedCode>& codes,
                      const std::vector<std::string>& own_operations);

/// The value of the code, in which `names` are known. Errors name the owner; the place in the code
/// is a note. `assigned`, if given, gets the names that it assigned.
lang::Value run_text(const TextCode& code, const lang::NamedValues& names,
                     std::map<std::string, lang::Value>* assigned = nullptr);
/// The same of code that has several owners.
lang::Value run_text(std::string_view owner, const std::string& file, const lang::Code& code,
                     const lang::NamedValues& names,
                     std::map<std::string, lang::Value>* assigned = nullptr);

/// The tensor of a value: kUsage names the owner for another value. A number is not a tensor.
Tensor tensor_result(std::string_view owner, const lang::Value& value);
/// The same, where a number is a 0-D float64 tensor.
Tensor tensor_or_number(std::string_view owner, const lang::Value& value);

/// The values of declared keys in a config section, which fits their schema.
lang::NamedValues values_of_keys(const std::vector<KindKey>& keys, const config::Section& section);

}  // namespace paddle::plugin
