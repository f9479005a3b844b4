// Rules of simulated.yaml.

#include <cmath>

#include "ops/core/compose.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/quantization.h"
#include "ops/generated/quantization_rules.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

/// The largest integer of a signed type of `bits`.
double highest(std::string_view op, int64_t bits) {
  if (bits < 2 || bits > 16) reject(op, "bit_length must be from 2 to 16, not ", bits);
  return std::ldexp(1.0, static_cast<int>(bits) - 1) - 1;
}

/// x in whole steps of scale / most. round_type 0 rounds halves to even, 1 away from zero.
Tensor steps(std::string_view op, const Tensor& x, const Tensor& scale, double most,
             int64_t round_type) {
  if (round_type != 0 && round_type != 1) reject(op, "round_type must be 0 or 1, not ", round_type);
  const Tensor size = ops::maximum(ops::abs(scale), number(1e-30));
  const Tensor at = x / size * most;
  if (round_type == 0)
    return ops::minimum(ops::maximum(ops::round(at), number(-most - 1)), number(most));
  const Tensor inside = ops::minimum(ops::maximum(at, number(-most)), number(most));
  return ops::sign(inside) * ops::floor(ops::abs(inside) + 0.5);
}

/// `value` with the gradient of `smooth`.
Tensor straight_through(const Tensor& smooth, const Tensor& value) {
  return smooth + ops::detach(value - smooth);
}

Tensor simulated(std::string_view op, const Tensor& x, const Tensor& scale, double most,
                 int64_t round_type, bool dequantize) {
  const Tensor fixed = ops::detach(scale);
  const Tensor whole = steps(op, ops::detach(x), fixed, most, round_type);
  if (dequantize) return straight_through(x, whole * fixed / most);
  return straight_through(x / ops::maximum(fixed, number(1e-30)) * most, whole);
}

Tensor magnitude(const Tensor& x) { return ops::reshape(ops::max(ops::abs(x)), Shape{1}); }

Tensors by_tensor(CallContext& c, int64_t bits, int64_t round_type, bool dequantize) {
  const std::string_view op = c.op().name();
  const Tensor scale = ops::detach(magnitude(c.operand(0)));
  return {simulated(op, c.operand(0), scale, highest(op, bits), round_type, dequantize), scale};
}

Tensors by_channel(CallContext& c, int64_t bits, int64_t round_type, int64_t axis,
                   bool dequantize) {
  const std::string_view op = c.op().name();
  const Tensor& x = c.operand(0);
  const int64_t channel = axis_of(op, axis, x.ndim());
  Axes others;
  for (int64_t i = 0; i < x.ndim(); ++i)
    if (i != channel) others.push_back(i);
  const Tensor scale =
      ops::detach(others.empty() ? ops::abs(x) : ops::max(ops::abs(x), others, true));
  return {simulated(op, x, scale, highest(op, bits), round_type, dequantize), flat(scale)};
}

Tensors by_average(CallContext& c, double rate, int64_t bits, bool is_test, int64_t round_type,
                   bool dequantize) {
  const std::string_view op = c.op().name();
  const Tensor& x = c.operand(0);
  Tensor scale = ops::detach(ops::reshape(c.operand(1), Shape{1}));
  const auto state_of = [&](size_t i) {
    return c.has(i) ? ops::detach(ops::reshape(c.operand(i), Shape{1}))
                    : full_of({Dim(1)}, 0, x.dtype());
  };
  Tensor accum = state_of(2), state = state_of(3);
  if (!is_test) {
    state = state * rate + 1.0;
    accum = accum * rate + ops::detach(magnitude(x));
    scale = accum / state;
  }
  return {simulated(op, x, scale, highest(op, bits), round_type, dequantize), scale, state, accum};
}

// --- quantized weights ---

/// Scales [n] or [groups, n] as they multiply the rows [k, n].
Tensor per_row(std::string_view op, const Tensor& scale, const Dim& rows, const Dim& columns,
               int64_t group) {
  if (group <= 0) return ops::reshape(scale, {Dim(1), columns});
  if (modulo(rows, group).constant().value_or(0) != 0)
    reject(op, "group_size ", group, " does not divide the ", rows, " rows");
  const Dim groups = floor_divide(rows, group);
  if (scale.ndim() != 2 || scale.dim(0).equals(groups) == false)
    reject(op, "scale must be [", groups, ", ", columns, "], not ", scale.type());
  return ops::reshape(ops::expand(ops::unsqueeze(scale, {1}), {groups, Dim(group), columns}),
                      {rows, columns});
}

