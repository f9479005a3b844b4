// Quantized operators of com.microsoft.

#include <algorithm>
#include <array>
#include <cstring>

#include "onnx/ops/helpers.h"
#include "onnx/ops/quantization.h"
#include "ops/core/call.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/quantization.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// Dequantizes inputs i (values), i + 1 (scale) and i + 2 (zero point).
Tensor dequantize_input(const NodeCall& c, size_t i) {
  const Tensor zero =
      c.has_input(i + 2) ? scalar_if_single(c.tensor(i + 2)) : scalar(0, DType::kF32);
  return ops::dequantize(c.tensor(i), scalar_if_single(c.tensor(i + 1)), zero);
}

/// Quantizes y with the scale and zero point of inputs i and i + 1, to the dtype of the zero point
/// or of the node's input.
Tensor quantize_output(const NodeCall& c, const Tensor& y, size_t i, DType default_value) {
  const DType to = c.has_input(i + 1) ? c.tensor(i + 1).dtype() : default_value;
  const Tensor zero =
      c.has_input(i + 1) ? scalar_if_single(c.tensor(i + 1)) : scalar(0, DType::kF32);
  return ops::quantize(y, scalar_if_single(c.tensor(i)), zero, to);
}

template <Tensor (*F)(const Tensor&, const Tensor&)>
Values of_two(NodeCall& c) {
  return {quantize_output(c, F(dequantize_input(c, 0), dequantize_input(c, 3)), 6,
                          c.tensor(0).dtype())};
}
template <class F>
Values of_one(NodeCall& c, F&& f) {
  return {quantize_output(c, f(dequantize_input(c, 0)), 3, c.tensor(0).dtype())};
}

Values sigmoid(NodeCall& c) {
  return of_one(c, [](const Tensor& x) { return ops::sigmoid(x); });
}
Values leaky_relu(NodeCall& c) {
  return of_one(c,
                [&](const Tensor& x) { return ops::leaky_relu(x, c.float_attr("alpha", 0.01)); });
}
Values softmax(NodeCall& c) {
  return of_one(c, [&](const Tensor& x) { return ops::softmax(x, c.int_attr("axis", -1)); });
}
Values global_average_pool(NodeCall& c) {
  const bool last = c.bool_attr("channels_last", false);
  return of_one(c, [&](const Tensor& x) {
    std::vector<int64_t> axes;
    for (int64_t i = last ? 1 : 2; i < x.ndim() - (last ? 1 : 0); ++i) axes.push_back(i);
    return ops::mean(x, axes, true);
  });
}
/// Applies a rule to channels-last data.
template <Values (*F)(NodeCall&)>
Values channels_last(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  c.check(x.ndim() >= 3, "the input is ", x.type(), ", its rank must be 3 or more");
  std::vector<int64_t> before = {0, x.ndim() - 1}, after = {0};
  for (int64_t i = 1; i < x.ndim() - 1; ++i) before.push_back(i), after.push_back(i + 1);
  after.push_back(1);
  Values inputs;
  for (size_t i = 0; i < c.input_count(); ++i)
    inputs.push_back(c.has_input(i) ? c.value(i) : Value());
  inputs[0] = ops::transpose(x, before);
  NodeCall inner(c.node(), c.opset(), inputs, c.evaluator(), c.scope());
  return {ops::transpose(F(inner)[0].tensor(), after)};
}
template <Values (*F)(NodeCall&)>
Values in_either_order(NodeCall& c) {
  return c.bool_attr("channels_last", false) ? channels_last<F>(c) : F(c);
}

Values average_pool(NodeCall& c) {
  const Values inputs = {dequantize_input(c, 0)};
  NodeCall standard_call(c.node(), 19, inputs, c.evaluator(), c.scope());
  return {quantize_output(c, average_pool_rule(standard_call)[0].tensor(), 3, c.tensor(0).dtype())};
}

Values concat(NodeCall& c) {
  Tensors parts;
  for (size_t i = 2; i + 1 < c.input_count(); i += 3) parts.push_back(dequantize_input(c, i));
  c.check(!parts.empty(), "there are no inputs");
  const Tensor all = ops::concat(parts, c.axis(c.int_attr("axis", 1), parts[0].ndim()));
  return {quantize_output(c, all, 0, c.tensor(2).dtype())};
}

