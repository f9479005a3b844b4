// Rules of experts.yaml.

#include "ops/core/compose.h"
#include "ops/core/cost.h"
#include "ops/core/size_limits.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/transformer.h"
#include "ops/generated/transformer_rules.h"

namespace paddle::rules {
namespace {

void check_matrix(InferContext& c, size_t operand, const char* form) {
  c.check(c.rank(operand) == 2, c.op().operands()[operand].name, " must be ", form, ", not ",
          c.type(operand));
}

void check_vector(InferContext& c, size_t operand, const char* form) {
  c.check(c.rank(operand) == 1, c.op().operands()[operand].name, " must be ", form, ", not ",
          c.type(operand));
}

/// The number of tokens among `pairs` pairs of k choices.
Dim tokens_of(InferContext& c, const Dim& pairs, const Dim& k) {
  if (pairs.is_constant() && k.is_constant())
    c.check(pairs.value() % k.value() == 0, pairs, " pairs are not a multiple of k = ", k);
  return floor_divide(pairs, k);
}

void check_choices(InferContext& c, int64_t k) {
  c.check(k >= 1, "k must be at least 1, not ", k);
  require_32_bits(k, c.op().name(), ": k");
}

Tensor column(const Tensor& x) { return ops::reshape(x, {Dim(-1), Dim(1)}); }

}  // namespace

void infer_expert_order(InferContext& c) {
  const int64_t count = c.attrs_as<ExpertOrderAttrs>().count;
  check_matrix(c, 0, "[tokens, k]");
  c.check(count >= 1, "count must be at least 1, not ", count);
  require_32_bits(count, c.op().name(), ": count");
  check_index_count(c.op().name(), count);
  c.result(DType::kI64, {c.shape(0)[0] * c.shape(0)[1]});
  c.result(DType::kI64, {Dim(count)});
}

void infer_expert_rows(InferContext& c) {
  const int64_t k = c.attrs_as<ExpertRowsAttrs>().k;
  check_choices(c, k);
  check_matrix(c, 0, "[tokens, width]");
  check_vector(c, 1, "[tokens * k]");
  c.require_equal(c.shape(0)[0] * Dim(k), c.shape(1)[0], "order must be [tokens * k]");
  c.result(c.dtype(0), {c.shape(1)[0], c.shape(0)[1]});
}

Tensors vjp_expert_rows(VjpContext& c) {
  Tensors out = c.gradients();
  if (c.needs(0))
    out[0] = ops::expert_sum(c.cotangent(), c.operand(1), {}, c.attrs_as<ExpertRowsAttrs>().k);
  return out;
}

void infer_expert_sum(InferContext& c) {
  const auto a = c.attrs_as<ExpertSumAttrs>();
  check_matrix(c, 0, "[tokens * k, width]");
  check_vector(c, 1, "[tokens * k]");
  c.require_equal(c.shape(0)[0], c.shape(1)[0], "y and order differ in rows");
  if (a.k) check_choices(c, *a.k);
  if (!c.has(2)) {
    c.check(a.k.has_value(), "k is missing: it is needed without weights");
    c.result(c.dtype(0), {tokens_of(c, c.shape(0)[0], Dim(*a.k)), c.shape(0)[1]});
    return;
  }
  check_matrix(c, 2, "[tokens, k]");
  const Shape& weights = c.shape(2);
  if (a.k) c.require_equal(weights[1], Dim(*a.k), "weights must be [tokens, k]");
  c.require_equal(weights[0] * weights[1], c.shape(0)[0],
                  "weights [tokens, k] must have an element for each row of y");
  c.result(c.dtype(0), {weights[0], c.shape(0)[1]});
}

Tensors vjp_expert_sum(VjpContext& c) {
  Tensors out = c.gradients();
  const Tensor &y = c.operand(0), &order = c.operand(1), &g = c.cotangent();
  const bool weighted = c.map().end(2) > c.map().begin(2) && c.operand(2).defined();
  if (!weighted) {
    if (c.needs(0)) out[0] = ops::expert_rows(g, order, *c.attrs_as<ExpertSumAttrs>().k);
    return out;
  }
  const Tensor& weights = c.operand(2);
  if (!weights.dim(1).is_constant())
    reject(c.op().name(), "the gradient needs a known number of choices, not weights ",
           weights.type());
  const Tensor rows = ops::expert_rows(g, order, weights.dim(1).value());
  // With one choice for each token, expert_rows sorts and expert_sum is its inverse.
  if (c.needs(0)) out[0] = rows * ops::expert_rows(column(weights), order, 1);
  if (c.needs(2)) {
    const Tensor products = ops::sum(y * rows, Axes{1}, std::nullopt, true);
    out[2] = ops::reshape(ops::expert_sum(products, order, {}, 1), weights.shape());
  }
  return out;
}

void infer_grouped_matmul(InferContext& c) {
  const bool transpose = c.attrs_as<GroupedMatmulAttrs>().transpose;
  check_matrix(c, 0, "[rows, in]");
  c.check(c.rank(1) == 3, "weight must be ", transpose ? "[groups, out, in]" : "[groups, in, out]",
          ", not ", c.type(1));
  check_vector(c, 2, "[groups]");
  const Shape& weight = c.shape(1);
  c.require_equal(c.shape(0)[1], weight[transpose ? 2 : 1],
                  str("x is ", c.type(0), ", weight is ", c.type(1),
                      transpose ? " (transposed)" : "", ": they differ in the inner dim"));
  c.require_equal(weight[0], c.shape(2)[0], "weight and counts differ in groups");
  c.result(c.dtype(0), {c.shape(0)[0], weight[transpose ? 1 : 2]});
}

Tensors vjp_grouped_matmul(VjpContext& c) {
  const bool transpose = c.attrs_as<GroupedMatmulAttrs>().transpose;
  Tensors out = c.gradients();
  const Tensor &x = c.operand(0), &weight = c.operand(1), &counts = c.operand(2);
  const Tensor& g = c.cotangent();
  if (c.needs(0)) out[0] = ops::grouped_matmul(g, weight, counts, !transpose);
  if (c.needs(1))
    out[1] = transpose ? ops::grouped_weight_gradient(g, x, counts)
                       : ops::grouped_weight_gradient(x, g, counts);
  return out;
}

double cost_grouped_matmul(const Attrs&, const std::vector<Dims>& operands,
                           const std::vector<Dims>& results) {
  return 2 * element_product(results[0]) * static_cast<double>(operands[0].back());
}

void infer_grouped_weight_gradient(InferContext& c) {
  check_matrix(c, 0, "[rows, in]");
  check_matrix(c, 1, "[rows, out]");
  check_vector(c, 2, "[groups]");
  c.require_equal(c.shape(0)[0], c.shape(1)[0], "x and grad differ in rows");
  c.result(c.dtype(0), {c.shape(2)[0], c.shape(0)[1], c.shape(1)[1]});
}

Tensors vjp_grouped_weight_gradient(VjpContext& c) {
  Tensors out = c.gradients();
  const Tensor &x = c.operand(0), &grad = c.operand(1), &counts = c.operand(2);
  const Tensor& g = c.cotangent();
  if (c.needs(0)) out[0] = ops::grouped_matmul(grad, g, counts, true);
  if (c.needs(1)) out[1] = ops::grouped_matmul(x, g, counts, false);
  return out;
}

double cost_grouped_weight_gradient(const Attrs&, const std::vector<Dims>& operands,
                                    const std::vector<Dims>&) {
  return 2 * element_product(operands[0]) * static_cast<double>(operands[1].back());
}

}  // namespace paddle::rules
