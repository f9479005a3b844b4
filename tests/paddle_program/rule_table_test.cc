// The table of program operations against the schemas of the engine's operations.
#include <set>

#include <gtest/gtest.h>

#include "ops/core/op.h"
#include "paddle_program/program_call.h"
#include "paddle_program/rule_table.h"

namespace paddle::paddle_program {
namespace {

std::string title(const ProgramRule& rule) {
  return "table.rules:" + std::to_string(rule.line) + ": " + rule.names[0];
}

TEST(ProgramRules, NameOperationsAndFunctionsThatExist) {
  for (const ProgramRule& rule : program_rules()) {
    if (rule.is_function)
      EXPECT_NE(find_program_function(rule.target), nullptr) << title(rule);
    else
      EXPECT_NE(find_op(rule.target), nullptr) << title(rule);
  }
}

TEST(ProgramRules, NameParametersOfTheOperationThatFitTheirKind) {
  for (const ProgramRule& rule : program_rules()) {
    const Op* op = rule.is_function ? nullptr : find_op(rule.target);
    if (!op) continue;
    for (const ProgramArgument& argument : rule.arguments) {
      if (argument.name.empty() || argument.name[0] == '@') continue;
      const int operand = op->operand_index(argument.name), attr = op->attr_index(argument.name);
      ASSERT_TRUE(operand >= 0 || attr >= 0)
          << title(rule) << " has no parameter " << argument.name;
      if (operand < 0) continue;
      EXPECT_TRUE(argument.is_operand) << title(rule) << ": " << argument.name;
      const OperandDef& def = op->operands()[static_cast<size_t>(operand)];
      EXPECT_EQ(argument.is_list, def.kind == OperandKind::kList)
          << title(rule) << ": " << argument.name;
      EXPECT_TRUE(!argument.is_optional || def.optional) << title(rule) << ": " << argument.name;
    }
  }
}

TEST(ProgramRules, GiveEveryParameterThatHasNoDefault) {
  for (const ProgramRule& rule : program_rules()) {
    const Op* op = rule.is_function ? nullptr : find_op(rule.target);
    if (!op) continue;
    for (const OperandDef& def : op->operands())
      EXPECT_TRUE(def.optional || def.hidden || rule.argument_index(def.name) >= 0)
          << title(rule) << " lacks " << def.name;
    for (const AttrDef& def : op->attrs())
      EXPECT_TRUE(!def.required || def.hidden || rule.argument_index(def.name) >= 0)
          << title(rule) << " lacks " << def.name;
  }
}

TEST(ProgramRules, NameEachOperationOnceForEachForm) {
  std::set<std::pair<std::string, bool>> seen;
  for (const ProgramRule& rule : program_rules())
    for (const std::string& name : rule.names)
      for (const bool is_pir : {true, false}) {
        const auto skipped = is_pir ? ProgramRule::Form::kProtobuf : ProgramRule::Form::kPir;
        EXPECT_TRUE(rule.form == skipped || seen.emplace(name, is_pir).second)
            << title(rule) << ": " << name;
      }
}

TEST(ProgramRules, RejectMalformedTables) {
  for (const char* text : {"relu", "relu: relu", "relu: relu(x = X)", "relu: relu(x = [a) -> Out",
                           "relu: relu(= X) -> Out"})
    EXPECT_THROW(parse_program_rules(text), Error) << text;
}

}  // namespace
}  // namespace paddle::paddle_program