Values where(NodeCall& c) {
  const Tensor y = ops::where(c.tensor(0), dequantize_input(c, 1), dequantize_input(c, 4));
  return {quantize_output(c, y, 7, c.tensor(1).dtype())};
}

/// Without an output scale, the result is float32.
Values gemm(NodeCall& c) {
  const bool turned = c.bool_attr("transB", false);
  const Tensor scale =
      scalar_if_single(c.tensor(1)) * scalar_if_single(c.tensor(4)) * c.float_attr("alpha", 1);
  const bool known_steps = !c.has_input(7) || (is_single_element(c.tensor(7)) && c.has_input(8) &&
                                               is_single_element(c.tensor(8)));
  if (!c.bool_attr("transA", false) && known_steps) {
    const Tensor right = turned ? ops::transpose(c.tensor(3), {1, 0}) : c.tensor(3);
    const Tensor bias = c.optional_tensor(6);
    const bool fits = !bias || (bias.ndim() == 1 && bias.dim(0).same(right.dim(1)));
    const Tensors w = int8_weights(c.tensor(0), c.tensor(2), right, c.optional_tensor(5));
    if (!w.empty() && fits)
      return {quantized_matmul(c.tensor(0), w, c.tensor(2), scale, bias, c.optional_tensor(7),
                               c.optional_tensor(8))};
  }
  Tensor b = ops::cast(c.tensor(3), DType::kF32);
  const auto per_column = [&](const Tensor& v) {
    return turned && !is_single_element(v) && v.ndim() == 1 ? ops::unsqueeze(v, {1}) : v;
  };
  if (c.has_input(5)) b = b - ops::cast(per_column(c.tensor(5)), DType::kF32);
  const Tensor a = ops::cast(c.tensor(0), DType::kF32) - ops::cast(c.tensor(2), DType::kF32);
  Tensor sums = ops::matmul(a, b, c.bool_attr("transA", false), turned);
  if (c.has_input(6)) sums = sums + ops::cast(c.tensor(6), DType::kF32);
  const Tensor y = sums * scale;
  return {c.has_input(7) ? quantize_output(c, y, 7, DType::kU8) : y};
}

Values matmul_integer16(NodeCall& c) {
  const auto wide = [&](size_t i) { return ops::cast(c.tensor(i), DType::kF64); };
  return {ops::cast(ops::matmul(wide(0), wide(1)), DType::kI32)};
}

Values dynamic_matmul(NodeCall& c) {
  const Tensors q = ops::quantize_dynamic(c.tensor(0));
  const Tensor y = quantized_matmul_to_float(c, q[0], q[2], q[1], 1, 2, 3);
  return {c.has_input(4) ? y + c.tensor(4) : y};
}

Values matmul_to_float(NodeCall& c) {
  const Tensor y =
      quantized_matmul_to_float(c, c.tensor(0), c.optional_tensor(4), c.tensor(2), 1, 3, 5);
  return {c.has_input(6) ? y + c.tensor(6) : y};
}

// --- packed weights ---

/// Unpacks small integers from bytes, [rows, columns].
Tensor unpack(const NodeCall& c, const Array& bytes, int64_t bits, int64_t rows) {
  c.check(bits == 2 || bits == 4 || bits == 8, "weights of ", bits, " bits are not supported");
  c.check(bytes.dtype == DType::kU8 && rows > 0 && bytes.size() % rows == 0,
          "packed weights must be whole rows of bytes");
  Array view = bytes;
  view.dtype = bits == 2 ? DType::kU2 : bits == 4 ? DType::kU4 : DType::kU8;
  view.shape = {rows, bytes.size() / rows * (8 / bits)};
  view.strides = contiguous_strides(view.shape);
  // Offsets of packed dtypes count elements.
  view.offset = bytes.offset * (8 / bits);
  if (bits < 8 && bytes.offset != 0) {
    Array own = Array::empty(view.dtype, view.shape);
    std::copy_n(static_cast<const std::byte*>(bytes.raw()), bytes.size(), own.storage->data());
    view = own;
  }
  return Tensor(view);
}

