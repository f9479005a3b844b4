// Rules of random.yaml.

#include "ops/generated/random.h"
#include "ops/core/compose.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/random_rules.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sorting.h"

namespace paddle::rules {

void infer_random_float(InferContext& c) {
  const auto get = [&](const char* name) -> const AttrValue& {
    return c.attrs()[static_cast<size_t>(c.op().attr_index(name))];
  };
  const Shape shape = get("shape").as_dims();
  check_shape(c, shape);
  const DType dtype = get("dtype").is_none() ? DType::kF32 : get("dtype").as_dtype();
  c.check(is_float(dtype), "dtype must be floating, not ", text(dtype));
  c.result(dtype, shape);
}

void infer_randint(InferContext& c) {
  const auto a = c.attrs_as<RandintAttrs>();
  check_shape(c, a.shape);
  const int64_t low = a.high ? a.low : 0, high = a.high ? *a.high : a.low;
  c.check(low < high, "the range [", low, ", ", high, ") is empty");
  const DType dtype = a.dtype.value_or(DType::kI64);
  c.check(is_integer(dtype) || is_float(dtype), "dtype must be a number's, not ", text(dtype));
  c.result(dtype, a.shape);
}

void infer_bernoulli(InferContext& c) { c.result(c.dtype(0), c.shape(0)); }

void infer_dropout_mask(InferContext& c) {
  const auto a = c.attrs_as<DropoutMaskAttrs>();
  c.check(a.p >= 0 && a.p <= 1, "p must lie in [0, 1], not ", a.p);
  c.result(c.dtype(0), a.shape);
}
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

void infer_poisson(InferContext& c) { c.result(c.dtype(0), c.shape(0)); }

void infer_multinomial(InferContext& c) {
  const auto a = c.attrs_as<MultinomialAttrs>();
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

Tensors decompose_bernoulli_of(CallContext& c) {
  const Tensor& x = c.operand(0);
  const double p = c.attrs_as<BernoulliOfAttrs>().p;
  if (!(p >= 0 && p <= 1)) fail(ErrorCode::kUsage, "bernoulli: p must lie in [0, 1], not ", p);
  return {ops::bernoulli(full_of(x.shape(), p, x.dtype()))};
}

Tensors decompose_normal_of(CallContext& c) {
  const auto a = c.attrs_as<NormalOfAttrs>();
  const Tensor &mean = c.operand(0), &deviation = c.operand(1);
  const Tensor spread = mean * 0.0 + deviation;
  const Shape shape = a.shape ? *a.shape : spread.shape();
  return {mean + deviation * ops::gaussian(shape, 0.0, 1.0, 0, spread.dtype())};
}

Tensors decompose_rand_like(CallContext& c) {
  const Tensor& x = c.operand(0);
  return {ops::rand(x.shape(), c.attrs_as<RandLikeAttrs>().dtype.value_or(x.dtype()))};
}

Tensors decompose_randn_like(CallContext& c) {
  const Tensor& x = c.operand(0);
  return {ops::randn(x.shape(), c.attrs_as<RandnLikeAttrs>().dtype.value_or(x.dtype()))};
}

Tensors decompose_log_normal(CallContext& c) {
  const auto a = c.attrs_as<LogNormalAttrs>();
  return {ops::exp(ops::normal(a.mean, a.std, a.shape))};
}

}  // namespace paddle::rules
