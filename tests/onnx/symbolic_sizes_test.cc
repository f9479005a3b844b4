// Graphs with symbolic input sizes compute the same as with constant ones.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "onnx/graph/session.h"
#include "support/onnx_bytes.h"

namespace paddle::onnx {
namespace {

using namespace testing_support;

Values results_of(const std::string& graph, const Values& inputs, Mode mode) {
  const std::string path =
      testing::TempDir() + "/paddle_open_" + std::to_string(::getpid()) + ".onnx";
  write_file_atomically(path, onnx_model(graph));
  Session session(path, SessionOptions{.mode = mode});
  std::filesystem::remove(path);
  Values out;
  for (const Value& v : session.run(inputs))
    out.emplace_back(Tensor(v.tensor().array().cast(DType::kF64)));
  return out;
}

TEST(OnnxSymbolicSizes, NoWindowStartsInEndPadding) {
  // Kernel 3 and stride 3 over 23 elements with end padding of 2: a ninth window would start in the
  // padding.
  Array x = Array::empty(DType::kF32, {1, 1, 23});
  for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = static_cast<float>(i);
  const std::vector<std::string> attributes = {
      ints_attribute("kernel_shape", {3}), ints_attribute("strides", {3}),
      ints_attribute("pads", {0, 2}), int_attribute("ceil_mode", 1)};
  for (const Mode mode : {Mode::kAutomatic, Mode::kEager})
    for (const std::string length : {"length", "23"})
      for (const bool average : {false, true}) {
        const Values out = results_of(
            onnx_graph({onnx_node(average ? "AveragePool" : "MaxPool", {"x"}, {"y"}, attributes)},
                       {value_info("x", 1, {"1", "1", length})},
                       {value_info("y", 1, {"1", "1", "n"})}),
            {Value(Tensor(x))}, mode);
        const Array& y = out[0].tensor().array();
        ASSERT_EQ(y.shape, (Dims{1, 1, 8})) << length;
        EXPECT_EQ(y.number(6), average ? 19 : 20);
        EXPECT_EQ(y.number(7), average ? 21.5 : 22);
      }
}

TEST(OnnxSymbolicSizes, NegativeStepSlicesClampTheStart) {
  // With a negative step, the standard clamps a start before the first element.
  const Value x(Tensor(Array::from<float>({1, 2, 3, 4}, {4})));
  for (const Mode mode : {Mode::kAutomatic, Mode::kEager})
    for (const std::string length : {"length", "4"})
      for (const auto& [start, wanted] :
           {std::pair{int64_t{-8}, Dims{1}}, {-4, {1}}, {-3, {2}}, {-1, {4}}, {2, {3}}}) {
        const Values out = results_of(
            onnx_graph({onnx_node("Slice", {"x", "start", "end", "axis", "step"}, {"y"})},
                       {value_info("x", 1, {length})}, {value_info("y", 1, {"n"})},
                       {onnx_int64s("start", {start}), onnx_int64s("end", {-1000}),
                        onnx_int64s("axis", {0}), onnx_int64s("step", {-1})}),
            {x}, mode);
        EXPECT_EQ(out[0].tensor().array().shape, wanted) << start;
        EXPECT_EQ(out[0].tensor().array().number(wanted[0] - 1), 1) << start;
      }
}

TEST(OnnxSymbolicSizes, TopKIsLimitedByTheAxis) {
  const std::string graph =
      onnx_graph({onnx_node("Constant", {}, {"k"}, {ints_attribute("value_ints", {3})}),
                  onnx_node("TopK", {"x", "k"}, {"y", "at"})},
                 {value_info("x", 1, {"length"})}, {value_info("y", 1, {"n"})});
  for (const Mode mode : {Mode::kAutomatic, Mode::kEager}) {
    const Values out =
        results_of(graph, {Value(Tensor(Array::from<float>({1, 4, 2, 3}, {4})))}, mode);
    EXPECT_EQ(out[0].tensor().array().shape, Dims{3});
    EXPECT_EQ(out[0].tensor().array().number(), 4);
    EXPECT_THROW(results_of(graph, {Value(Tensor(Array::from<float>({1, 4}, {2})))}, mode), Error);
  }
}

TEST(OnnxSymbolicSizes, InitialStatesOfRecurrentLayers) {
  // With zero weights the gates of a GRU are 1/2, so each step halves the state.
  const Value x(Tensor(Array::from<float>({1, 2, 3, 4}, {2, 2, 1})));
  const Value state(Tensor(Array::from<float>({4, 8, 12, 16, 20, 24}, {1, 2, 3})));
  const auto zeros = [](const std::string& name, const std::vector<int64_t>& dims) {
    int64_t count = 4;
    for (const int64_t d : dims) count *= d;
    return onnx_tensor(name, 1, dims, std::string(static_cast<size_t>(count), '\0'));
  };
  for (const Mode mode : {Mode::kAutomatic, Mode::kEager})
    for (const std::vector<std::string>& dims :
         {std::vector<std::string>{"1", "2", "3"}, {"a", "b", "c"}, {"1", "b", "3"}}) {
      const Values out = results_of(
          onnx_graph(
              {onnx_node("GRU", {"x", "w", "r", "", "", "h"}, {"y", "last"},
                         {int_attribute("hidden_size", 3)})},
              {value_info("x", 1, {"2", "2", "1"}), value_info("h", 1, dims)},
              {value_info("y", 1, {"p", "q", "r", "s"}), value_info("last", 1, {"i", "j", "k"})},
              {zeros("w", {1, 9, 1}), zeros("r", {1, 9, 3})}),
          {x, state}, mode);
      const Array &y = out[0].tensor().array(), &last = out[1].tensor().array();
      ASSERT_EQ(y.shape, (Dims{2, 1, 2, 3})) << dims[0];
      ASSERT_EQ(last.shape, (Dims{1, 2, 3})) << dims[0];
      for (int64_t i = 0; i < 6; ++i) {
        EXPECT_EQ(y.number(i), 2.0 * static_cast<double>(i + 1));
        EXPECT_EQ(last.number(i), static_cast<double>(i + 1));
      }
    }
}

}  // namespace
}  // namespace paddle::onnx
