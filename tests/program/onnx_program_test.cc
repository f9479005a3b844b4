// ONNX files as programs to train: which initializers are parameters, what they begin with, names.
#include "program/onnx_program.h"

#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "ir/tracer.h"
#include "lang/eval/evaluator.h"
#include "ops/core/call.h"
#include "program/parameter_binding.h"
#include "program/prediction.h"
#include "runtime/execute.h"
#include "support/onnx_bytes.h"

namespace paddle::program {
namespace {

using namespace testing_support;

std::string floats(const std::string& name, const std::vector<int64_t>& dims,
                   const std::vector<float>& values) {
  std::string raw(values.size() * sizeof(float), '\0');
  std::memcpy(raw.data(), values.data(), raw.size());
  return onnx_tensor(name, 1, dims, raw);
}

class OnnxProgram : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/paddle_program_" + std::to_string(::getpid()) + ".onnx";
    // clip(batch_norm(x.1) * gain, 0, limit) * factor
    write(onnx_graph(
        {onnx_node("BatchNormalization", {"x.1", "scale", "shift", "mean", "variance"}, {"n"}),
         onnx_node("Mul", {"n", "gain"}, {"m"}), onnx_node("Clip", {"m", "", "limit"}, {"c"}),
         onnx_node("Mul", {"c", "factor"}, {"7"})},
        {value_info("x.1", 1, {"batch", "2"})}, {value_info("7", 1, {"batch", "2"})},
        {floats("scale", {2}, {1, 2}), floats("shift", {2}, {0, 1}), floats("mean", {2}, {1, 1}),
         floats("variance", {2}, {4, 4}), floats("gain", {2}, {3, 5}), floats("limit", {}, {100}),
         floats("factor", {}, {2})}));
  }
  void TearDown() override { std::filesystem::remove(path_); }
  void write(const std::string& graph) { write_file_atomically(path_, onnx_model(graph)); }
  std::string path_;
};

TEST_F(OnnxProgram, WeightsAreParametersStatisticsAreStates) {
  const auto program = read_onnx_program(path_);
  EXPECT_EQ(program->model.inputs[0].name.text, "x_1");
  EXPECT_EQ(program->model.outputs[0].text, "d7");
  EXPECT_EQ(program->dims, std::vector<std::string>{"batch"});
  ParameterStore store;
  const auto function = trace_prediction(*program, program->model, store, false);
  std::vector<std::string> parameters, states;
  for (const auto& [name, p] : store.parameters) parameters.push_back(name);
  for (const auto& [name, s] : store.states) states.push_back(name);
  // 0-D initializers and bounds are constants.
  EXPECT_EQ(parameters, (std::vector<std::string>{"gain", "scale", "shift"}));
  EXPECT_EQ(states, (std::vector<std::string>{"mean", "variance"}));
  EXPECT_EQ(store.parameters.at("gain").value.number(1), 5);
  // The file's own bytes are mapped for reading only.
  store.parameters.at("gain").value.data<float>()[1] = 6;
}

TEST_F(OnnxProgram, ComputesWhatTheFileSays) {
  const auto program = read_onnx_program(path_);
  for (const bool use_float64 : {false, true}) {
    ParameterStore store;
    runtime::EagerExecutor eager;
    const InterpreterScope scope(eager);
    EagerBinding ports(store, use_float64);
    lang::EvaluationOptions options;
    options.store = &ports;
    const Tensor x(use_float64 ? Array::from<double>({3, 5}, {1, 2})
                               : Array::from<float>({3, 5}, {1, 2}));
    const auto out = lang::run_entry(*program, program->model, {x}, options);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].tensor.dtype(), use_float64 ? DType::kF64 : DType::kF32);
    const Array y = out[0].tensor.array().contiguous();
    EXPECT_NEAR(y.number(0), 2 * 3 * ((3 - 1) / std::sqrt(4 + 1e-5)), 1e-5);
    EXPECT_NEAR(y.number(1), 2 * 5 * (2 * (5 - 1) / std::sqrt(4 + 1e-5) + 1), 1e-4);
  }
}

