#include "paddle_program/register.h"

#include "formats/paddle_program.h"
#include "onnx/graph/graph_format.h"
#include "paddle_program/importer.h"
#include "paddle_program/program_call.h"
#include "paddle_program/training_program.h"

namespace paddle::paddle_program {
namespace {

using formats::onnx::Node;

const ProgramRule& rule_of(const Node& node) {
  const formats::onnx::Attribute* index = node.find(kRule);
  ensure(index != nullptr, "node of a program without a rule");
  return program_rules().at(static_cast<size_t>(index->i));
}

onnx::NodeProperties properties(const Node& node) {
  const std::string& target = rule_of(node).target;
  const bool is_random = target == "random" || target == "randperm" || target == "bernoulli" ||
                         target == "multinomial";
  return {.is_random = is_random, .reads_types_only = target == "shape" || target == "numel"};
}

/// Operands that stand for an attribute configure the operation, as scales of quantization do.
onnx::InputUse use_of(const Node& node, size_t input) {
  const ProgramRule& rule = rule_of(node);
  const formats::onnx::Attribute* operands = node.find(kOperands);
  if (!operands || input >= operands->ints.size()) return onnx::InputUse::kConfiguration;
  const ProgramArgument& argument = rule.arguments.at(static_cast<size_t>(operands->ints[input]));
  if (rule.target == "batch_norm" && (argument.name == "mean" || argument.name == "variance"))
    return onnx::InputUse::kStatistic;
  const bool quantizes = rule.target.find("quantize") != std::string::npos;
  if (!argument.attributes.empty() || (quantizes && argument.name != "x"))
    return onnx::InputUse::kConfiguration;
  return onnx::InputUse::kWeight;
}

void widen(Node& node) {
  constexpr int64_t kFloat = 5, kDouble = 6;  // framework.proto's VarType.Type
  for (auto& attribute : node.attributes) {
    if (attribute.name != "dtype") continue;
    if (attribute.ints == std::vector<int64_t>{kFloat}) attribute.ints = {kDouble};
    if (attribute.strings == std::vector<std::string>{"float32"}) attribute.strings = {"float64"};
  }
}

}  // namespace

void register_programs() {
  [[maybe_unused]] static const bool kOnce = [] {
    onnx::add_graph_format({.is_file = formats::is_paddle_program,
                            .read = import_program,
                            .domain = kProgramDomain,
                            .operators = program_operators,
                            .properties = properties,
                            .use_of = use_of,
                            .widen = widen});
    return true;
  }();
}

bool is_graph_file(const std::string& path) {
  register_programs();
  return onnx::is_graph_file(path);
}

formats::onnx::Model import_program(const std::string& path) {
  register_programs();
  const std::string file = formats::paddle_program_file(path);
  formats::PaddleProgram program = formats::read_paddle_program(file);
  keep_forward(program);
  return ProgramImporter(std::move(program), file).run();
}

}  // namespace paddle::paddle_program