Values matmul_nbits(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const int64_t block = c.int_attr("block_size", 32);
  c.check(block >= 1 && block <= 1 << 16, "block_size is out of range");
  if (c.has_input(3)) c.constant_array(3);
  const Tensor w =
      dequantize_blocks(c, c.constant_array(1), c.tensor(2), c.has_input(3) ? c.value(3) : Value(),
                        c.int_attr("bits", 4), c.int_attr("N", 0), c.int_attr("K", 0), block,
                        c.has_input(4) ? c.constant_ints(4) : std::vector<int64_t>());
  const Tensor y = ops::matmul(x, ops::cast(w, x.dtype()), false, true);
  return {c.has_input(5) ? y + c.tensor(5) : y};
}

/// Blocks of 32 4-bit weights per column: scale, zero point (kind 1), and 16 bytes with the first
/// half of the weights in the low nibbles.
Values matmul_fpq4(NodeCall& c) {
  constexpr int64_t kBlock = 32;
  const int64_t kind = c.int_attr("blk_quant_type", 1);
  c.check(kind == 0 || kind == 1, "unknown blk_quant_type ", kind);
  const Array bytes = c.constant_array(1).contiguous();
  const auto shape = c.constant_ints(2);
  c.check(shape.size() == 2 && shape[0] > 0 && shape[1] > 0 &&
              shape[0] <= (int64_t{1} << 40) / shape[1],
          "B_shape must be two sizes");
  const int64_t k = shape[0], n = shape[1], blocks = (k + kBlock - 1) / kBlock;
  const int64_t head = 4 + kind, whole = head + kBlock / 2;
  c.check(bytes.dtype == DType::kU8 && bytes.size() == n * blocks * whole,
          "the packed weights do not match ", k, " rows of ", n);
  Array w = Array::empty(DType::kF32, {n, k});
  for (int64_t i = 0; i < n * blocks; ++i) {
    const uint8_t* const block = bytes.data<uint8_t>() + i * whole;
    float scale = 0;
    std::memcpy(&scale, block, sizeof(scale));
    const int zero = kind == 1 ? block[4] : 8;
    const int64_t first = i % blocks * kBlock;
    for (int64_t t = 0; t < std::min(kBlock, k - first); ++t) {
      const uint8_t byte = block[head + t % (kBlock / 2)];
      const int value = t < kBlock / 2 ? byte & 15 : byte >> 4;
      w.data<float>()[i / blocks * k + first + t] = scale * static_cast<float>(value - zero);
    }
  }
  return {ops::matmul(c.tensor(0), Tensor(w), false, true)};
}

