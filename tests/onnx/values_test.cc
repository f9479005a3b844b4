// Edge cases of ONNX operators: zeros, NaN, infinities, the largest numbers, empty axes and exact
// ties. Expected values follow the ONNX specification and are worked out by hand; ONNX Runtime and
// the reference evaluator were compared where they agree with it.

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include <gtest/gtest.h>

#include "base/files.h"
#include "onnx/graph/session.h"
#include "support/onnx_bytes.h"

namespace paddle::onnx {
namespace {

using namespace testing_support;

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::nanf("");

Value floats(const std::vector<float>& values, const Dims& shape) {
  return Value(Tensor(Array::from<float>(values, shape)));
}

/// The outputs of one node, run as a plan and node by node, which must agree.
std::vector<std::vector<double>> outputs(const std::vector<std::string>& nodes,
                                         const std::vector<std::string>& inputs,
                                         const std::vector<Value>& given,
                                         const std::vector<std::string>& initializers = {},
                                         int64_t opset = 21, size_t count = 1) {
  std::vector<std::string> declared;
  for (size_t i = 0; i < count; ++i) declared.push_back(bytes_field(1, str("y", i)));
  const std::string path =
      testing::TempDir() + "/paddle_values_" + std::to_string(::getpid()) + ".onnx";
  write_file_atomically(path, onnx_model(onnx_graph(nodes, inputs, declared, initializers), opset));
  std::vector<std::vector<double>> out;
  for (const Mode mode : {Mode::kAutomatic, Mode::kEager}) {
    Session session(path, {.mode = mode});
    std::vector<std::vector<double>> results;
    for (const Value& v : session.run(given)) {
      const Array a = v.tensor().array().contiguous();
      std::vector<double>& list = results.emplace_back();
      for (int64_t i = 0; i < a.size(); ++i) list.push_back(a.number(i));
    }
    EXPECT_TRUE(session.fallbacks().empty()) << session.fallbacks()[0];
    if (mode == Mode::kAutomatic) {
      out = results;
      continue;
    }
    for (size_t k = 0; k < out.size(); ++k)
      for (size_t i = 0; i < out[k].size(); ++i)
        EXPECT_TRUE(out[k][i] == results[k][i] ||
                    std::abs(out[k][i] - results[k][i]) <= 1e-6 * std::abs(out[k][i]) ||
                    (std::isnan(out[k][i]) && std::isnan(results[k][i])))
            << "output " << k << " [" << i << "]: " << out[k][i] << " as a plan, " << results[k][i]
            << " node by node";
  }
  std::filesystem::remove(path);
  return out;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected,
                 double relative = 1e-6) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(found[i])) << i << ": " << found[i];
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(found[i], expected[i]) << i;
    } else {
      EXPECT_NEAR(found[i], expected[i], relative * std::abs(expected[i])) << i;
    }
  }
}

/// One elementwise operator on these numbers.
std::vector<double> applied(const std::string& type, const std::vector<float>& x,
                            const std::vector<std::string>& attributes = {}) {
  const auto size = static_cast<int64_t>(x.size());
  return outputs({onnx_node(type, {"x"}, {"y0"}, attributes)}, {value_info("x", 1, {"n"})},
                 {floats(x, {size})})[0];
}

TEST(OnnxValues, ActivationsOfNaNAndLargeValues) {
  // Values not above alpha become 0, including NaN.
  expect_near(applied("ThresholdedRelu", {kNaN, 0.5F, 2, -kInf, kInf}), {0, 0, 2, 0, kInf});
  // Equals x from 3 on, although 6 x overflows.
  expect_near(applied("HardSwish", {3e38F, -3e38F, 4, 1, kInf}), {3e38F, 0, 4, 4.0 / 6, kInf});
}

