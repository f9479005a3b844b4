// Rules of distance.yaml.

#include "ops/generated/distance.h"
#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/distance_rules.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

/// cotangent / size, and 0 where the size is 0.
Tensor divided_by_size(const Tensor& cotangent, const Tensor& size) {
  const Tensor zero = ops::equal(size, number(0.0));
  return ops::where(zero, number(0.0), cotangent / ops::where(zero, number(1.0), size));
}

/// The shape of values for all pairs of rows of the first two operands.
Shape pairs_of_rows(InferContext& c) {
  const Shape &x = c.shape(0), &y = c.shape(1);
  c.check(x.size() >= 2 && y.size() >= 2, "expected matrices, found ", c.type(0), " and ",
          c.type(1));
  c.require_equal(x.back(), y.back(),
                  str("rows differ in length: ", c.type(0), " and ", c.type(1)));
  Shape out = c.broadcast(Shape(x.begin(), x.end() - 2), Shape(y.begin(), y.end() - 2));
  out.insert(out.end(), {x[x.size() - 2], y[y.size() - 2]});
  return out;
}

Tensor row_sums(const Tensor& x) {
  return ops::sum(x, std::vector<int64_t>{-1}, std::nullopt, true);
}

}  // namespace

void infer_euclidean_distances(InferContext& c) { c.result(c.dtype(0), pairs_of_rows(c)); }

Tensors decompose_euclidean_distances(CallContext& c) {
  return {
      ops::euclidean_norm(ops::unsqueeze(c.operand(0), {-2}) - ops::unsqueeze(c.operand(1), {-3}))};
}

// d(x_i, y_j) changes with x_i as the unit vector (x_i - y_j) / d does.
Tensors vjp_euclidean_distances(VjpContext& c) {
  const Tensor &x = c.operand(0), &y = c.operand(1);
  const Tensor weight = divided_by_size(c.cotangent(), c.result(0));
  Tensors out = c.gradients();
  if (c.needs(0)) out[0] = sum_to(ops::weighted_differences(x, y, weight), x.shape());
  if (c.needs(1))
    out[1] = sum_to(ops::weighted_differences(y, x, ops::swapaxes(weight, -1, -2)), y.shape());
  return out;
}

void infer_euclidean_norm(InferContext& c) {
  const Shape& x = c.shape(0);
  c.check(!x.empty(), "x must have at least one dimension");
  c.result(c.dtype(0), Shape(x.begin(), x.end() - 1));
}

// A root has an infinite slope at 0, which would make NaN of the zero gradient within.
Tensors decompose_euclidean_norm(CallContext& c) {
  const Tensor squares = ops::sum(ops::square(c.operand(0)), std::vector<int64_t>{-1});
  const Tensor zero = ops::equal(squares, number(0.0));
  return {ops::where(zero, number(0.0), ops::sqrt(ops::where(zero, number(1.0), squares)))};
}

Tensors vjp_euclidean_norm(VjpContext& c) {
  return {c.operand(0) * ops::unsqueeze(divided_by_size(c.cotangent(), c.result(0)), {-1})};
}

void infer_weighted_differences(InferContext& c) {
  const Shape pairs = pairs_of_rows(c), &weight = c.shape(2);
  c.check(weight.size() >= 2, "weight must be a matrix, not ", c.type(2));
  for (size_t axis : {1, 2})
    c.require_equal(weight[weight.size() - axis], pairs[pairs.size() - axis],
                    str("weight ", c.type(2), " does not fit ", c.type(0), " and ", c.type(1)));
  Shape out =
      c.broadcast(Shape(pairs.begin(), pairs.end() - 2), Shape(weight.begin(), weight.end() - 2));
  out.insert(out.end(), {pairs[pairs.size() - 2], c.shape(0).back()});
  c.result(c.dtype(0), out);
}

Tensors decompose_weighted_differences(CallContext& c) {
  const Tensor &x = c.operand(0), &y = c.operand(1), &weight = c.operand(2);
  return {x * row_sums(weight) - ops::matmul(weight, y)};
}

Tensors vjp_weighted_differences(VjpContext& c) {
  const Tensor &x = c.operand(0), &y = c.operand(1), &weight = c.operand(2), &g = c.cotangent();
  Tensors out = c.gradients();
  if (c.needs(0)) out[0] = sum_to(g * row_sums(weight), x.shape());
  if (c.needs(1)) out[1] = sum_to(-ops::matmul(weight, g, true, false), y.shape());
  if (c.needs(2)) out[2] = sum_to(row_sums(g * x) - ops::matmul(g, y, false, true), weight.shape());
  return out;
}

}  // namespace paddle::rules
