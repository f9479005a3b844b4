// Models through the tracer: what a body becomes in the IR.
#include <gtest/gtest.h>

#include "ir/tracer.h"
#include "lang/eval/evaluator.h"
#include "ops/core/call.h"

namespace paddle::lang {
namespace {

/// Parameters and states as inputs of the function that is traced.
class TracedStore final : public ParameterProvider {
 public:
  explicit TracedStore(ir::Tracer& tracer) : tracer_(tracer) {}
  Tensor parameter(const std::string& path, const Dims& shape, DType dtype,
                   const Initializer&) override {
    return slot(ir::PortKind::kParameter, path, shape, dtype);
  }
  Tensor state(const std::string& path, const Dims& shape, DType dtype, const Initializer&,
               StateScope) override {
    return slot(ir::PortKind::kState, path, shape, dtype);
  }
  void update(const std::string& path, const Tensor& value) override { updates[path] = value; }
  std::map<std::string, Tensor> updates;

 private:
  Tensor slot(ir::PortKind kind, const std::string& path, const Dims& shape, DType dtype) {
    Tensor& tensor = slots_[path];
    if (!tensor.defined()) {
      TensorType type;
      type.dtype = dtype;
      type.shape = to_shape(shape);
      tensor = tracer_.input({kind, path}, type);
    }
    return tensor;
  }
  ir::Tracer& tracer_;
  std::map<std::string, Tensor> slots_;
};

/// Traces a body over x: float32[n, 4] and k: int64[]; returns the names of its operations in
/// order.
std::string trace(const std::string& body, bool training = false) {
  std::string text = "inputs: {x: 'float32[n, 4]', k: 'int64[]'}\nmodel: |\n";
  for (const std::string& line : split(body, '\n')) text += "  " + line + "\n";
  const auto program = read_program(config::parse_document(text, "m.yaml"));
  ir::Function function("model");
  ir::Tracer tracer(function);
  const InterpreterScope scope(tracer);
  TensorType seed;
  seed.dtype = DType::kU64;
  seed.shape = to_shape(Dims{2});
  const RandomScope random(tracer.input({ir::PortKind::kRandom, "random"}, seed));
  TracedStore store(tracer);
  EvaluationOptions options;
  options.training = training;
  options.store = &store;
  Tensors inputs;
  for (const auto& [name, type] : input_types(*program, program->model)) {
    inputs.push_back(tracer.input({ir::PortKind::kValue, name}, type));
  }
  for (const NamedTensor& out : run_entry(*program, program->model, inputs, options)) {
    tracer.output({ir::PortKind::kValue, out.name}, out.tensor);
  }
  std::string names;
  const std::function<void(const ir::Region&)> walk = [&](const ir::Region& region) {
    for (const auto& operation : region.operations) {
      names += std::string(operation->op->name()) + " ";
      EXPECT_NE(operation->location, "") << operation->op->name();
      for (const auto& inner : operation->regions) {
        names += "{ ";
        walk(*inner);
        names += "} ";
      }
    }
  };
  walk(function.body);
  return names + function.body.results.at(0)->type.text();
}

TEST(Trace, ControlFlowBecomesRegions) {
  EXPECT_EQ(trace("if k > 0:\n  y = relu(x)\nelse:\n  y = -x\nreturn y"),
            "greater_than cf.if { relu } { neg } float32[n, 4]");
  EXPECT_EQ(trace("while k > 0:\n  x = x * 2\n  k = k - 1\nreturn x"),
            "greater_than cf.while { greater_than } { multiply subtract } float32[n, 4]");
  EXPECT_EQ(trace("if k > 2:\n  y = 1\nelif k > 1:\n  y = 2\nelse:\n  y = 2.5\nreturn x * y"),
            "greater_than cf.if { cast } { greater_than cf.if { cast } { cast } } multiply "
            "float32[n, 4]");
  EXPECT_EQ(trace("y = relu(x) if k else x\nreturn y"),
            "not_equal cf.if { relu } { } float32[n, 4]");
}

TEST(Trace, RangesChangeNoOperation) {
  // A return in one branch ends the range early; the rest runs under a condition.
  EXPECT_EQ(trace("with scope(\"a\"):\n  if k > 0:\n    return relu(x)\ny = -x\nreturn y"),
            "greater_than cf.if { relu cast } { cast full } equal cf.if { neg } { } float32[n, 4]");
  EXPECT_EQ(trace("with range(\"a\"):\n  return relu(x)"), "relu float32[n, 4]");
  EXPECT_EQ(
      trace("for i in range(3):\n  with scope(\"a\"):\n    if i == 1:\n      break\n    x = x * 2"
            "\nreturn x"),
      "multiply float32[n, 4]");
}

TEST(Trace, EarlyReturns) {
  EXPECT_EQ(trace("if k > 0:\n  return relu(x)\ny = -x\nreturn y"),
            "greater_than cf.if { relu } { neg } float32[n, 4]");
}

TEST(Trace, WritesUnderConditionsStayInside) {
  EXPECT_EQ(trace("y = x * 1\nif k > 0:\n  y[:, 0] = 0\nreturn y"),
            "multiply greater_than cf.if { strided_slice squeeze cast expand reshape "
            "strided_slice_scatter } { } "
            "float32[n, 4]");
}

TEST(Trace, LayersInLoopsOnTensorsAreShared) {
  EXPECT_EQ(trace("while k > 0:\n  x = linear(x, 4)\n  k -= 1\nreturn x"),
            "greater_than cf.while { greater_than } { linear subtract } float32[n, 4]");
}

TEST(Trace, InPlaceWrites) {
  EXPECT_EQ(trace("y = x * 1\nv = y[:, 1]\nv[0] = 5\nreturn y").substr(0, 8), "multiply");
}

}  // namespace
}  // namespace paddle::lang
