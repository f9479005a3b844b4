#pragma once
// The table of program operations (table.rules): which operation of the engine each name of
// PaddlePaddle's programs is, and which of its parameters each operand and attribute becomes. What
// a rule does not list is not passed over: the importer rejects it unless it has no effect.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/paddle_program.h"

namespace paddle::paddle_program {

/// One argument of a rule.
struct ProgramArgument {
  std::string name;  ///< the parameter, or what the rule's function calls it; "" for none
  bool is_operand = false, is_list = false, is_optional = false;
  bool in_pir = true;              ///< false: only programs in protobuf have this operand
  std::vector<std::string> slots;  ///< in protobuf; an operand of PIR only has none
  std::vector<std::string> attributes;
  std::optional<formats::PaddleAttribute> value;  ///< the default, or the only value allowed
  bool is_fixed = false;                          ///< the attribute must have `value`
  bool is_ignored = false;                        ///< the attribute has no effect on results
};

struct ProgramResult {
  std::vector<std::string> slots;  ///< names in protobuf
  bool is_list = false;
};

struct ProgramRule {
  enum class Form : uint8_t { kBoth, kPir, kProtobuf };

  std::vector<std::string> names;
  Form form = Form::kBoth;
  std::string target;        ///< an operation of the engine, or a function of program_functions()
  bool is_function = false;  ///< written `@NAME` in the table
  std::vector<ProgramArgument> arguments;
  std::vector<ProgramResult> results;
  int line = 0;

  /// -1 if there is none.
  int argument_index(std::string_view name) const;
};

/// All rules, in the order of the table.
const std::vector<ProgramRule>& program_rules();
/// Parses a table; kInternal with the line if it is malformed.
std::vector<ProgramRule> parse_program_rules(std::string_view text);
/// The index of the rule for an operation of a program; nullopt if there is none.
std::optional<size_t> find_program_rule(const std::string& type, bool is_pir);

}  // namespace paddle::paddle_program