/// 4-bit weights as indices into 16 levels (FP4 or NF4), two to a byte with the first in the high
/// nibble, scaled by the absolute maximum of their block.
Values matmul_bnb4(NodeCall& c) {
  constexpr std::array<float, 16> kFloat4 = {
      0.0f,  5.208333333e-03f,  0.66666667f,  1.0f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
      -0.0f, -5.208333333e-03f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
  constexpr std::array<float, 16> kNormal4 = {-1.0f,
                                              -0.6961928009986877f,
                                              -0.5250730514526367f,
                                              -0.39491748809814453f,
                                              -0.28444138169288635f,
                                              -0.18477343022823334f,
                                              -0.09105003625154495f,
                                              0.0f,
                                              0.07958029955625534f,
                                              0.16093020141124725f,
                                              0.24611230194568634f,
                                              0.33791524171829224f,
                                              0.44070982933044434f,
                                              0.5626170039176941f,
                                              0.7229568362236023f,
                                              1.0f};
  const int64_t n = c.int_attr("N", 0), k = c.int_attr("K", 0), block = c.int_attr("block_size", 0);
  const Array bytes = c.constant_array(1), sizes = c.constant_array(2).cast(DType::kF32);
  c.check(n > 0 && k > 0 && block > 0 && k <= (int64_t{1} << 40) / n,
          "N, K or block_size is missing");
  c.check(bytes.dtype == DType::kU8 && bytes.size() == (n * k + 1) / 2 &&
              sizes.size() == (n * k + block - 1) / block,
          "the packed weights do not match ", n, " rows of ", k);
  const auto& numbers = c.int_attr("quant_type", 1) == 0 ? kFloat4 : kNormal4;
  Array w = Array::empty(DType::kF32, {n, k});
  for (int64_t i = 0; i < n * k; ++i) {
    const uint8_t byte = bytes.data<uint8_t>()[i / 2];
    const size_t index = i % 2 == 0 ? byte >> 4 : byte & 15;
    w.data<float>()[i] = numbers[index] * sizes.data<float>()[i / block];
  }
  const Tensor& x = c.tensor(0);
  return {ops::matmul(x, ops::cast(Tensor(w), x.dtype()), false, true)};
}

/// Gather from a block-quantized packed table along an axis; zeros for indices out of range. Byte
/// tables are packed along the last axis and gathered along the first.
Values gather_block_quantized(NodeCall& c) {
  const Array table = c.constant_array(0);
  const auto rank = static_cast<int64_t>(table.shape.size());
  c.check(rank >= 1, "the table is a scalar");
  const int64_t along = c.axis(c.int_attr("gather_axis", 0), rank),
                axis = c.axis(c.int_attr("quantize_axis", 1), rank);
  const int64_t block = c.int_attr("block_size", 128), bits = c.int_attr("bits", 4);
  c.check(block >= 1 && block <= 1 << 16, "block_size is out of range");
  Shape shape = to_shape(table.shape);
  Tensor w;
  if (table.dtype == DType::kU8) {
    c.check(rank >= 2 && along == 0 && axis == rank - 1,
            "bytes are quantized along the last axis and gathered along the first one");
    int64_t rows = 1;
    for (int64_t i = 0; i + 1 < rank; ++i) rows *= table.shape[static_cast<size_t>(i)];
    if (c.has_input(3)) c.constant_array(3);
    const int64_t columns = table.shape.back() * (8 / std::clamp<int64_t>(bits, 1, 8));
    shape.back() = columns;
    w = ops::reshape(dequantize_blocks(c, table, c.tensor(2), c.has_input(3) ? c.value(3) : Value(),
                                       bits, rows, columns, block),
                     shape);
  } else {
    std::vector<int64_t> block_of;
    for (int64_t i = 0; i < table.shape[static_cast<size_t>(axis)]; ++i)
      block_of.push_back(i / block);
    const auto for_elements = [&](size_t i) {
      return ops::index_select(ops::cast(c.tensor(i), DType::kF32), int_vector(block_of), axis);
    };
    w = ops::cast(Tensor(table), DType::kF32);
    if (c.has_input(3)) w = w - for_elements(3);
    w = w * for_elements(2);
  }
  const Tensor given = ops::reshape(ops::cast(c.tensor(1), DType::kI64), Shape{-1});
  const Tensor size = dim_value(w.dim(along), DType::kI64), zero = int_scalar(0);
  const Tensor index = ops::where(ops::less_than(given, zero), given + size, given);
  const Tensor inside =
      ops::logical_and(ops::greater_equal(index, zero), ops::less_than(index, size));
  Tensor taken = ops::index_select(w, ops::where(inside, index, zero), along);
  Shape each(static_cast<size_t>(rank), Dim(1));
  each[static_cast<size_t>(along)] = inside.dim(0);
  taken = ops::where(ops::reshape(inside, each), taken, scalar(0, taken.dtype()));
  Shape out(shape.begin(), shape.begin() + along);
  for (int64_t i = 0; i < c.tensor(1).ndim(); ++i) out.push_back(c.tensor(1).dim(i));
  out.insert(out.end(), shape.begin() + along + 1, shape.end());
  return {ops::cast(ops::reshape(taken, out), c.tensor(2).dtype())};
}

/// Weights are transposed (inputs before gates), with a scale per direction or per gate row.
Values dynamic_quantize_lstm(NodeCall& c) {
  Values inputs;
  for (size_t i = 0; i < 8; ++i) inputs.push_back(c.has_input(i) ? c.value(i) : Value());
  const auto weight = [&](size_t i, size_t scale) {
    Tensor w = ops::cast(c.tensor(i), DType::kF32);
    const auto fitted = [&](const Tensor& v) {
      const Tensor wide = ops::cast(v, DType::kF32);
      return wide.ndim() == 1 ? ops::reshape(wide, {wide.dim(0), 1, 1}) : ops::unsqueeze(wide, {1});
    };
    if (c.has_input(scale + 1)) w = w - fitted(c.tensor(scale + 1));
    return ops::transpose(w * fitted(c.tensor(scale)), {0, 2, 1});
  };
  inputs[1] = weight(1, 8);
  inputs[2] = weight(2, 10);
  NodeCall standard_call(c.node(), 14, inputs, c.evaluator(), c.scope());
  return dynamic_quantize_lstm_rule(standard_call);
}

}  // namespace

