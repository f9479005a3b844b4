// Rules of sampling.yaml.

#include <cmath>

#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/random.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sampling.h"
#include "ops/generated/sampling_rules.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"
#include "ops/generated/special.h"

namespace paddle::rules {
namespace {

/// Uniform numbers in (0, 1], of the shape and float type of x.
Tensor positive_uniform(std::string_view op, const Tensor& x) {
  if (!is_float(x.dtype())) reject(op, "x must be floating, not ", x.type());
  return 1.0 - ops::uniform(x.shape(), x.dtype(), 0, 1);
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

}  // namespace

void infer_sampled(InferContext& c) {
  if (c.op().operands().size() > 2)  // the random state is the last one
    c.check(same_shape(c.shape(0), c.shape(1)), "count is ", c.type(0), ", prob is ", c.type(1));
  c.result(c.dtype(0), c.shape(0));
}

Tensors vjp_standard_gamma(VjpContext& c) {
  Tensors out = c.gradients();
  const Tensor &x = c.operand(0), &drawn = c.result(0);
  const Tensor density = ops::exp((x - 1.0) * ops::log(drawn) - drawn - ops::lgamma(x));
  out[0] = -c.cotangent() * ops::gammainc_slope(x, drawn) / density;
  return out;
}

Tensors decompose_binomial(CallContext& c) {
  const Tensor count = ops::cast(c.operand(0), DType::kF64);
  const Tensor prob = ops::cast(c.operand(1), DType::kF64);
  const Tensor zero = (count + prob) * 0.0;  // of the shape that both broadcast to
  return {ops::cast(ops::binomial_counts(count + zero, prob + zero), DType::kI64)};
}

Tensors decompose_exponential_(CallContext& c) {
  const double rate = c.attrs_as<ExponentialAttrs>().lam;
  if (!(rate > 0)) reject("exponential_", "lam must be positive, not ", rate);
  return {-ops::log(positive_uniform("exponential_", c.operand(0))) / rate};
}

Tensors decompose_cauchy_(CallContext& c) {
  const auto a = c.attrs_as<CauchyAttrs>();
  const Tensor u = positive_uniform("cauchy_", c.operand(0));
  return {ops::tan((u - 0.5) * M_PI) * a.scale + a.loc};
}

Tensors decompose_geometric_(CallContext& c) {
  const double p = c.attrs_as<GeometricAttrs>().probs;
  if (!(p > 0 && p < 1)) reject("geometric_", "probs must lie in (0, 1), not ", p);
  return {ops::log(positive_uniform("geometric_", c.operand(0))) / std::log1p(-p)};
}

Tensors decompose_truncated_gaussian(CallContext& c) {
  const auto a = c.attrs_as<TruncatedGaussianAttrs>();
  if (!(a.a < a.b)) reject("truncated_gaussian", "a ", a.a, " must be below b ", a.b);
  if (!(a.std >= 0)) reject("truncated_gaussian", "std must not be negative, not ", a.std);
  const DType dtype = a.dtype.value_or(DType::kF32);
  if (!is_float(dtype)) reject("truncated_gaussian", "dtype must be floating, not ", text(dtype));
  const double low = normal_cdf(a.a), high = normal_cdf(a.b);
  const Tensor u = ops::uniform(a.shape, DType::kF64, 0, 1) * (high - low) + low;
  const Tensor z = ops::erfinv(u * 2.0 - 1.0) * std::sqrt(2.0);
  const Tensor held = ops::clip(z, AttrValue(a.a), AttrValue(a.b));
  return {ops::cast(held * a.std + a.mean, dtype)};
}

Tensors decompose_top_p_sampling(CallContext& c) {
  const auto a = c.attrs_as<TopPSamplingAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() != 2) reject("top_p_sampling", "x must be [batch, classes], not ", x.type());
  if (a.return_top) reject("top_p_sampling", "return_top is not supported");
  const DType wide = DType::kF64;
  const Tensor limit = ops::reshape(ops::cast(c.operand(1), wide), {x.dim(0), Dim(1)});
  const Tensors sorted = ops::sort_pairs(x, 1, true);
  const Tensor probabilities = ops::cast(sorted[0], wide);
  const Tensor before = ops::cumsum(probabilities, int64_t{1}) - probabilities;
  Tensor kept = ops::less_than(before, limit);
  if (c.has(2)) {
    const Tensor least = ops::reshape(ops::cast(c.operand(2), wide), {x.dim(0), Dim(1)});
    kept = ops::logical_and(kept, ops::greater_equal(probabilities, least));
  }
  if (a.k > 0) {
    const Tensor place = ops::cumsum(ops::cast(ones_like(x), DType::kI64), int64_t{1});
    kept = ops::logical_and(kept, ops::less_equal(place, integer(a.k)));
  }
  const Tensor weights = ops::where(kept, probabilities, number(0.0));
  const Tensor running = ops::cumsum(weights, int64_t{1});
  const Tensor total = ops::sum(weights, Axes{1}, std::nullopt, true);
  const int64_t seed = a.seed > 0 ? a.seed : 0;
  const Tensor u = ops::uniform({x.dim(0), Dim(1)}, wide, 0, 1, seed) * total;
  // The number of running sums up to u is the place of the drawn one.
  const Tensor passed =
      ops::sum(ops::cast(ops::less_equal(running, u), DType::kI64), Axes{1}, std::nullopt, true);
  const Tensor last = dim_value(x.dim(1), DType::kI64) - integer(1);
  const Tensor place = ops::minimum(passed, last);
  return {ops::gather_along(sorted[0], place, 1),
          ops::cast(ops::gather_along(sorted[1], place, 1), DType::kI64)};
}

}  // namespace paddle::rules
