// Quantized graphs on integer kernels: the same numbers as in floats, up to one step where a value
// lies between two, and none of the floats left where the integers serve.

#include <gtest/gtest.h>

#include <tuple>

#include "ops/core/backend.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "support/quantized_graphs.h"

namespace paddle {
namespace {

using namespace testing_support;

struct ConvCase {
  std::string what;
  Dims x, weight;
  DType dtype = DType::kU8;
  int x_zero = 0;
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool per_channel = false;
  char bias = 'n';  ///< none, integers, floats
  bool relu = false;
  DType out = DType::kU8;
  float out_scale = 0.5f;
  int out_zero = 3;
};

/// The same convolution as dequantize → conv2d or conv3d → relu → quantize.
Tensor as_floats(const ConvCase& c, const Tensor& x) {
  const float x_scale = 0.02f;
  const int64_t channels = c.weight[0];
  const Array weight = bytes(DType::kI8, c.weight, 1, -64, 64);
  Dims per_channel(c.weight.size(), 1);
  per_channel[0] = channels;
  Array scale = c.per_channel ? floats(per_channel, 2, 0.004, 0.01) : Array::scalar(0.01f);
  Tensor bias;
  if (c.bias == 'f') bias = Tensor(floats({channels}, 3, 2));
  if (c.bias == 'i') {
    Array whole = Array::empty(DType::kI32, {channels}),
          unit = Array::empty(DType::kF32, {channels});
    for (int64_t i = 0; i < channels; ++i) {
      whole.data<int32_t>()[i] = static_cast<int32_t>(i * 7919 % 5003 - 2500);
      unit.data<float>()[i] = x_scale * static_cast<float>(scale.number(c.per_channel ? i : 0));
    }
    bias = ops::dequantize(Tensor(whole), Tensor(unit), number(0));
  }
  const auto convolution = c.x.size() == 4 ? &ops::conv2d : &ops::conv3d;
  Tensor y = convolution(ops::dequantize(x, number(x_scale), number(static_cast<float>(c.x_zero))),
                         ops::dequantize(Tensor(weight), Tensor(scale), number(0)), bias, c.stride,
                         c.padding, c.dilation, c.groups, c.x.size() == 4 ? "NCHW" : "NCDHW");
  if (c.relu) y = ops::relu(y);
  if (is_float(c.out)) return y;
  return ops::quantize(y, number(c.out_scale), number(static_cast<float>(c.out_zero)), c.out);
}

const std::vector<ConvCase>& cases() {
  static const std::vector<ConvCase> kCases = {
      {.what = "1x1", .x = {2, 32, 5, 7}, .weight = {48, 32, 1, 1}},
      {.what = "3x3 with padding by the zero point",
       .x = {1, 32, 9, 7},
       .weight = {40, 32, 3, 3},
       .x_zero = 117,
       .padding = 1,
       .per_channel = true,
       .bias = 'i',
       .relu = true},
      {.what = "odd channels",
       .x = {3, 5, 11, 6},
       .weight = {7, 5, 3, 2},
       .x_zero = 9,
       .padding = 1,
       .bias = 'f'},
      {.what = "odd channels, many",
       .x = {2, 37, 6, 6},
       .weight = {35, 37, 3, 3},
       .x_zero = 200,
       .stride = 2,
       .padding = 1,
       .per_channel = true,
       .bias = 'i'},
      {.what = "groups",
       .x = {2, 32, 8, 8},
       .weight = {64, 8, 3, 3},
       .x_zero = 128,
       .padding = 1,
       .groups = 4,
       .per_channel = true,
       .bias = 'i',
       .out_zero = 120},
      {.what = "depthwise",
       .x = {1, 48, 10, 10},
       .weight = {48, 1, 3, 3},
       .x_zero = 61,
       .stride = 2,
       .padding = 1,
       .groups = 48,
       .bias = 'f',
       .out_scale = 0.05f},
      {.what = "signed",
       .x = {2, 32, 6, 5},
       .weight = {32, 32, 3, 3},
       .dtype = DType::kI8,
       .x_zero = -7,
       .padding = 2,
       .dilation = 2,
       .bias = 'i',
       .out = DType::kI8,
       .out_zero = -11},
      {.what = "to floats",
       .x = {2, 32, 6, 5},
       .weight = {32, 32, 3, 3},
       .x_zero = 4,
       .padding = 1,
       .per_channel = true,
       .bias = 'f',
       .relu = true,
       .out = DType::kF32},
      {.what = "conv3d with padding by the zero point",
       .x = {2, 32, 5, 9, 7},
       .weight = {40, 32, 3, 3, 3},
       .x_zero = 117,
       .padding = 1,
       .per_channel = true,
       .bias = 'i',
       .relu = true},
      {.what = "volumes with odd channels",
       .x = {1, 5, 4, 6, 7},
       .weight = {7, 5, 2, 3, 1},
       .x_zero = 9,
       .stride = 2,
       .padding = 1,
       .bias = 'f'},
      {.what = "volumes, windows in planes",
       .x = {2, 32, 3, 8, 8},
       .weight = {32, 32, 1, 3, 3},
       .per_channel = true,
       .bias = 'i'},
      {.what = "volumes, windows across planes",
       .x = {2, 32, 5, 4, 3},
       .weight = {32, 32, 3, 1, 1},
       .x_zero = 30,
       .bias = 'f'},
      {.what = "volumes in groups",
       .x = {1, 32, 4, 6, 6},
       .weight = {64, 8, 3, 3, 3},
       .x_zero = 128,
       .padding = 1,
       .groups = 4,
       .per_channel = true,
       .bias = 'i',
       .out_zero = 120},
      {.what = "volumes, depthwise",
       .x = {1, 48, 4, 6, 6},
       .weight = {48, 1, 3, 3, 3},
       .x_zero = 61,
       .padding = 1,
       .groups = 48,
       .bias = 'f',
       .out_scale = 0.05f},
      {.what = "volumes, signed",
       .x = {2, 32, 5, 6, 5},
       .weight = {32, 32, 3, 3, 3},
       .dtype = DType::kI8,
       .x_zero = -7,
       .padding = 2,
       .dilation = 2,
       .bias = 'i',
       .out = DType::kI8,
       .out_zero = -11},
      {.what = "volumes to floats",
       .x = {2, 32, 3, 6, 5},
       .weight = {32, 32, 3, 3, 3},
       .x_zero = 4,
       .padding = 1,
       .per_channel = true,
       .bias = 'f',
       .relu = true,
       .out = DType::kF32},
  };
  return kCases;
}

TEST(LowerQdq, ConvolutionsMatchFloats) {
  for (const ConvCase& c : cases()) {
    const bool is_signed = c.dtype == DType::kI8;
    const Array x = bytes(c.dtype, c.x, 5, is_signed ? -128 : 0, is_signed ? 127 : 255);
    const Body body = [&](const Tensor& t) { return as_floats(c, t); };
    const Compiled integers = compiled(body, x, false), plain = compiled(body, x, true);
    EXPECT_EQ(count(plain.text, "quantized_conv"), 0) << c.what;
    if (has_integer_kernels(c.dtype, bytes(DType::kI8, c.weight, 1, -64, 64))) {
      EXPECT_EQ(count(integers.text, "quantized_conv"), 1) << c.what;
      EXPECT_EQ(count(integers.text, " = conv2d("), 0) << c.what;
      EXPECT_EQ(count(integers.text, " = conv3d("), 0) << c.what;
      EXPECT_EQ(count(integers.text, "quantize("), 0) << c.what << "\n" << integers.text;
    }
    expect_close(integers.result, plain.result, c.what);
  }
}

struct TransposedCase {
  std::string what;
  Dims x, weight;  ///< weight is [in, out / groups, rows, columns]
  std::vector<int64_t> stride = {2, 2}, padding = {0, 0}, extra = {0, 0}, dilation = {1, 1};
  int64_t groups = 1;
  bool per_channel = true;
  DType out = DType::kU8;
  bool integers = true;  ///< has an integer form
};

/// dequantize → conv2d_transpose with a bias → relu → quantize. The scales of channels vary along
/// the axis that the weight has them on: the first one of depthwise kernels, else the second one.
Tensor as_floats(const TransposedCase& c, const Tensor& x) {
  const int64_t channels = c.weight[1] * c.groups;
  const bool depthwise = c.weight[1] == 1 && c.groups == c.weight[0];
  Dims per_channel(4, 1);
  per_channel[depthwise ? 0 : 1] = depthwise ? channels : c.weight[1];
  const Array scale = c.per_channel ? floats(per_channel, 2, 0.004, 0.01) : Array::scalar(0.01f);
  Tensor y = ops::conv2d_transpose(
      ops::dequantize(x, number(0.02f), number(117)),
      ops::dequantize(Tensor(bytes(DType::kI8, c.weight, 1, -64, 64)), Tensor(scale), number(0)),
      Tensor(floats({channels}, 3, 2)), c.stride, c.padding, c.extra, c.dilation, c.groups);
  y = ops::relu(y);
  return is_float(c.out) ? y : ops::quantize(y, number(0.1f), number(3), c.out);
}

TEST(LowerQdq, TransposedConvolutionsMatchFloats) {
  const TransposedCase cases[] = {
      {.what = "kernel and stride 2", .x = {2, 32, 5, 7}, .weight = {32, 16, 2, 2}},
      {.what = "kernel 4, stride 2",
       .x = {3, 32, 5, 6},
       .weight = {32, 24, 4, 4},
       .padding = {1, 1}},
      {.what = "kernel 3, stride 2, larger results",
       .x = {1, 16, 6, 5},
       .weight = {16, 20, 3, 3},
       .padding = {1, 1},
       .extra = {1, 0}},
      {.what = "stride 1",
       .x = {2, 16, 6, 5},
       .weight = {16, 24, 3, 3},
       .stride = {1, 1},
       .padding = {1, 2}},
      {.what = "other strides for rows and columns",
       .x = {2, 16, 3, 7},
       .weight = {16, 9, 1, 5},
       .stride = {1, 3},
       .padding = {0, 1},
       .extra = {0, 2}},
      {.what = "dilated",
       .x = {2, 16, 6, 5},
       .weight = {16, 8, 3, 3},
       .stride = {1, 2},
       .padding = {2, 1},
       .dilation = {2, 3}},
      {.what = "groups",
       .x = {2, 24, 4, 5},
       .weight = {24, 6, 4, 4},
       .padding = {1, 1},
       .groups = 3},
      {.what = "depthwise",
       .x = {2, 24, 4, 5},
       .weight = {24, 1, 4, 4},
       .padding = {1, 1},
       .groups = 24},
      {.what = "to floats, one scale",
       .x = {2, 16, 4, 5},
       .weight = {16, 8, 3, 3},
       .per_channel = false,
       .out = DType::kF32},
      {.what = "padding beyond the kernel",
       .x = {1, 8, 6, 6},
       .weight = {8, 8, 1, 1},
       .stride = {1, 1},
       .padding = {1, 1},
       .integers = false},
      {.what = "a kernel of one pixel far apart",
       .x = {1, 8, 3, 3},
       .weight = {8, 8, 1, 1},
       .stride = {4, 4},
       .integers = false},
  };
  for (const TransposedCase& c : cases) {
    const Array x = bytes(DType::kU8, c.x, 5, 0, 255);
    const Body body = [&](const Tensor& t) { return as_floats(c, t); };
    const Compiled integers = compiled(body, x, false), plain = compiled(body, x, true);
    EXPECT_EQ(count(plain.text, "quantized_conv"), 0) << c.what;
    EXPECT_EQ(count(plain.text, "conv2d_input_grad("), 1) << c.what;
    const bool depthwise = c.groups == c.x[1];
    if (c.integers &&
        has_integer_kernels(DType::kU8,
                            bytes(DType::kI8, {64, depthwise ? 1 : 8, 2, 2}, 1, -64, 64))) {
      EXPECT_EQ(count(integers.text, "quantized_conv("), 1) << c.what << "\n" << integers.text;
      EXPECT_EQ(count(integers.text, "conv2d_input_grad("), 0) << c.what;
      EXPECT_EQ(count(integers.text, "quantize("), 0) << c.what << "\n" << integers.text;
    } else if (!c.integers) {
      EXPECT_EQ(count(integers.text, "quantized_conv("), 0) << c.what;
    }
    expect_close(integers.result, plain.result, c.what);
  }
}

/// A residual block as quantizers write it: each operation between dequantize and quantize.
Tensor block(const Tensor& x) {
  const Tensor scale = number(0.05f), zero = number(120);
  const auto conv = [&](const Tensor& in, int seed, int64_t size, float out_scale, float out_zero) {
    const Array weight = bytes(DType::kI8, {32, 32, size, size}, seed, -60, 60);
    const Tensor y =
        ops::conv2d(ops::dequantize(in, scale, zero),
                    ops::dequantize(Tensor(weight), number(0.008f), number(0)), {}, 1, size / 2);
    return ops::quantize(y, number(out_scale), number(out_zero), DType::kU8);
  };
  const Tensor first = conv(x, 1, 3, 0.05f, 120), second = conv(first, 2, 1, 0.11f, 101);
  const Tensor sum = ops::relu(ops::dequantize(second, number(0.11f), number(101)) +
                               ops::dequantize(x, scale, zero));
  const Tensor y = ops::quantize(sum, scale, number(0), DType::kU8);
  const Tensor pooled = ops::max_pool2d(ops::dequantize(y, scale, number(0)), 3, 2, 1)[0];
  return ops::quantize(pooled, scale, number(0), DType::kU8);
}

TEST(LowerQdq, FusesAResidualBlock) {
  // The second one is too large to be summed at once.
  for (const Dims& shape : {Dims{2, 32, 9, 9}, Dims{3, 32, 105, 105}}) {
    const Array x = bytes(DType::kU8, shape, 7, 0, 255);
    const Compiled integers = compiled(block, x, false), plain = compiled(block, x, true);
    if (has_integer_kernels(DType::kU8, bytes(DType::kI8, {1}, 1, -60, 60))) {
      EXPECT_EQ(count(integers.text, "quantized_conv"), 2) << integers.text;
      EXPECT_EQ(count(integers.text, "quantize("), 0) << integers.text;
      EXPECT_EQ(count(integers.text, "float32"), count(integers.text, "constant float32"))
          << integers.text;
    }
    expect_close(integers.result, plain.result, "residual block");
  }
}

struct LineCase {
  DType dtype;
  int64_t channels, out_channels, groups, stride, padding, dilation;
  DType out;
};

TEST(LowerQdq, Conv1dMatchesFloats) {
  const LineCase kCases[] = {{DType::kU8, 32, 40, 1, 1, 2, 1, DType::kU8},
                             {DType::kI8, 5, 7, 1, 2, 1, 1, DType::kI8},
                             {DType::kU8, 32, 32, 4, 1, 4, 2, DType::kU8},
                             {DType::kU8, 33, 32, 1, 1, 0, 1, DType::kF32}};
  for (const LineCase& c : kCases) {
    const int least = c.dtype == DType::kU8 ? 0 : -128;
    const Array x = bytes(c.dtype, {2, c.channels, 23}, 5, least, least + 255);
    const Array weight = bytes(DType::kI8, {c.out_channels, c.channels / c.groups, 5}, 1, -64, 64);
    const Body body = [&](const Tensor& t) {
      const Array scale = floats({c.out_channels, 1, 1}, 2, 0.004, 0.01);
      const Tensor line = ops::conv1d(
          ops::dequantize(t, number(0.02f), number(static_cast<float>(least + 100))),
          ops::dequantize(Tensor(weight), Tensor(scale), number(0)),
          Tensor(floats({c.out_channels}, 3, 2)), c.stride, c.padding, c.dilation, c.groups);
      const Tensor y = ops::relu(line);
      return is_float(c.out) ? y : ops::quantize(y, number(0.05f), number(3), c.out);
    };
    const Compiled integers = compiled(body, x, false), plain = compiled(body, x, true);
    const std::string what = str(c.channels, " channels, stride ", c.stride);
    if (has_integer_kernels(c.dtype, weight)) {
      EXPECT_EQ(count(integers.text, "quantized_conv"), 1) << integers.text;
      EXPECT_EQ(count(integers.text, " conv2d("), 0) << integers.text;
      EXPECT_EQ(count(integers.text, " relu("), 0) << integers.text;
    }
    expect_close(integers.result, plain.result, what);
  }
}

/// A residual block of lines as quantizers write it.
Tensor line_block(const Tensor& x) {
  const Tensor scale = number(0.05f), zero = number(120);
  const auto conv = [&](const Tensor& in, int seed, int64_t size, float out_scale, float out_zero) {
    const Array weight = bytes(DType::kI8, {32, 32, size}, seed, -60, 60);
    const Tensor y =
        ops::conv1d(ops::dequantize(in, scale, zero),
                    ops::dequantize(Tensor(weight), number(0.008f), number(0)), {}, 1, size / 2);
    return ops::quantize(y, number(out_scale), number(out_zero), DType::kU8);
  };
  const Tensor first = conv(x, 1, 3, 0.05f, 120), second = conv(first, 2, 1, 0.05f, 120);
  const Tensor sum =
      ops::relu(ops::dequantize(second, scale, zero) + ops::dequantize(first, scale, zero));
  return conv(ops::quantize(sum, scale, zero, DType::kU8), 3, 5, 0.07f, 110);
}

TEST(LowerQdq, StackedConv1dStays4D) {
  const Array x = bytes(DType::kU8, {3, 32, 29}, 7, 0, 255);
  const Compiled integers = compiled(line_block, x, false), plain = compiled(line_block, x, true);
  if (has_integer_kernels(DType::kU8, bytes(DType::kI8, {1}, 1, -60, 60))) {
    EXPECT_EQ(count(integers.text, "quantized_conv"), 3) << integers.text;
    EXPECT_EQ(count(integers.text, "quantize("), 0) << integers.text;
    EXPECT_EQ(count(integers.text, "squeeze("), 2) << integers.text;  // in at first, out at last
    EXPECT_EQ(count(integers.text, "transpose("), 2) << integers.text;
  }
  expect_close(integers.result, plain.result, "a block of lines");
}

// The kernels for processors without VNNI, whatever the machine: asked for by name.

TEST(LowerQdq, OwnConvolutionsMatchFloats) {
  for (const ConvCase& c : cases()) {
    const bool is_signed = c.dtype == DType::kI8;
    const Array x = bytes(c.dtype, c.x, 5, is_signed ? -128 : 0, is_signed ? 127 : 255);
    const Body body = [&](const Tensor& t) { return as_floats(c, t); };
    const Compiled plain = compiled(body, x, true);
    const BackendScope scope("cpu");
    expect_close(compiled(body, x, false).result, plain.result, c.what);
  }
}

TEST(LowerQdq, QuantizeRoundsHalfToEvenAndSaturates) {
  const Array x = Array::from<float>({-0.5f, 0.5f, 1.5f, 2.5f, -1000, 1000, 0.75f}, {7});
  const Body body = [](const Tensor& t) {
    return ops::quantize(t, number(1), number(10), DType::kU8);
  };
  for (const bool exact : {false, true}) {
    const Array y = compiled(body, x, exact).result;
    const std::vector<int64_t> wanted = {10, 10, 12, 12, 0, 255, 11};
    for (int64_t i = 0; i < y.size(); ++i) EXPECT_EQ(y.integer(i), wanted[static_cast<size_t>(i)]);
  }
}

TEST(LowerQdq, Im2colByPixels) {
  for (const int64_t channels : {2, 3, 5, 8, 9}) {
    const Array x = bytes(DType::kU8, {2, channels, 5, 21}, 3, 0, 255);
    // Pooling of single pixels reads its operand packed.
    const Body body = [](const Tensor& t) {
      return ops::max_pool2d(ops::transpose(t, {0, 2, 3, 1}), 1, 1, 0, false, false, "NHWC")[0];
    };
    const Array y = compiled(body, x, false).result;
    ASSERT_EQ(y.shape, (Dims{2, 5, 21, channels}));
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t pixel = i / channels;
      const int64_t from = (pixel / 105 * channels + i % channels) * 105 + pixel % 105;
      ASSERT_EQ(y.integer(i), x.integer(from)) << channels << " channels, element " << i;
    }
  }
}

TEST(LowerQdq, EmptyBatch) {
  const Body body = [](const Tensor& t) { return as_floats(cases()[0], t); };
  EXPECT_EQ(compiled(body, Array::empty(DType::kU8, {0, 32, 5, 7}), false).result.size(), 0);
}

}  // namespace
}  // namespace paddle
