// The rules of ONNX that files must keep; what each operator takes is that of the package onnx.
#include "onnx/validity/validity.h"

#include <gtest/gtest.h>

#include "formats/onnx/attributes.h"
#include "onnx/validity/schema.h"

namespace paddle::onnx {
namespace {

using formats::onnx::Graph;
using formats::onnx::Model;
using formats::onnx::Node;
using formats::onnx::ValueInfo;
using formats::onnx::ValueType;

ValueInfo value(const std::string& name, DType dtype, std::optional<Shape> shape) {
  ValueInfo out;
  out.name = name;
  out.type.kind = ValueType::Kind::kTensor;
  out.type.dtype = dtype;
  out.type.shape = std::move(shape);
  return out;
}

Node node(const std::string& type, std::vector<std::string> inputs,
          std::vector<std::string> outputs, std::vector<formats::onnx::Attribute> attributes = {}) {
  Node out;
  out.op_type = type;
  out.name = type + "_" + outputs.at(0);
  out.inputs = std::move(inputs);
  out.outputs = std::move(outputs);
  out.attributes = std::move(attributes);
  return out;
}

/// One node that reads x and makes y.
Model model_of(Node only, DType from, DType to, int64_t opset = 17,
               const Shape& shape = {2, 3, 4}) {
  Model out;
  out.opsets[""] = opset;
  out.graph.name = "g";
  out.graph.inputs = {value("x", from, shape)};
  out.graph.outputs = {value("y", to, Shape(shape.size(), Dim::unknown()))};
  out.graph.nodes = {std::move(only)};
  return out;
}

std::string first_problem(const Model& model) {
  const auto problems = validity_problems(model);
  return problems.empty() ? "" : problems[0].what;
}

TEST(Validity, TypesDecideTheOpset) {
  const auto problems =
      validity_problems(model_of(node("Sin", {"x"}, {"y"}), DType::kBF16, DType::kBF16));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].opset, 22);
  EXPECT_EQ(problems[0].subject, "Sin of bfloat16");
  EXPECT_EQ(needed_opset(problems), 22);
  EXPECT_EQ(first_problem(model_of(node("Sin", {"x"}, {"y"}), DType::kBF16, DType::kBF16, 22)), "");
  EXPECT_EQ(first_problem(model_of(node("Sin", {"x"}, {"y"}), DType::kF64, DType::kF64)), "");
  // float16 and bfloat16 since 20.
  const auto infinite =
      validity_problems(model_of(node("IsInf", {"x"}, {"y"}), DType::kF16, DType::kBool));
  ASSERT_EQ(infinite.size(), 1u);
  EXPECT_EQ(infinite[0].opset, 20);
  // No opset takes integers.
  const auto never =
      validity_problems(model_of(node("Sin", {"x"}, {"y"}), DType::kI64, DType::kI64));
  ASSERT_EQ(never.size(), 1u);
  EXPECT_EQ(never[0].opset, 0);
}

TEST(Validity, OperandsOfOneVariableHaveOneType) {
  Model model = model_of(node("Add", {"x", "z"}, {"y"}), DType::kF32, DType::kF32);
  model.graph.inputs.push_back(value("z", DType::kF64, Shape{1}));
  EXPECT_NE(first_problem(model).find("input 1 is tensor(float64), another one is tensor(float32)"),
            std::string::npos)
      << first_problem(model);
  EXPECT_NE(first_problem(model_of(node("And", {"x", "x"}, {"y"}), DType::kI64, DType::kBool))
                .find("input 0 is tensor(int64)"),
            std::string::npos);
}

TEST(Validity, FormsFollowTheOpset) {
  const auto mean = [](int64_t opset) {
    return first_problem(
        model_of(node("ReduceMean", {"x"}, {"y"}, {formats::onnx::ints_attribute("axes", {1})}),
                 DType::kF32, DType::kF32, opset));
  };
  EXPECT_EQ(mean(17), "");
  EXPECT_NE(mean(18).find("the attribute 'axes'"), std::string::npos);
  EXPECT_NE(first_problem(model_of(node("Cast", {"x"}, {"y"}), DType::kF32, DType::kF32))
                .find("the attribute 'to' is missing"),
            std::string::npos);
  EXPECT_NE(first_problem(model_of(node("Gelu", {"x"}, {"y"}), DType::kF32, DType::kF32))
                .find("does not exist at opset 17"),
            std::string::npos);
  EXPECT_NE(first_problem(model_of(node("Relu", {"x", "x"}, {"y"}), DType::kF32, DType::kF32))
                .find("at most 1"),
            std::string::npos);
}