TEST(OnnxValues, FmodIsExact) {
  const auto y =
      outputs({onnx_node("Mod", {"x", "z"}, {"y0"}, {int_attribute("fmod", 1)})},
              {value_info("x", 1, {"n"}), value_info("z", 1, {"n"})},
              {floats({-1e-8F, -1, 5.5F, -5.5F, 1}, {5}), floats({3, kInf, -2, 2, -kInf}, {5})});
  expect_near(y[0], {-1e-8F, -1, 1.5, -1.5, 1});
}

TEST(OnnxValues, NormalizersOfZerosAndOverflowingSquares) {
  const std::vector<float> x = {0, 0, 3e-30F, 4e-30F, 3e30F, -4e30F};
  const auto normalized = [&](const char* norm) {
    return outputs(
        {onnx_node("Normalizer", {"x"}, {"y0"}, {string_attribute("norm", norm)}, "ai.onnx.ml")},
        {value_info("x", 1, {"n", "2"})}, {floats(x, {3, 2})})[0];
  };
  expect_near(normalized("L2"), {0, 0, 0.6, 0.8, 0.6, -0.8});
  expect_near(normalized("L1"), {0, 0, 3.0 / 7, 4.0 / 7, 3.0 / 7, -4.0 / 7});
  expect_near(normalized("MAX"), {0, 0, 0.75, 1, 0.75, -1});
  for (const int64_t p : {1, 2})
    expect_near(outputs({onnx_node("LpNormalization", {"x"}, {"y0"}, {int_attribute("p", p)})},
                        {value_info("x", 1, {"n", "2"})}, {floats(x, {3, 2})})[0],
                p == 1 ? std::vector<double>{0, 0, 3.0 / 7, 4.0 / 7, 3.0 / 7, -4.0 / 7}
                       : std::vector<double>{0, 0, 0.6, 0.8, 0.6, -0.8});
  expect_near(
      outputs({onnx_node("ReduceL2", {"x", "axes"}, {"y0"})}, {value_info("x", 1, {"n", "2"})},
              {floats(x, {3, 2})}, {onnx_int64s("axes", {1})})[0],
      {0, 5e-30F, 5e30F});
}

TEST(OnnxValues, LogSoftmaxOfLargeLogitsIsAccurate) {
  const std::vector<float> x = {1e6F, 1e6F + 1, 3e38F, 3e38F};
  const double sum = std::log1p(std::exp(1.0));  // of e^0 + e^1, minus 1
  expect_near(outputs({onnx_node("LogSoftmax", {"x"}, {"y0"})}, {value_info("x", 1, {"n", "2"})},
                      {floats(x, {2, 2})})[0],
              {-sum, 1 - sum, -std::log(2.0), -std::log(2.0)});
}

TEST(OnnxValues, LossesIgnoreContentsOfIgnoredRows) {
  const std::vector<Value> given = {floats({1, 2, kNaN, 0, kInf, 1, 3, 1}, {4, 2}),
                                    Value(Tensor(Array::from<int64_t>({1, -7, 7 - 14, 0}, {4})))};
  const double first = std::log1p(std::exp(-1.0)), last = std::log1p(std::exp(-2.0));
  for (const std::string reduction : {"mean", "sum", "none"}) {
    const auto loss = outputs(
        {onnx_node("SoftmaxCrossEntropyLoss", {"x", "t"}, {"y0"},
                   {int_attribute("ignore_index", -7), string_attribute("reduction", reduction)})},
        {value_info("x", 1, {"n", "2"}), value_info("t", 7, {"n"})}, given)[0];
    if (reduction == "mean") expect_near(loss, {(first + last) / 2});
    if (reduction == "sum") expect_near(loss, {first + last});
    if (reduction == "none") expect_near(loss, {first, 0, 0, last});
  }
  // From log probabilities, with class weights.
  const auto weighted = outputs({onnx_node("NegativeLogLikelihoodLoss", {"x", "t", "w"}, {"y0"},
                                           {int_attribute("ignore_index", -7)})},
                                {value_info("x", 1, {"n", "2"}), value_info("t", 7, {"n"})}, given,
                                {onnx_floats("w", {0.5F, 2})})[0];
  expect_near(weighted, {-(2 * 2 + 0.5 * 3) / 2.5});
}

