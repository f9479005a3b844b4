// Quantized matrix products and constants on integer kernels: the same numbers as in floats, up to
// one step where a value lies between two.

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "ops/core/backend.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "support/quantized_graphs.h"

namespace paddle {
namespace {

using namespace testing_support;

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
          if (has_int8_matmul({})) {
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
    EXPECT_EQ(count(integers.text, "quantized_matmul"), has_int8_matmul({}) ? 1 : 0);
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
  EXPECT_EQ(count(integers.text, "quantized_matmul"), has_int8_matmul({}) ? 1 : 0);
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

}  // namespace
}  // namespace paddle
