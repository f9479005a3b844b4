// Quantized graphs on integer kernels: the same numbers as in floats, up to one step where a value
// lies between two, and none of the floats left where the integers serve.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <tuple>

#include "ir/tracer.h"
#include "ops/core/backend.h"
#include "ops/core/kernel.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"
#include "support/numbers.h"

namespace paddle {
namespace {

using namespace testing_support;

using Body = std::function<Tensor(const Tensor&)>;

Array bytes(DType dtype, const Dims& shape, int seed, int least, int greatest) {
  Array a = Array::empty(dtype, shape);
  Generator generator(static_cast<uint32_t>(seed) * 2654435761u + 1);
  for (int64_t i = 0; i < a.size(); ++i) {
    const int value =
        least + static_cast<int>(generator.next() % static_cast<uint32_t>(greatest - least + 1));
    if (dtype == DType::kU8)
      a.data<uint8_t>()[i] = static_cast<uint8_t>(value);
    else
      a.data<int8_t>()[i] = static_cast<int8_t>(value);
  }
  return a;
}

Array floats(const Dims& shape, int seed, double scale, double shift = 0) {
  Array a = Array::empty(DType::kF32, shape);
  Generator generator(static_cast<uint32_t>(seed) * 2654435761u + 1);
  for (int64_t i = 0; i < a.size(); ++i) {
    a.data<float>()[i] = static_cast<float>(shift + scale * generator.number());
  }
  return a;
}

Tensor number(float value) { return Tensor(Array::scalar<float>(value)); }

struct Compiled {
  std::shared_ptr<ir::Function> function;
  std::string text;
  Array result;
};

/// The function of one input, traced for any batch and compiled; `exact` leaves the integers alone.
Compiled compiled(const Body& body, const Array& x, bool exact) {
  runtime::register_backends();
  auto function = std::make_shared<ir::Function>("main");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    Shape shape = to_shape(x.shape);
    shape[0] = Dim::symbol("batch");
    const Tensor y = body(tracer.input({ir::PortKind::kValue, "x"}, {x.dtype, shape}));
    tracer.output({ir::PortKind::kValue, "y"}, y);
  }
  runtime::optimize(*function, {.exact = exact});
  ir::verify(*function);
  runtime::Executable executable(function);
  const Array y = executable.run({x})[0].contiguous();
  Array copy = Array::empty(y.dtype, y.shape);  // the executable keeps its results' memory
  std::memcpy(copy.raw(), y.raw(), static_cast<size_t>(storage_bytes(y.dtype, y.size())));
  return {function, ir::print(*function), copy};
}

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

/// Integers may differ by one step, in few places; floats by rounding.
void expect_close(const Array& a, const Array& b, const std::string& what) {
  ASSERT_EQ(a.dtype, b.dtype) << what;
  ASSERT_EQ(a.shape, b.shape) << what;
  int64_t apart = 0, distinct = 0;
  double largest = 1e-30, most = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a.number(i) - b.number(i));
    apart += difference > 0;
    distinct += i > 0 && b.number(i) != b.number(0);
    most = std::max(most, difference);
    largest = std::max(largest, std::abs(b.number(i)));
  }
  EXPECT_TRUE(distinct > 0 || a.size() < 2)
      << what << ": the case says nothing, all values are equal";
  if (is_float(a.dtype)) {
    EXPECT_LE(most / largest, 2e-6) << what;
    return;
  }
  EXPECT_LE(most, a.dtype == DType::kI32 ? 0 : 1) << what;
  EXPECT_LE(apart, 1 + a.size() / 500) << what;
}

bool has_integer_kernels(DType x, const Array& weight) {
  runtime::register_backends();
  return has_int8_kernel(Device::cpu(), x, weight);
}

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

