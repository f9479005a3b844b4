// Rules of schema/forms.yaml.

#include "ops/call.h"
#include "ops/generated/attrs.h"
#include "ops/generated/rules.h"
#include "ops/operators.h"

namespace paddle::rules {
namespace {

Tensor number_of(const AttrValue& value) {
  if (value.is_bool()) return Tensor::boolean(value.as_bool());
  return value.is_int() ? Tensor::number(value.as_int()) : Tensor::number(value.as_double());
}

Tensor scaled(const Tensor& y, const AttrValue& alpha) {
  const bool one = !alpha.is_complex() && alpha.as_double() == 1;
  return one ? y : y * number_of(alpha);
}

}  // namespace

Tensors decompose_add_scaled(CallContext& c) {
  return {c.operand(0) + scaled(c.operand(1), c.attrs_as<AddScaledAttrs>().alpha)};
}

Tensors decompose_subtract_scaled(CallContext& c) {
  return {c.operand(0) - scaled(c.operand(1), c.attrs_as<SubtractScaledAttrs>().alpha)};
}

Tensors decompose_divide_rounded(CallContext& c) {
  const Tensor &x = c.operand(0), &y = c.operand(1);
  const Tensor down = ops::floor_divide(x, y);
  if (c.attrs_as<DivideRoundedAttrs>().rounding_mode == "floor") return {down};
  if (is_float(x.dtype())) return {ops::trunc(x / y)};
  // One more where a negative quotient was rounded down.
  const Tensor rest = ops::not_equal(down * y, x);
  const Tensor negative = ops::less_than(down, Tensor::number(int64_t{0}));
  return {down + mask_of(ops::logical_and(rest, negative), down)};
}

Tensors decompose_where_true(CallContext& c) { return ops::nonzero(c.operand(0), true); }

Tensors decompose_scale_act(CallContext& c) {
  const auto a = c.attrs_as<ScaleActAttrs>();
  const Tensor y = ops::scale(c.operand(0), a.scale, a.bias, a.bias_after_scale);
  if (!a.act) return {y};
  const Op& act = get_op(*a.act);
  if (act.operands().size() != 1 || act.results().size() != 1 ||
      act.operands()[0].kind != OperandKind::kTensor)
    fail(ErrorCode::kUsage, "scale: '", *a.act, "' is no activation");
  return {call_single(act, {y}, default_attrs(act))};
}

Tensors decompose_bernoulli_of(CallContext& c) {
  const Tensor& x = c.operand(0);
  const double p = c.attrs_as<BernoulliOfAttrs>().p;
  if (!(p >= 0 && p <= 1)) fail(ErrorCode::kUsage, "bernoulli: p must lie in [0, 1], not ", p);
  return {ops::bernoulli(full_of(x.shape(), p, x.dtype()))};
}

Tensors decompose_mean_as(CallContext& c) {
  const auto a = c.attrs_as<MeanAsAttrs>();
  return {ops::mean(ops::cast(c.operand(0), a.dtype), a.axis, a.keepdim)};
}

Tensors decompose_searchsorted_by(CallContext& c) {
  const auto a = c.attrs_as<SearchsortedByAttrs>();
  if (a.right && a.side && *a.side == "left")
    fail(ErrorCode::kUsage, "searchsorted: side 'left' contradicts right");
  const bool right = a.right || (a.side && *a.side == "right");
  Tensor sorted = c.operand(0);
  if (c.has(2)) {
    if (!same_shape(c.operand(2).shape(), sorted.shape()))
      fail(ErrorCode::kUsage, "searchsorted: sorter ", c.operand(2).type(),
           " must have the shape of the sequence ", sorted.type());
    sorted = ops::gather_along(sorted, c.operand(2), sorted.ndim() - 1);
  }
  return {ops::searchsorted(sorted, c.operand(1), a.out_int32, right)};
}

// The rows are scaled before they are read, as if the table had been changed: no gradient flows
// through the scale.
Tensors decompose_embedding_bounded(CallContext& c) {
  const auto a = c.attrs_as<EmbeddingBoundedAttrs>();
  const Tensor& x = c.operand(0);
  Tensor rows = ops::embedding(x, c.operand(1), a.padding_idx, a.sparse);
  if (a.max_norm) {
    const Tensor fixed = ops::detach(rows);
    const Tensor size = ops::vector_norm(fixed, AttrValue(a.norm_type), {{-1}}, true);
    const Tensor factor = *a.max_norm / (size + 1e-7);
    const Tensor bounded =
        ops::where(ops::greater_than(size, Tensor::number(*a.max_norm)), fixed * factor, fixed);
    rows = bounded + (rows - fixed);
  }
  if (a.scale_grad_by_freq) {
    const Tensor flat = ops::reshape(x, Shape{-1});
    const Tensor same = ops::equal(ops::unsqueeze(flat, {1}), ops::unsqueeze(flat, {0}));
    const Tensor count = ops::sum(mask_of(same, rows), std::vector<int64_t>{1});
    Shape shape = x.shape();
    shape.push_back(1);
    const Tensor fixed = ops::detach(rows);
    rows = fixed + (rows - fixed) / ops::reshape(count, shape);
  }
  return {rows};
}

Tensors decompose_normal_of(CallContext& c) {
  const auto a = c.attrs_as<NormalOfAttrs>();
  const Tensor &mean = c.operand(0), &deviation = c.operand(1);
  const Tensor spread = mean * 0.0 + deviation;
  const Shape shape = a.shape ? *a.shape : spread.shape();
  return {mean + deviation * ops::gaussian(shape, 0.0, 1.0, 0, spread.dtype())};
}

void infer_view_dtype(InferContext& c) {
  const DType to = c.attrs_as<ViewDtypeAttrs>().shape_or_dtype;
  const int64_t from_bits = info(c.dtype(0)).bits, bits = info(to).bits;
  c.check(from_bits >= 8 && bits >= 8, "whole bytes are needed, not ", text(c.dtype(0)), " and ",
          text(to));
  Shape shape = c.shape(0);
  if (from_bits != bits) {
    c.check(!shape.empty(), "a 0-D tensor cannot change the size of its element");
    const Dim bytes = shape.back() * (from_bits / 8);
    c.check(modulo(bytes, bits / 8).constant().value_or(0) == 0, "the last axis of ", c.type(0),
            " does not divide into elements of ", text(to));
    shape.back() = floor_divide(bytes, bits / 8);
  }
  c.result(to, shape);
}

}  // namespace paddle::rules
