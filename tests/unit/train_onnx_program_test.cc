// ONNX files as programs to train: which initialisers are parameters, what they begin with, names.
#include "train/onnx_program.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "ir/tracer.h"
#include "model/evaluator.h"
#include "runtime/execute.h"
#include "support/onnx_bytes.h"
#include "train/ports.h"
#include "train/predict.h"

namespace paddle::train {
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
  Store store;
  const auto function = trace_prediction(*program, program->model, store, false);
  std::vector<std::string> parameters, states;
  for (const auto& [name, p] : store.parameters) parameters.push_back(name);
  for (const auto& [name, s] : store.states) states.push_back(name);
  // 0-D initialisers and bounds are constants.
  EXPECT_EQ(parameters, (std::vector<std::string>{"gain", "scale", "shift"}));
  EXPECT_EQ(states, (std::vector<std::string>{"mean", "variance"}));
  EXPECT_EQ(store.parameters.at("gain").value.number(1), 5);
  // The file's own bytes are mapped for reading only.
  store.parameters.at("gain").value.data<float>()[1] = 6;
}

TEST_F(OnnxProgram, ComputesWhatTheFileSays) {
  const auto program = read_onnx_program(path_);
  for (const bool wide : {false, true}) {
    Store store;
    runtime::EagerExecutor eager;
    const InterpreterScope scope(eager);
    EagerPorts ports(store, wide);
    model::EvaluationOptions options;
    options.store = &ports;
    const Tensor x(wide ? Array::from<double>({3, 5}, {1, 2}) : Array::from<float>({3, 5}, {1, 2}));
    const auto out = model::run_entry(*program, program->model, {x}, options);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].tensor.dtype(), wide ? DType::kF64 : DType::kF32);
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

TEST_F(OnnxProgram, RefusesInputsThatAreNoTensors) {
  write(onnx_graph({onnx_node("Relu", {"x"}, {"y"})}, {bytes_field(1, "x")},
                   {value_info("y", 1, {"2"})}));
  try {
    read_onnx_program(path_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kModel);
  }
}

}  // namespace
}  // namespace paddle::train
