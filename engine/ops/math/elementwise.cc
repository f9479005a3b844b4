// Rules of elementwise.yaml.

#include "ops/core/compose.h"
#include "ops/generated/math.h"
#include "ops/generated/math_rules.h"

namespace paddle::rules {

void infer_broadcast(InferContext& c) { c.result(c.dtype(0), c.broadcast(c.shape(0), c.shape(1))); }

void infer_compare(InferContext& c) { c.result(DType::kBool, c.broadcast(c.shape(0), c.shape(1))); }

void infer_predicate(InferContext& c) { c.result(DType::kBool, c.shape(0)); }

void infer_bitwise(InferContext& c) {
  c.result(c.dtype(0),
           c.op().operands().size() == 2 ? c.broadcast(c.shape(0), c.shape(1)) : c.shape(0));
}

void infer_where(InferContext& c) {
  c.result(c.dtype(1), c.broadcast(c.shape(0), c.broadcast(c.shape(1), c.shape(2))));
}

void infer_cast(InferContext& c) { c.result(c.attrs_as<CastAttrs>().dtype, c.shape(0)); }
namespace {

/// Gradients of a binary operation, summed back to the operands' shapes.
Tensors two(VjpContext& c, const std::function<Tensor()>& dx, const std::function<Tensor()>& dy) {
  Tensors out = c.gradients();
  if (c.needs(0)) out[0] = sum_to(dx(), c.operand(0).shape());
  if (c.needs(1)) out[1] = sum_to(dy(), c.operand(1).shape());
  return out;
}

}  // namespace

Tensors vjp_add(VjpContext& c) {
  const Tensor g = c.cotangent();
  return two(
      c, [&] { return g; }, [&] { return g; });
}

Tensors vjp_subtract(VjpContext& c) {
  const Tensor g = c.cotangent();
  return two(
      c, [&] { return g; }, [&] { return -g; });
}

Tensors vjp_multiply(VjpContext& c) {
  const Tensor g = c.cotangent();
  return two(
      c, [&] { return g * c.operand(1); }, [&] { return g * c.operand(0); });
}

Tensors vjp_divide(VjpContext& c) {
  const Tensor g = c.cotangent();
  return two(
      c, [&] { return g / c.operand(1); },
      [&] { return -(g * (c.operand(0) / c.operand(1)) / c.operand(1)); });
}

Tensors vjp_remainder(VjpContext& c) {
  const Tensor g = c.cotangent();
  return two(
      c, [&] { return g; }, [&] { return -(g * ops::floor_divide(c.operand(0), c.operand(1))); });
}

Tensors vjp_maximum(VjpContext& c) {
  // Ties share the gradient: x gets half where the operands are equal.
  const Tensor g = c.cotangent();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  const Tensor half = mask_of(ops::equal(x, y), g) * 0.5;
  const bool max = c.op().name() == "maximum";
  const auto wins = [&](const Tensor& a, const Tensor& b) {
    return g * (mask_of(max ? ops::greater_than(a, b) : ops::less_than(a, b), g) + half);
  };
  return two(
      c, [&] { return wins(x, y); }, [&] { return wins(y, x); });
}

Tensors vjp_fmax(VjpContext& c) {
  const Tensor g = c.cotangent();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  const Tensor better = c.op().name() == "fmax" ? ops::greater_equal(x, y) : ops::less_equal(x, y);
  const Tensor first = ops::logical_or(better, ops::isnan(y));
  return two(
      c, [&] { return g * mask_of(first, g); },
      [&] { return g * mask_of(ops::logical_not(first), g); });
}

/// A small whole power as the product that it is: the general function is slow, above all at zero.
/// In 16 bits the product would be rounded at each step.
Tensors decompose_for_fusion_pow(CallContext& c) {
  const Tensor &x = c.operand(0), &exponent = c.operand(1);
  const bool wide = x.dtype() == DType::kF32 || x.dtype() == DType::kF64;
  if (!wide || !exponent.is_concrete() || exponent.array().size() != 1 ||
      exponent.ndim() > x.ndim())
    return {};
  const double n = exponent.array().on_host().number();
  if (n == 1) return {x};
  if (n == 2) return {x * x};
  if (n == 3) return {x * x * x};
  return {};
}

Tensors vjp_pow(VjpContext& c) {
  const Tensor g = c.cotangent();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  return two(
      c,
      [&] {
        // y * x^(y-1), and 0 where y is 0 even if x is 0.
        const Tensor zero = ops::equal(y, Tensor::number(0.0));
        const Tensor slope = y * ops::pow(x, y - 1.0);
        return g * ops::where(zero, Tensor::number(0.0), slope);
      },
      [&] {
        if (is_complex(x.dtype())) {  // 0 where x is 0
          const Tensor zero = ops::equal(x, Tensor::number(0.0));
          const Tensor log_x = ops::log(ops::where(zero, Tensor::number(1.0), x));
          return g * ops::where(zero, Tensor::number(0.0), c.result(0) * log_x);
        }
        const Tensor safe =
            ops::where(ops::greater_than(x, Tensor::number(0.0)), x, Tensor::number(1.0));
        const Tensor zero_base = ops::logical_and(ops::equal(x, Tensor::number(0.0)),
                                                  ops::greater_equal(y, Tensor::number(0.0)));
        const Tensor log_x =
            ops::where(ops::greater_than(x, Tensor::number(0.0)), ops::log(safe), ops::log(x));
        return g * ops::where(zero_base, Tensor::number(0.0), c.result(0) * log_x);
      });
}

Tensors vjp_atan2(VjpContext& c) {
  const Tensor g = c.cotangent();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  const auto scaled = [&] { return g / (x * x + y * y); };
  return two(
      c, [&] { return scaled() * y; }, [&] { return -(scaled() * x); });
}

Tensors vjp_where(VjpContext& c) {
  const Tensor g = c.cotangent();
  const Tensor zero = Tensor::number(0.0);
  Tensors out = c.gradients();
  if (c.needs(1)) out[1] = sum_to(ops::where(c.operand(0), g, zero), c.operand(1).shape());
  if (c.needs(2)) out[2] = sum_to(ops::where(c.operand(0), zero, g), c.operand(2).shape());
  return out;
}

Tensors vjp_cast(VjpContext& c) { return {ops::cast(c.cotangent(), c.operand(0).dtype())}; }
namespace {

Tensor number_of(const AttrValue& value) {
  if (value.is_bool()) return Tensor::boolean(value.as_bool());
  if (value.is_complex()) return Tensor::number(value.as_complex());
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

}  // namespace paddle::rules
