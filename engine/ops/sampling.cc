// Rules of schema/sampling.yaml.

#include <cmath>

#include "ops/generated/attrs.h"
#include "ops/generated/rules.h"
#include "ops/operators.h"

namespace paddle::rules {
namespace {

/// -log u for u uniform in (0, 1]: exponential random numbers.
Tensor exponential(const Shape& shape, DType dtype) {
  return -ops::log(1.0 - ops::uniform(shape, dtype, 0.0, 1.0));
}

DType drawn_in(DType d) { return d == DType::kF64 ? DType::kF64 : DType::kF32; }

}  // namespace

Tensors decompose_rand(CallContext& c) {
  const auto a = c.attrs_as<RandAttrs>();
  return {ops::uniform(a.shape, a.dtype, 0.0, 1.0)};
}

Tensors decompose_randn(CallContext& c) {
  const auto a = c.attrs_as<RandnAttrs>();
  return {ops::gaussian(a.shape, 0.0, 1.0, 0, a.dtype)};
}

void infer_normal(InferContext& c) {
  const auto a = c.attrs_as<NormalAttrs>();
  c.check(a.std >= 0, "std must not be negative, not ", a.std);
  c.result(DType::kF32, a.shape.value_or(Shape{1}));
}
Tensors decompose_normal(CallContext& c) {
  const auto a = c.attrs_as<NormalAttrs>();
  return {ops::gaussian(a.shape.value_or(Shape{1}), a.mean, a.std)};
}

void infer_randint_like(InferContext& c) {
  const auto a = c.attrs_as<RandintLikeAttrs>();
  c.result(a.dtype.value_or(c.dtype(0)), c.shape(0));
}
Tensors decompose_randint_like(CallContext& c) {
  const auto a = c.attrs_as<RandintLikeAttrs>();
  const DType dtype = a.dtype.value_or(c.operand(0).dtype());
  return {ops::cast(ops::randint(a.low, a.high, c.operand(0).shape(), DType::kI64), dtype)};
}

void infer_randperm(InferContext& c) {
  const auto a = c.attrs_as<RandpermAttrs>();
  c.check(a.n >= 0, "n must not be negative, not ", a.n);
  c.result(a.dtype, {Dim(a.n)});
}

void infer_poisson(InferContext& c) {
  c.require_float(0);
  c.result(c.dtype(0), c.shape(0));
}

void infer_multinomial(InferContext& c) {
  const auto a = c.attrs_as<MultinomialAttrs>();
  c.require_float(0);
  c.check(c.rank(0) == 1 || c.rank(0) == 2, "x must have 1 or 2 dimensions, not ", c.type(0));
  c.check(a.num_samples > 0, "num_samples must be positive, not ", a.num_samples);
  c.check(a.replacement || !c.shape(0).back().less(a.num_samples).value_or(false), "cannot draw ",
          a.num_samples, " different ones from ", c.type(0));
  Shape out = c.shape(0);
  out.back() = a.num_samples;
  c.result(DType::kI64, out);
}

// With replacement by the running sum; without, the first to happen of exponential times with the
// probabilities as rates.
Tensors decompose_multinomial(CallContext& c) {
  const auto a = c.attrs_as<MultinomialAttrs>();
  const DType dtype = drawn_in(c.operand(0).dtype());
  const Tensor x = ops::cast(c.operand(0), dtype);
  if (!a.replacement) {
    const Tensor times = exponential(x.shape(), dtype) / x;
    return {ops::sort_pairs(times, -1, false, a.num_samples)[1]};
  }
  Shape shape = x.shape();
  shape.back() = a.num_samples;
  const Tensor sums = ops::cumsum(x, -1);
  const Tensor total = ops::sum(x, std::vector<int64_t>{-1}, std::nullopt, true);
  const Tensor place = ops::uniform(shape, dtype, 0.0, 1.0) * total;
  return {ops::searchsorted(sums, place, false, true)};
}

Tensors decompose_gumbel_softmax(CallContext& c) {
  const auto a = c.attrs_as<GumbelSoftmaxAttrs>();
  const Tensor& x = c.operand(0);
  if (!(a.temperature > 0))
    fail(ErrorCode::kUsage, "gumbel_softmax: temperature must be positive, not ", a.temperature);
  const Tensor noise = ops::cast(-ops::log(exponential(x.shape(), drawn_in(x.dtype()))), x.dtype());
  const Tensor soft = ops::softmax((x + noise) / a.temperature, a.axis);
  if (!a.hard) return {soft};
  const Tensor top = ops::max(soft, std::vector<int64_t>{a.axis}, true);
  return {soft + ops::detach(mask_of(ops::equal(soft, top), soft) - soft)};
}

Tensors decompose_alpha_dropout(CallContext& c) {
  const auto a = c.attrs_as<AlphaDropoutAttrs>();
  const Tensor& x = c.operand(0);
  if (!(a.p >= 0 && a.p <= 1))
    fail(ErrorCode::kUsage, "alpha_dropout: p must lie in [0, 1], not ", a.p);
  if (!a.training || a.p == 0) return {ops::assign(x)};
  if (a.p == 1) return {x * 0.0};
  // Dropped elements become the lower limit of SELU; scale and shift restore mean and variance.
  const double limit = -1.0507009873554805 * 1.6732632423543772;
  const double scale = 1 / std::sqrt((1 - a.p) * (1 + a.p * limit * limit)),
               shift = -scale * limit * a.p;
  const Tensor kept = ops::dropout_mask(x, a.p, x.shape());
  return {(x * kept + (1.0 - kept) * limit) * scale + shift};
}

}  // namespace paddle::rules