TEST(LowerQdq, MatmulsMatchFloats) {
  for (const bool per_column : {false, true})
    for (const bool turned : {false, true})
      for (const int64_t rows : {1, 7})
        for (const DType out : {DType::kU8, DType::kI8, DType::kF32}) {
          const Array x = bytes(DType::kU8, {rows, 3, 67}, 1, 0, 255);
          const Array weight = bytes(DType::kI8, turned ? Dims{45, 67} : Dims{67, 45}, 2, -64, 64);
          const Body body = [&](const Tensor& t) {
            const Array scale = per_column ? floats(turned ? Dims{45, 1} : Dims{45}, 3, 0.004, 0.01)
                                           : Array::scalar(0.01f);
            Tensor y = ops::matmul(ops::dequantize(t, number(0.03f), number(131)),
                                   ops::dequantize(Tensor(weight), Tensor(scale), number(0)), false,
                                   turned);
            y = y + Tensor(floats({45}, 4, 3));
            if (is_float(out)) return ops::gelu(y);
            return ops::quantize(ops::clip(y, -2.0, 9.5), number(0.07f), number(5), out);
          };
          const Compiled integers = compiled(body, x, false), plain = compiled(body, x, true);
          const std::string what = str(per_column ? "per column " : "", turned ? "turned " : "",
                                       rows, " rows to ", text(out));
          if (has_integer_kernels(DType::kU8, weight)) {
            EXPECT_EQ(count(integers.text, "quantized_linear"), 1) << what;
            EXPECT_EQ(count(integers.text, " matmul("), 0) << what;
          }
          expect_close(integers.result, plain.result, what);
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

TEST(LowerQdq, DynamicallyQuantizedMatmul) {
  const Array x = floats({4, 6, 96}, 1, 3, 0.7);
  const Array weight = bytes(DType::kI8, {96, 33}, 2, -64, 64);
  const Body body = [&](const Tensor& t) {
    const Tensors q = ops::quantize_dynamic(t);
    const Tensor sums = ops::quantized_linear(q[0], Tensor(weight), q[2]);
    const Tensor y = ops::cast(sums, DType::kF32) * (q[1] * number(0.01f));
    return ops::gelu(y + Tensor(floats({33}, 3, 1)));
  };
  const Compiled integers = compiled(body, x, false), plain = compiled(body, x, true);
  if (has_integer_kernels(DType::kU8, weight)) {
    EXPECT_EQ(count(integers.text, "quantized_linear"), 1);
    EXPECT_EQ(count(integers.text, "int32"), 0) << integers.text;
  }
  expect_close(integers.result, plain.result, "dynamic");
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

/// Scores or mixtures of heads that lie together in bytes [batch, 9, 3, 4, 32] with their queries,
/// keys and values.
Tensor product_of_heads(const Tensor& x, int zero, bool turned, bool scores, DType out) {
  const auto part = [&](int64_t which) {
    const Tensor one = ops::strided_slice(x, {2}, {Dim(which)}, {Dim(which + 1)}, {1});
    return ops::transpose(ops::squeeze(one, std::vector<int64_t>{2}), {0, 2, 1, 3});
  };
  const auto numbers = [&](const Tensor& t) {
    return ops::dequantize(t, number(0.02f), number(static_cast<float>(zero)));
  };
  Tensor y;
  if (scores && turned)
    y = ops::matmul(numbers(part(0)), numbers(part(1)), false, true);
  else if (scores)
    y = ops::matmul(numbers(part(0)), numbers(ops::transpose(part(1), {0, 1, 3, 2})));
  else
    y = ops::matmul(numbers(part(1)), numbers(part(2)), true, false);
  if (is_float(out)) return y;
  return ops::quantize(y, number(0.3f), number(out == DType::kU8 ? 131 : 2), out);
}

TEST(LowerQdq, MatmulsOfActivationsMatchFloats) {
  for (const DType dtype : {DType::kU8, DType::kI8})
    for (const bool turned : {false, true})
      for (const bool scores : {false, true})
        for (const DType out : {DType::kU8, DType::kI8, DType::kF32}) {
          const int least = dtype == DType::kU8 ? 0 : -128;
          const Array x = bytes(dtype, {2, 9, 3, 4, 32}, 3, least, least + 255);
          const Body body = [&](const Tensor& t) {
            return product_of_heads(t, least + 125, turned, scores, out);
          };
          const Compiled integers = compiled(body, x, false), plain = compiled(body, x, true);
          const std::string what = str(text(dtype), " to ", text(out), scores ? " scores" : "");
          if (has_int8_matmul(Device::cpu())) {
            EXPECT_EQ(count(integers.text, "quantized_matmul"), 1) << integers.text;
            EXPECT_EQ(count(integers.text, "quantize("), 0) << integers.text;
          } else {
            EXPECT_EQ(count(integers.text, "quantized_matmul"), 0) << integers.text;
          }
          expect_close(integers.result, plain.result, what);
        }
}

TEST(LowerQdq, MatmulsOfActivationsWithAnyStrides) {
  // Views of one tensor: heads lie next to each other, keys run backwards, the residual is turned.
  for (const DType dtype : {DType::kU8, DType::kI8}) {
    const int least = dtype == DType::kU8 ? 0 : -128;
    const Array x = bytes(dtype, {2, 16, 24, 5}, 4, least, least + 255);
    const Body body = [&](const Tensor& t) {
      const Tensor heads = ops::transpose(t, {0, 3, 1, 2}),
                   keys = ops::strided_slice(ops::transpose(t, {0, 3, 2, 1}), {2}, {Dim(-1)},
                                             {Dim(-25)}, {-1}),
                   residual = ops::transpose(ops::strided_slice(t, {2}, {Dim(3)}, {Dim(19)}, {1}),
                                             {0, 3, 2, 1});
      const Tensor zero = number(static_cast<float>(least + 120));
      return ops::quantized_matmul(heads, keys, zero, number(2e-4f), {}, number(0.0507f), zero,
                                   residual, number(0.0713f), zero, number(0.1219f), zero,
                                   number(static_cast<float>(least + 77)), false, false, dtype, 0.0,
                                   {}, dtype);
    };
    const Compiled integers = compiled(body, x, false), plain = compiled(body, x, true);
    EXPECT_EQ(count(integers.text, "quantized_matmul"), has_int8_matmul(Device::cpu()) ? 1 : 0);
    expect_close(integers.result, plain.result, text(dtype));
  }
}

TEST(LowerQdq, MatmulsOfActivationsAccumulateExactly) {
  const Array x = floats({3, 7, 300}, 1, 3, 0.4);
  const Body body = [&](const Tensor& t) {
    // Zero points are known only when it runs.
    const Tensors q = ops::quantize_dynamic(t), k = ops::quantize_dynamic(ops::exp(t));
    return ops::quantized_matmul(q[0], k[0], q[2], {}, {}, {}, {}, {}, {}, {}, {}, {}, k[2], false,
                                 true);
  };
  const Compiled integers = compiled(body, x, false), plain = compiled(body, x, true);
  EXPECT_EQ(count(integers.text, "quantized_matmul"), has_int8_matmul(Device::cpu()) ? 1 : 0);
  expect_close(integers.result, plain.result, "sums");
}

TEST(LowerQdq, AccumulatesExactly) {
  const Array x = bytes(DType::kU8, {3, 700}, 1, 0, 255);
  const Array weight = bytes(DType::kI8, {700, 9}, 2, -128, 127);
  const Body body = [&](const Tensor& t) {
    return ops::quantized_linear(t, Tensor(weight), number(100));
  };
  expect_close(compiled(body, x, false).result, compiled(body, x, true).result, "sums");
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

TEST(LowerQdq, OwnMatmulKernelsRequantizeAsDefined) {
  // More rows, terms and columns than a block, a part and a strip; and fewer than a tile.
  for (const auto& [rows, depth, columns] : {std::tuple<int64_t, int64_t, int64_t>{300, 1027, 150},
                                             {5, 33, 9},
                                             {1, 1, 1},
                                             {130, 2, 300}})
    for (const DType x_type : {DType::kU8, DType::kI8})
      for (const DType residual_type : {DType::kBool, DType::kU8, DType::kI8, DType::kF32})
        for (const DType out : {DType::kU8, DType::kI8, DType::kF32})
          for (const bool whole : {false, true}) {
            // A compiled graph fuses a residual of the result's size.
            if (residual_type != DType::kBool && item_size(residual_type) != item_size(out))
              continue;
            const bool is_signed = x_type == DType::kI8;
            const Array x =
                bytes(x_type, {rows, depth}, 1, is_signed ? -128 : 0, is_signed ? 127 : 255);
            const Array weight = bytes(DType::kI8, {depth, columns}, 2, -128, 127);
            const float size = 1.0f / (100 * std::sqrt(static_cast<float>(depth)));
            const Body body = [&, columns = columns](const Tensor& t) {
              Tensor residual, residual_scale, residual_zero;
              // The residual is computed from x, so that it has the rows of the batch.
              if (residual_type != DType::kBool) {
                const Tensor first = ops::slice(ops::cast(t, DType::kF32), {1}, {0}, {1});
                const Tensor wide = first * 0.03 + Tensor(floats({columns}, 6, 3.0));
                residual_scale = residual_type == DType::kF32 ? Tensor() : number(0.04f);
                residual_zero = residual_type == DType::kU8 ? number(99) : Tensor();
                residual =
                    residual_type == DType::kF32
                        ? wide
                        : ops::quantize(wide, number(0.04f),
                                        residual_zero ? residual_zero : number(0), residual_type);
              }
              const Tensor bias =
                  whole ? Tensor(bytes(DType::kI8, {columns}, 7, -100, 100).cast(DType::kI32))
                        : Tensor(floats({columns}, 8, 2.0));
              const bool floats_out = out == DType::kF32;
              return ops::quantized_linear(
                  t, Tensor(weight), number(is_signed ? -5 : 121),
                  Tensor(floats({columns}, 3, 0.3 * size, size)), bias, number(0.05f),
                  number(out == DType::kU8 ? 100 : 3), residual, residual_scale, residual_zero,
                  floats_out ? Tensor() : number(0.07f), floats_out ? Tensor() : number(17),
                  out == DType::kU8 ? DType::kU8 : DType::kI8, -2.5,
                  whole ? std::optional(9.0) : std::nullopt, out);
            };
            const std::string what = str(rows, "x", depth, "x", columns, " ", text(x_type), " + ",
                                         text(residual_type), " to ", text(out));
            const Compiled plain = compiled(body, x, true);
            EXPECT_EQ(count(plain.text, "quantized_linear"), 0) << what;
            const BackendScope scope("cpu");
            const Compiled own = compiled(body, x, false);
            if (has_integer_kernels(x_type, weight)) {
              EXPECT_EQ(count(own.text, "quantized_linear"), 1) << what;
            }
            if (rows > 1) {
              expect_close(own.result, plain.result, what);
            } else {
              EXPECT_EQ(own.result.number(0), plain.result.number(0)) << what;
            }
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

TEST(LowerQdq, RequantizesConstants) {
  const Array weight = bytes(DType::kI8, {32, 24}, 3, -63, 63);
  const Body body = [&](const Tensor& x) {
    const Tensor given = ops::dequantize(Tensor(weight), number(0.01f), number(0));
    const Tensor stepped =
        ops::dequantize(ops::quantize(given, number(0.0125f), number(130), DType::kU8),
                        number(0.0125f), number(130));
    return ops::matmul(ops::dequantize(x, number(0.02f), number(7)), stepped);
  };
  const Array x = bytes(DType::kU8, {3, 32}, 4, 0, 255);
  const Compiled integers = compiled(body, x, false), plain = compiled(body, x, true);
  if (has_integer_kernels(DType::kU8, bytes(DType::kI8, {1}, 1, -51, 51))) {
    EXPECT_EQ(count(integers.text, "quantized_linear("), 1) << integers.text;
    EXPECT_EQ(count(integers.text, "quantize("), 0) << integers.text;
  }
  expect_close(integers.result, plain.result, "weights in other steps");
}

TEST(LowerQdq, RearrangesConstantsWithScalesOfChannels) {
  // The gates of a recurrent layer in another order.
  const Array weight = bytes(DType::kI8, {1, 24, 32}, 3, -63, 63),
              scale = floats({1, 24, 1}, 5, 0.004, 0.01);
  const Body body = [&](const Tensor& x) {
    const Tensor given = ops::squeeze(
        ops::dequantize(Tensor(weight), Tensor(scale), Tensor(Array::scalar(int8_t{0}))),
        std::vector<int64_t>{0});
    const auto rows = [&](int64_t from, int64_t to) {
      return ops::strided_slice(given, {0}, {Dim(from)}, {Dim(to)}, {1});
    };
    return ops::matmul(ops::dequantize(x, number(0.02f), number(7)),
                       ops::concat({rows(8, 16), rows(16, 24), rows(0, 8)}, 0), false, true);
  };
  const Array x = bytes(DType::kU8, {3, 32}, 4, 0, 255);
  const Compiled integers = compiled(body, x, false), plain = compiled(body, x, true);
  if (has_integer_kernels(DType::kU8, bytes(DType::kI8, {24, 32}, 1, -63, 63))) {
    EXPECT_EQ(count(integers.text, "quantized_linear("), 1) << integers.text;
    EXPECT_EQ(count(integers.text, "dequantize("), 0) << integers.text;
  }
  expect_close(integers.result, plain.result, "weights in another order");
}

TEST(LowerQdq, GathersRowsOfIntegers) {
  const Array table = bytes(DType::kI8, {50, 16}, 3, -127, 127),
              scale = floats({50, 1}, 5, 0.004, 0.01);
  Array index = Array::empty(DType::kI64, {4, 3});
  for (int64_t i = 0; i < index.size(); ++i) index.data<int64_t>()[i] = i * 17 % 50;
  const Body body = [&](const Tensor& x) {
    return ops::embedding(
        x, ops::dequantize(Tensor(table), Tensor(scale), Tensor(Array::scalar(int8_t{0}))));
  };
  const Compiled integers = compiled(body, index, false), plain = compiled(body, index, true);
  // The table stays in bytes, and only the rows that are read become floats.
  EXPECT_EQ(count(integers.text, "constant int8[50, 16]"), 1) << integers.text;
  EXPECT_EQ(count(integers.text, "float32[50, 16]"), 0) << integers.text;
  for (int64_t i = 0; i < plain.result.size(); ++i)
    ASSERT_EQ(integers.result.number(i), plain.result.number(i)) << i;
}

TEST(LowerQdq, EmptyBatch) {
  const Body body = [](const Tensor& t) { return as_floats(cases()[0], t); };
  EXPECT_EQ(compiled(body, Array::empty(DType::kU8, {0, 32, 5, 7}), false).result.size(), 0);
}

}  // namespace
}  // namespace paddle