/// Integers [n, k] as numbers [k, n].
Tensor unpacked(std::string_view op, const Tensor& x, bool four_bits) {
  if (x.ndim() != 2) reject(op, "quantized weights must be a matrix, not ", x.type());
  if (!four_bits) return ops::transpose(x, {1, 0});
  const Tensor wide = ops::cast(x, DType::kI32);
  const Tensor high = ops::floor_divide(wide, integer(16));
  const Tensor low = wide - high * integer(16);
  const Tensor signed_low = ops::where(ops::greater_than(low, integer(7)), low - integer(16), low);
  return ops::transpose(ops::reshape(ops::stack({signed_low, high}, 1), {x.dim(0) * 2, x.dim(1)}),
                        {1, 0});
}

Tensor dequantized(std::string_view op, const Tensor& x, const Tensor& scale, bool four_bits,
                   int64_t group, DType dtype) {
  const Tensor whole = ops::cast(unpacked(op, x, four_bits), dtype);
  if (!scale.defined()) return whole;
  return whole * per_row(op, ops::cast(scale, dtype), whole.dim(0), whole.dim(1), group);
}

}  // namespace

Tensors decompose_fake_quantize_abs_max(CallContext& c) {
  const auto a = c.attrs_as<FakeQuantizeAbsMaxAttrs>();
  return by_tensor(c, a.bit_length, a.round_type, false);
}

Tensors decompose_fake_quantize_dequantize_abs_max(CallContext& c) {
  const auto a = c.attrs_as<FakeQuantizeDequantizeAbsMaxAttrs>();
  return by_tensor(c, a.bit_length, a.round_type, true);
}

Tensors decompose_fake_channel_wise_quantize_abs_max(CallContext& c) {
  const auto a = c.attrs_as<FakeChannelWiseQuantizeAbsMaxAttrs>();
  return by_channel(c, a.bit_length, a.round_type, a.quant_axis, false);
}

Tensors decompose_fake_channel_wise_quantize_dequantize_abs_max(CallContext& c) {
  const auto a = c.attrs_as<FakeChannelWiseQuantizeDequantizeAbsMaxAttrs>();
  return by_channel(c, a.bit_length, a.round_type, a.quant_axis, true);
}

Tensors decompose_fake_quantize_range_abs_max(CallContext& c) {
  const auto a = c.attrs_as<FakeQuantizeRangeAbsMaxAttrs>();
  const std::string_view op = c.op().name();
  Tensor scale = ops::detach(ops::reshape(c.operand(1), Shape{1}));
  if (!a.is_test) scale = ops::maximum(scale, ops::detach(magnitude(c.operand(0))));
  return {simulated(op, c.operand(0), scale, highest(op, a.bit_length), a.round_type, false),
          scale};
}

Tensors decompose_fake_quantize_moving_average_abs_max(CallContext& c) {
  const auto a = c.attrs_as<FakeQuantizeMovingAverageAbsMaxAttrs>();
  return by_average(c, a.moving_rate, a.bit_length, a.is_test, a.round_type, false);
}

Tensors decompose_fake_quantize_dequantize_moving_average_abs_max(CallContext& c) {
  const auto a = c.attrs_as<FakeQuantizeDequantizeMovingAverageAbsMaxAttrs>();
  return by_average(c, a.moving_rate, a.bit_length, a.is_test, a.round_type, true);
}

Tensors decompose_fake_dequantize_max_abs(CallContext& c) {
  const double range = c.attrs_as<FakeDequantizeMaxAbsAttrs>().max_range;
  if (!(range > 0)) reject(c.op().name(), "max_range must be positive, not ", range);
  return {c.operand(0) * ops::reshape(c.operand(1), Shape()) / range};
}

Tensors decompose_fake_channel_wise_dequantize_max_abs(CallContext& c) {
  const auto a = c.attrs_as<FakeChannelWiseDequantizeMaxAbsAttrs>();
  const std::string_view op = c.op().name();
  const Tensor& x = c.operand(0);
  const Tensors scales = c.list(1);
  if (scales.empty() || scales.size() > 2 || a.quant_bits.size() < scales.size())
    reject(op, "scales must be one or two tensors, with a number of bits each");
  const int64_t axis = axis_of(op, a.quant_axis, x.ndim());
  Shape along(x.shape().size(), Dim(1));
  along[static_cast<size_t>(axis)] = x.dim(axis);
  Tensor out = x * ops::reshape(scales[0], along) / highest(op, a.quant_bits[0]);
  if (scales.size() == 2)
    out = out * ops::reshape(scales[1], Shape()) / highest(op, a.quant_bits[1]);
  return {out};
}