TEST(OnnxValues, AttentionOverNoKeysIsZero) {
  const auto nodes = {onnx_node("MatMul", {"q", "k"}, {"a"}), onnx_node("Mul", {"a", "s"}, {"b"}),
                      onnx_node("Softmax", {"b"}, {"p"}), onnx_node("MatMul", {"p", "v"}, {"y0"})};
  const auto y =
      outputs(nodes,
              {value_info("q", 1, {"1", "1", "2", "4"}), value_info("k", 1, {"1", "1", "4", "0"}),
               value_info("v", 1, {"1", "1", "0", "3"})},
              {floats({1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 2, 4}), floats({}, {1, 1, 4, 0}),
               floats({}, {1, 1, 0, 3})},
              {onnx_tensor("s", 1, {}, std::string("\0\0\0\x3f", 4))});  // 0.5
  expect_near(y[0], std::vector<double>(6, 0.0));
}

TEST(OnnxValues, NearGeluIsNotFusedToGelu) {
  // x / 1.4142 is not x / sqrt(2): the results differ by up to 3e-6.
  const auto nodes = {onnx_node("Div", {"x", "k"}, {"a"}), onnx_node("Erf", {"a"}, {"e"}),
                      onnx_node("Add", {"e", "one"}, {"p"}), onnx_node("Mul", {"x", "p"}, {"q"}),
                      onnx_node("Mul", {"q", "half"}, {"y0"})};
  for (const float divisor : {1.4142F, 1.41422F, 1.41421356F}) {
    const std::vector<float> x = {-0.5F, 0.5F, 1, 1.5F, 3};
    std::vector<double> expected;
    for (const float v : x)
      expected.push_back(0.5 * v * (1 + std::erf(static_cast<double>(v) / divisor)));
    expect_near(outputs(nodes, {value_info("x", 1, {"n"})}, {floats(x, {5})},
                        {onnx_floats("k", {divisor}), onnx_floats("one", {1}),
                         onnx_floats("half", {0.5F})})[0],
                expected, 5e-7);
  }
}

TEST(OnnxValues, DynamicQuantizationOfZerosHasAScale) {
  const auto y = outputs({onnx_node("DynamicQuantizeLinear", {"x"}, {"y0", "y1", "y2"})},
                         {value_info("x", 1, {"n"})}, {floats({0, 0, 0}, {3})}, {}, 21, 3);
  expect_near(y[0], {0, 0, 0});
  expect_near(y[1], {1});
  expect_near(y[2], {0});
}

TEST(OnnxValues, DeterminantsInFloat16) {
  const auto y = outputs(
      {onnx_node("Cast", {"x"}, {"h"}, {int_attribute("to", 10)}), onnx_node("Det", {"h"}, {"y0"})},
      {value_info("x", 1, {"2", "2"})}, {floats({3, 1, 2, 4}, {2, 2})});
  expect_near(y[0], {10});
}

TEST(OnnxValues, GatherNDWithoutCoordinates) {
  const auto y = outputs({onnx_node("GatherND", {"x", "at"}, {"y0"})},
                         {value_info("x", 1, {"2"}), value_info("at", 7, {"3", "0"})},
                         {floats({1, 2}, {2}), Value(Tensor(Array::zeros(DType::kI64, {3, 0})))});
  expect_near(y[0], {1, 2, 1, 2, 1, 2});
  const auto batches =
      outputs({onnx_node("GatherND", {"x", "at"}, {"y0"}, {int_attribute("batch_dims", 1)})},
              {value_info("x", 1, {"2", "2"}), value_info("at", 7, {"2", "2", "0"})},
              {floats({1, 2, 3, 4}, {2, 2}), Value(Tensor(Array::zeros(DType::kI64, {2, 2, 0})))});
  expect_near(batches[0], {1, 2, 1, 2, 3, 4, 3, 4});
}

