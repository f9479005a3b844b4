// Rules of products.yaml, and rounding to int8.

#include "ops/core/compose.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/quantization.h"
#include "ops/generated/quantization_rules.h"
#include "ops/generated/shape.h"
#include "ops/quantization/int8.h"

namespace paddle::rules {

Tensor rounded_to_int8(std::string_view op, const Tensor& x, const Int8Rounding& r) {
  if (r.round_type != 0 && r.round_type != 1)
    reject(op, "quant_round_type must be 0 or 1, not ", r.round_type);
  if (!(r.min_bound >= -128 && r.min_bound < r.max_bound && r.max_bound <= 127))
    reject(op, "quant_min_bound and quant_max_bound must be within -128 and 127, found ",
           r.min_bound, " and ", r.max_bound);
  const Tensor whole =
      r.round_type == 0 ? ops::round(x) : ops::sign(x) * ops::floor(ops::abs(x) + 0.5);
  return ops::cast(ops::minimum(ops::maximum(whole, number(r.min_bound)), number(r.max_bound)),
                   DType::kI8);
}

Tensor rounded_to_int8(std::string_view op, const Tensor& x, const Tensor& scale,
                       const Int8Rounding& r) {
  return rounded_to_int8(op, x * scale * r.max_bound, r);
}

Tensor rounded_to_int8(std::string_view op, const Tensor& x, double scale, const Int8Rounding& r) {
  return rounded_to_int8(op, x, number(scale), r);
}

Tensors decompose_matmul_int8(CallContext& c) {
  const auto a = c.attrs_as<MatmulInt8Attrs>();
  return {ops::quantized_matmul(c.operand(0), c.operand(1), {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                                {}, a.transpose_x, a.transpose_y)};
}

Tensors decompose_quant_linear(CallContext& c) {
  const auto a = c.attrs_as<QuantLinearAttrs>();
  constexpr const char* kName = "quant_linear";
  const Tensor &x = c.operand(0), &w = c.operand(1);
  if (a.padding_weights) reject(kName, "padding_weights is not supported");
  if (a.in_num_col_dims < 1 || a.in_num_col_dims >= x.ndim())
    reject(kName, "in_num_col_dims must be from 1 to ", x.ndim() - 1, " for x ", x.type(), ", not ",
           a.in_num_col_dims);
  if (w.ndim() != 2) reject(kName, "w must be a matrix, not ", w.type());
  if (!(a.scale_in > 0)) reject(kName, "scale_in must be positive, not ", a.scale_in);
  const auto scales = static_cast<int64_t>(a.scale_weights.size());
  if (scales != 1 && w.dim(1).equals(scales) != true)
    reject(kName, "scale_weights must be one number or one for each of the ", w.dim(1),
           " results, not ", scales);
  Shape shape(x.shape().begin(), x.shape().begin() + a.in_num_col_dims);
  const Dim rows = element_count(std::span<const Dim>(shape));
  shape.push_back(w.dim(1));
  const Tensor in = ops::reshape(x, {rows, w.dim(0)});
  const Tensor whole = rounded_to_int8(kName, in, a.scale_in,
                                       {a.quant_round_type, a.quant_max_bound, a.quant_min_bound});
  std::vector<double> factors;
  for (const double scale : a.scale_weights) {
    if (!(scale > 0)) reject(kName, "scale_weights must be positive, found ", scale);
    factors.push_back(1 / (a.quant_max_bound * a.quant_max_bound * a.scale_in * scale));
  }
  Tensor y = ops::cast(ops::matmul_int8(whole, w), x.dtype()) *
             ops::cast(Tensor(Array::from(factors, {scales})), x.dtype());
  if (c.has(2)) y = y + c.operand(2);
  if (a.activation_type == "relu")
    y = ops::relu(y);
  else if (!a.activation_type.empty())
    reject(kName, "activation_type must be '' or 'relu', not '", a.activation_type, "'");
  return {ops::reshape(y, shape)};
}

Tensors decompose_linear_compress(CallContext& c) {
  const auto a = c.attrs_as<LinearCompressAttrs>();
  if (a.bits != 8) reject("linear_compress", "bits must be 8, not ", a.bits);
  const Tensor scale = c.has(2) ? c.operand(2) : Tensor(),
               bias = c.has(3) ? c.operand(3) : Tensor();
  if (a.algo == "weight_only")
    return {ops::weight_only_linear(c.operand(0), c.operand(1), bias, scale)};
  return {ops::llm_int8_linear(c.operand(0), c.operand(1), bias, scale, a.threshold)};
}

}  // namespace paddle::rules
