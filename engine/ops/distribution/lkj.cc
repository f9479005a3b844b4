// Rules of lkj.yaml.

#include <cmath>
#include <numbers>

#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/distribution.h"
#include "ops/generated/distribution_rules.h"
#include "ops/generated/math.h"
#include "ops/generated/random.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sampling.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

constexpr int64_t kMax = 4096;

/// 0, 1, … dim - 1.
Tensor numbers(int64_t dim, DType dtype) { return range_of(Dim(dim), dtype); }

}  // namespace

Tensors decompose_lkj_cholesky_log_prob(CallContext& c) {
  constexpr const char* kName = "lkj_cholesky_log_prob";
  const Tensor& value = c.operand(0);
  const bool is_square = value.ndim() >= 2 && is_float(value.dtype()) &&
                         value.dim(-1).is_constant() && value.dim(-1).same(value.dim(-2));
  if (!is_square || value.dim(-1).value() < 2 || value.dim(-1).value() > kMax)
    reject(kName, "value must be floating [..., dim, dim] with 2 <= dim <= ", kMax, ", not ",
           value.type());
  const int64_t dim = value.dim(-1).value();
  const DType dtype = value.dtype();
  const Tensor concentration = ops::cast(c.operand(1), dtype);
  const Tensor diagonal = ops::diagonal(value, 0, -2, -1);
  const Tensor below = slice_axis(diagonal, diagonal.ndim() - 1, 1, dim);
  // Row k has dim - 1 - k rows after it.
  const Tensor behind = static_cast<double>(dim - 2) - numbers(dim - 1, dtype);
  const Tensor order = 2.0 * (ops::unsqueeze(concentration, Axes{-1}) - 1.0) + behind;
  const Tensor density = ops::sum(order * ops::log(below), Axes{-1});
  // The integral of that over all factors.
  const auto free = static_cast<double>(dim - 1);
  const Tensor alpha = concentration + 0.5 * free;
  const Tensor integral = 0.5 * free * std::log(std::numbers::pi) +
                          ops::multigammaln(alpha - 0.5, dim - 1) - ops::lgamma(alpha) * free;
  return {density - integral};
}

Tensors decompose_lkj_cholesky_sample(CallContext& c) {
  const auto a = c.attrs_as<LkjCholeskySampleAttrs>();
  constexpr const char* kName = "lkj_cholesky_sample";
  const Tensor& concentration = c.operand(0);
  if (a.dim < 2 || a.dim > kMax) reject(kName, "dim must be from 2 to ", kMax, ", not ", a.dim);
  Shape shape = a.shape;
  for (const Dim& size : shape)
    if (size.is_constant() && size.value() < 0) reject(kName, "shape has a negative size, ", size);
  shape.insert(shape.end(), concentration.shape().begin(), concentration.shape().end());
  shape.push_back(Dim(a.dim));
  const DType dtype = concentration.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  // Row k is a direction in k dimensions, drawn from normal numbers, times the root of a number
  // with the distribution beta(k / 2, concentration + (dim - 1 - k) / 2); row 0 has no direction.
  const Tensor k = numbers(a.dim, dtype);
  const Tensor first = ops::maximum(0.5 * k, number(0.5));
  const Tensor second = ops::unsqueeze(ops::cast(concentration, dtype), Axes{-1}) +
                        0.5 * (static_cast<double>(a.dim - 1) - k);
  const Tensor g = ops::standard_gamma(ops::expand(first, shape)),
               h = ops::standard_gamma(ops::expand(second, shape));
  const Tensor share = ops::where(ops::greater_than(k, number(0.0)), g / (g + h), number(0.0));
  Shape matrix = shape;
  matrix.push_back(Dim(a.dim));
  const Tensor normal = ops::tril(ops::randn(matrix, dtype), -1);
  const Tensor squares = ops::sum(ops::square(normal), Axes{-1});
  const Tensor length = ops::where(ops::greater_than(squares, number(0.0)), squares, number(1.0));
  const Tensor below = normal * ops::unsqueeze(ops::sqrt(share / length), Axes{-1});
  return {below + ops::diag_embed(ops::sqrt(1.0 - share))};
}

}  // namespace paddle::rules