TEST_F(OnnxProgram, NamesCanBeGiven) {
  const auto program = read_onnx_program(path_, {{{"image", "x.1"}}, {{"logits", "7"}}});
  EXPECT_EQ(program->model.inputs[0].name.text, "image");
  EXPECT_EQ(program->model.outputs[0].text, "logits");
  try {
    read_onnx_program(path_, {{{"image", "x.2"}}, {}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_NE(error.message().find("did you mean 'x.1'"), std::string::npos) << error.message();
  }
}

TEST_F(OnnxProgram, RejectsInputsThatAreNoTensors) {
  write(onnx_graph({onnx_node("Relu", {"x"}, {"y"})}, {bytes_field(1, "x")},
                   {value_info("y", 1, {"2"})}));
  try {
    read_onnx_program(path_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kModel);
  }
}

/// Outputs of the program for x [2, 1], run as in a training or evaluation step.
std::vector<double> outputs_of(const lang::Program& program, ParameterStore& store, bool training,
                               const std::function<bool(const std::string&)>& frozen = nullptr) {
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  const RandomScope random(Tensor(Array::from<uint64_t>({7, 1}, {2})));
  EagerBinding ports(store, false);
  ports.frozen = frozen;
  lang::EvaluationOptions options;
  options.training = training;
  options.store = &ports;
  const auto out = lang::run_entry(program, program.model,
                                   {Tensor(Array::from<float>({2, 4}, {2, 1}))}, options);
  ports.finish();
  const Array values = out[0].tensor.array().contiguous();
  return {values.number(0), values.number(1)};
}

TEST_F(OnnxProgram, TrainingModeIsThatOfTheStep) {
  // Batch normalization and dropout that the file has in training mode.
  write(onnx_graph({onnx_node("BatchNormalization", {"x", "scale", "shift", "mean", "variance"},
                              {"n", "next_mean", "next_variance"},
                              {int_attribute("training_mode", 1),
                               float_attribute("momentum", 0.75f), float_attribute("epsilon", 0)}),
                    onnx_node("Dropout", {"n", "ratio", "training"}, {"y"})},
                   {value_info("x", 1, {"batch", "1"})}, {value_info("y", 1, {"batch", "1"})},
                   {floats("scale", {1}, {2}), floats("shift", {1}, {10}), floats("mean", {1}, {7}),
                    floats("variance", {1}, {9}), floats("ratio", {}, {0.5}),
                    onnx_tensor("training", 9, {}, std::string(1, 1))}));
  const auto program = read_onnx_program(path_);
  ParameterStore store;
  // (2 - 7) / 3 * 2 + 10 and (4 - 7) / 3 * 2 + 10, and nothing dropped.
  const std::vector<double> inferred = outputs_of(*program, store, false);
  EXPECT_NEAR(inferred[0], 20.0 / 3, 1e-5);
  EXPECT_NEAR(inferred[1], 8, 1e-5);
  EXPECT_EQ(store.states.at("mean").number(0), 7);
  // The batch has mean 3 and variance 1: 8 and 12 are dropped or doubled.
  for (const double y : outputs_of(*program, store, true))
    EXPECT_TRUE(y == 0 || y == 16 || y == 24) << y;
  EXPECT_EQ(store.states.at("mean").number(0), 0.75 * 7 + 0.25 * 3);
  EXPECT_EQ(store.states.at("variance").number(0), 0.75 * 9 + 0.25 * 1);
  // A frozen node keeps its statistics.
  outputs_of(*program, store, true, [](const std::string&) { return true; });
  EXPECT_EQ(store.states.at("mean").number(0), 6);
  // The statistics that training left, in inference.
  EXPECT_NEAR(outputs_of(*program, store, false)[0], (2 - 6) / std::sqrt(7.0) * 2 + 10, 1e-5);
}

}  // namespace
}  // namespace paddle::program