Tensors decompose_weight_quantize(CallContext& c) {
  const auto a = c.attrs_as<WeightQuantizeAttrs>();
  constexpr const char* kName = "weight_quantize";
  Tensor x = c.operand(0);
  if (x.ndim() != 2) reject(kName, "x must be a matrix, not ", x.type());
  if (x.dtype() != DType::kF64) x = ops::cast(x, DType::kF32);
  if (a.group_size != -1 && a.group_size != 64 && a.group_size != 128)
    reject(kName, "group_size must be -1, 64 or 128, not ", a.group_size);
  const bool four_bits = a.algo == "weight_only_int4";
  const double most = four_bits ? 7 : 127;
  const Dim rows = x.dim(0), columns = x.dim(1);
  Tensor scale;
  if (a.group_size > 0) {
    if (modulo(rows, a.group_size).constant().value_or(0) != 0)
      reject(kName, "group_size ", a.group_size, " does not divide the ", rows, " rows");
    scale = ops::max(ops::abs(ops::reshape(
                         x, {floor_divide(rows, a.group_size), Dim(a.group_size), columns})),
                     Axes{1}) /
            most;
  } else {
    scale = ops::max(ops::abs(x), Axes{0}) / most;
  }
  const Tensor size =
      ops::maximum(per_row(kName, scale, rows, columns, a.group_size), number(1e-30));
  const Tensor whole = ops::transpose(
      ops::minimum(ops::maximum(ops::round(x / size), number(-most)), number(most)), {1, 0});
  const DType kept = x.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  if (!four_bits) return {ops::cast(whole, DType::kI8), ops::cast(scale, kept)};
  if (modulo(columns, 2).constant().value_or(0) != 0)
    reject(kName, "weights of 4 bits need an even number of columns, not ", columns);
  const Tensor pairs =
      ops::reshape(ops::cast(whole, DType::kI32), {floor_divide(columns, 2), Dim(2), rows});
  const auto part = [&](int64_t i) {
    return ops::squeeze(slice_axis(pairs, 1, i, i + 1), Axes{1});
  };
  const Tensor low =
      ops::where(ops::less_than(part(0), integer(0)), part(0) + integer(16), part(0));
  return {ops::cast(part(1) * integer(16) + low, DType::kI8), ops::cast(scale, kept)};
}

Tensors decompose_weight_dequantize(CallContext& c) {
  const auto a = c.attrs_as<WeightDequantizeAttrs>();
  const DType dtype = c.operand(1).dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  const Tensor out = dequantized(c.op().name(), c.operand(0), c.operand(1),
                                 a.algo == "weight_only_int4", a.group_size, dtype);
  return {ops::cast(out, a.out_dtype.value_or(DType::kF16))};
}

Tensors decompose_weight_only_linear(CallContext& c) {
  const auto a = c.attrs_as<WeightOnlyLinearAttrs>();
  constexpr const char* kName = "weight_only_linear";
  const Tensor& x = c.operand(0);
  if (a.weight_dtype != "int8" && a.weight_dtype != "int4")
    reject(kName, "weight_dtype must be int8 or int4, not '", a.weight_dtype, "'");
  const Tensor weight = dequantized(kName, c.operand(1), c.has(3) ? c.operand(3) : Tensor(),
                                    a.weight_dtype == "int4", a.group_size, x.dtype());
  const Tensor y = ops::matmul(x, weight);
  return {c.has(2) ? y + c.operand(2) : y};
}

Tensors decompose_llm_int8_linear(CallContext& c) {
  const double threshold = c.attrs_as<LlmInt8LinearAttrs>().threshold;
  constexpr const char* kName = "llm_int8_linear";
  const Tensor& x = c.operand(0);
  const Tensor whole = ops::cast(unpacked(kName, c.operand(1), false), x.dtype());
  Axes rows;
  for (int64_t i = 0; i + 1 < x.ndim(); ++i) rows.push_back(i);
  if (rows.empty()) reject(kName, "x must have 2 dimensions or more, not ", x.type());
  const Tensor large =
      mask_of(ops::greater_than(ops::max(ops::abs(x), rows, true), number(threshold)), x);
  const Tensor small = x * (1.0 - large);
  const Tensor size =
      ops::maximum(ops::max(ops::abs(small), Axes{x.ndim() - 1}, true), number(1e-30)) / 127.0;
  Tensor y = ops::matmul(ops::round(small / size), whole) * size + ops::matmul(x * large, whole);
  if (c.has(3)) y = y * ops::cast(flat(c.operand(3)), x.dtype());
  return {c.has(2) ? y + c.operand(2) : y};
}

}  // namespace paddle::rules