TEST(Validity, AxesAndRanksFit) {
  const auto transposed = [](const std::vector<int64_t>& order) {
    return first_problem(
        model_of(node("Transpose", {"x"}, {"y"}, {formats::onnx::ints_attribute("perm", order)}),
                 DType::kF32, DType::kF32));
  };
  EXPECT_EQ(transposed({2, 0, 1}), "");
  EXPECT_NE(transposed({-1, 0, -2}).find("'perm'"), std::string::npos);
  EXPECT_NE(transposed({1, 0}).find("'perm' has 2 axes"), std::string::npos);
  EXPECT_NE(first_problem(model_of(node("Softmax", {"x"}, {"y"}), DType::kF32, DType::kF32, 17, {}))
                .find("the axis -1 is out of range for 0 axes"),
            std::string::npos);
  EXPECT_NE(first_problem(model_of(node("Gemm", {"x", "x"}, {"y"}), DType::kF32, DType::kF32))
                .find("has 3 axes, expected 2"),
            std::string::npos);
}

TEST(Validity, NamesAreUniqueAndDefinedBefore) {
  Model model = model_of(node("Relu", {"x"}, {"y"}), DType::kF32, DType::kF32);
  model.graph.nodes.push_back(node("Abs", {"later"}, {"y"}));
  const auto problems = validity_problems(model);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].what.find("reads 'later'"), std::string::npos);
  EXPECT_NE(problems[1].what.find("defined already"), std::string::npos);
}

TEST(Validity, InputsAndOutputsHaveTypesAndShapes) {
  Model model = model_of(node("Relu", {"x"}, {"y"}), DType::kF32, DType::kF32);
  model.graph.outputs[0].type.shape.reset();
  EXPECT_EQ(first_problem(model), "the output 'y' has no type or shape");
  model.graph.outputs[0] = value("y", DType::kF64, Shape{2, 3, 4});
  EXPECT_NE(first_problem(model).find("declared as tensor(float64)"), std::string::npos);
  model.graph.outputs[0] = value("y", DType::kF32, Shape{2, 3});
  EXPECT_NE(first_problem(model).find("has 3 axes, declared are 2"), std::string::npos);

  // The body of a loop, whose first input lacks its shape.
  auto body = std::make_shared<Graph>();
  body->name = "body";
  body->inputs = {value("i", DType::kI64, std::nullopt), value("c", DType::kBool, Shape{}),
                  value("s", DType::kF32, Shape{2, 3, 4})};
  body->nodes = {node("Identity", {"c"}, {"c2"}), node("Neg", {"s"}, {"s2"})};
  body->outputs = {value("c2", DType::kBool, Shape{}), value("s2", DType::kF32, Shape{2, 3, 4})};
  formats::onnx::Attribute attribute;
  attribute.name = "body";
  attribute.kind = formats::onnx::AttributeKind::kGraph;
  attribute.graphs = {body};
  Model loop = model_of(node("Loop", {"", "", "x"}, {"y"}, {attribute}), DType::kF32, DType::kF32);
  EXPECT_EQ(first_problem(loop), "the input 'i' of the graph 'body' has no type or shape");
  body->inputs[0] = value("i", DType::kI64, Shape{});
  EXPECT_EQ(first_problem(loop), "");
}

TEST(Validity, EverySchemaOfTheTableIsReadable) {
  for (const std::string_view line : schema_lines()) {
    const std::string_view name = line.substr(0, line.find(' '));
    EXPECT_FALSE(schemas_of(name).empty()) << name;
  }
  EXPECT_EQ(find_schema("Conv", 21)->since, 11);
  EXPECT_EQ(find_schema("Conv", 22)->since, 22);
  EXPECT_EQ(find_schema("NoSuchOperator", 22), nullptr);
}

}  // namespace
}  // namespace paddle::onnx