TEST(OnnxValues, TwoDimensionalSignalsAreReal) {
  // Frames of 4 with step 2: [1, 2, 3, 4] and [3, 4, 5, 6].
  const auto y = outputs({onnx_node("STFT", {"x", "step", "", "length"}, {"y0"})},
                         {value_info("x", 1, {"1", "6"})}, {floats({1, 2, 3, 4, 5, 6}, {1, 6})},
                         {onnx_int64s("step", {2}), onnx_int64s("length", {4})});
  ASSERT_EQ(y[0].size(), 12u);
  const std::vector<double> expected = {10, 0, -2, 2, -2, 0, 18, 0, -2, 2, -2, 0};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(y[0][i], expected[i], 1e-5) << i;
}

/// Source indices of a nearest resize of `from` elements; `by_scale` passes a float32 scale instead
/// of the size.
std::vector<double> nearest(int64_t from, int64_t to, const std::string& coordinates,
                            const std::string& rounding, bool by_scale, bool symbolic) {
  std::vector<float> x;
  for (int64_t i = 0; i < from; ++i) x.push_back(static_cast<float>(i));
  const float scale = static_cast<float>(to) / static_cast<float>(from);
  return outputs({onnx_node("Resize",
                            by_scale ? std::vector<std::string>{"x", "", "scales"}
                                     : std::vector<std::string>{"x", "", "", "sizes"},
                            {"y0"},
                            {string_attribute("mode", "nearest"),
                             string_attribute("coordinate_transformation_mode", coordinates),
                             string_attribute("nearest_mode", rounding)})},
                 {value_info("x", 1, {symbolic ? "n" : std::to_string(from)})}, {floats(x, {from})},
                 {by_scale ? onnx_floats("scales", {scale}) : onnx_int64s("sizes", {to})})[0];
}

TEST(OnnxValues, NearestResizeIsExactAtTies) {
  for (const bool by_scale : {false, true})
    for (const bool symbolic : {false, true}) {
      if (by_scale && symbolic) continue;  // 6/20 in float32 does not determine the output size
      const auto taken = [&](int64_t from, int64_t to, const char* coordinates, const char* mode) {
        return nearest(from, to, coordinates, mode, by_scale, symbolic);
      };
      // (i + 1/2) 20/6 - 1/2 is 1 1/6, 4.5, 7 5/6, 11 1/6, 14.5 and 17 5/6.
      for (const char* coordinates : {"half_pixel", "pytorch_half_pixel"}) {
        expect_near(taken(20, 6, coordinates, "round_prefer_ceil"), {1, 5, 8, 11, 15, 18});
        expect_near(taken(20, 6, coordinates, "round_prefer_floor"), {1, 4, 8, 11, 14, 18});
      }
      // i 10/4 is an integer or a half.
      expect_near(taken(10, 4, "asymmetric", "round_prefer_ceil"), {0, 3, 5, 8});
      // i 49/28 = i 7/4.
      std::vector<double> halves;
      for (int64_t i = 0; i < 28; ++i) halves.push_back(std::floor(1.75 * static_cast<double>(i)));
      expect_near(taken(49, 28, "asymmetric", "floor"), halves);
      // Integers that float32 misses: (i + 1/2) 10/6 - 1/2 is 2 for i = 1 and 7 for i = 4.
      expect_near(taken(10, 6, "half_pixel", "floor"), {0, 2, 3, 5, 7, 8});
      // i 6/4 = 0, 1.5, 3, 4.5, 6.
      expect_near(taken(7, 5, "align_corners", "round_prefer_ceil"), {0, 2, 3, 5, 6});
    }
  for (const bool by_scale : {false, true})
    expect_near(nearest(20, 6, "half_pixel_symmetric", "round_prefer_ceil", by_scale, false),
                {1, 5, 8, 11, 15, 18});
}

}  // namespace
}  // namespace paddle::onnx