Tensor quantized_matmul_to_float(const NodeCall& c, const Tensor& x, const Tensor& x_zero,
                                 const Tensor& x_scale, size_t i, size_t i_scale, size_t i_zero) {
  const Tensor zero = c.optional_tensor(i_zero);
  const Tensor scale = scalar_if_single(x_scale) * scalar_if_single(c.tensor(i_scale));
  if (is_single_element(x_scale) && scale.ndim() <= 1)
    if (const Tensors w = int8_weights(x, x_zero, c.tensor(i), zero); !w.empty())
      return quantized_matmul(x, w, x_zero, scale);
  const auto wide = [&](const Tensor& v, const Tensor& point) {
    const Tensor f = ops::cast(v, DType::kF32);
    return point ? f - ops::cast(point, DType::kF32) : f;
  };
  return ops::matmul(wide(x, x_zero), wide(c.tensor(i), zero)) * (x_scale * c.tensor(i_scale));
}

Tensor dequantize_blocks(const NodeCall& c, const Array& bytes, const Tensor& scales,
                         const Value& zeros, int64_t bits, int64_t rows, int64_t columns,
                         int64_t block, std::vector<int64_t> group_of) {
  const int64_t count = (columns + block - 1) / block, whole = count * block;
  Tensor w = ops::cast(unpack(c, bytes, bits, rows), DType::kF32);
  const int64_t given = constant_dim(w, 1);
  c.check(given == whole || given == columns, "the packed weights do not match ", rows, " rows of ",
          columns);
  if (given < whole) w = ops::concat({w, ops::full({rows, whole - given}, 0.0, w.dtype())}, 1);
  const bool apart = !group_of.empty();
  c.check(!apart || static_cast<int64_t>(group_of.size()) >= columns, "g_idx has ", group_of.size(),
          " elements for ", columns, " columns");
  group_of.resize(apart ? static_cast<size_t>(whole) : 0, 0);
  /// Repeats a value per block for its columns.
  const auto for_columns = [&](const Tensor& v) {
    const Tensor each = ops::reshape(ops::cast(v, DType::kF32), {rows, count, 1});
    if (!apart) return each;
    return ops::index_select(ops::reshape(each, {rows, count}), int_vector(group_of), 1);
  };
  if (!apart) w = ops::reshape(w, {rows, count, block});
  Tensor zero = scalar(static_cast<double>(int64_t{1} << (bits - 1)), DType::kF32);
  if (!zeros.is_none()) {
    Tensor z = zeros.tensor();
    if (z.dtype() == DType::kU8)
      z = slice_axis(ops::cast(unpack(c, z.array().contiguous(), bits, rows), DType::kF32), 1, 0,
                     count);
    zero = for_columns(z);
  }
  w = (w - zero) * for_columns(scales);
  return slice_axis(ops::reshape(w, {rows, whole}), 1, 0, columns);
}

OperatorTable contrib_quantized_operators() {
  static constexpr Operator operators[] = {
      {"QLinearAdd", 1, of_two<ops::add>},
      {"QLinearMul", 1, of_two<ops::multiply>},
      {"QLinearSigmoid", 1, sigmoid},
      {"QLinearLeakyRelu", 1, leaky_relu},
      {"QLinearSoftmax", 1, softmax},
      {"QLinearGlobalAveragePool", 1, global_average_pool},
      {"QLinearAveragePool", 1, in_either_order<average_pool>},
      {"QLinearConv", 1, in_either_order<qlinear_conv_rule>},
      {"NhwcMaxPool", 1, channels_last<max_pool_rule>},
      {"QLinearConcat", 1, concat},
      {"QLinearWhere", 1, where},
      {"QGemm", 1, gemm},
      {"MatMulInteger16", 1, matmul_integer16},
      {"DynamicQuantizeMatMul", 1, dynamic_matmul},
      {"MatMulIntegerToFloat", 1, matmul_to_float},
      {"DynamicQuantizeLSTM", 1, dynamic_quantize_lstm},
      {"MatMulNBits", 1, matmul_nbits},
      {"MatMulBnb4", 1, matmul_bnb4},
      {"MatMulFpQ4", 1, matmul_fpq4},
      {"GatherBlockQuantized", 1, gather_block_quantized},
  };
  return operators;
}

}  // namespace paddle::onnx
