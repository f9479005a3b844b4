// Rules of embedding.yaml.

#include "ops/core/compose.h"
#include "ops/core/row_sparse.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/nn_rules.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::rules {

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

void infer_embedding(InferContext& c) {
  c.check(c.rank(1) == 2, "weight must be [rows, width], not ", c.type(1));
  const auto padding = c.attrs_as<EmbeddingAttrs>().padding_idx;
  const Dim& rows = c.shape(1)[0];
  c.check(!padding || !rows.is_constant() || (*padding >= -rows.value() && *padding < rows.value()),
          "padding_idx ", padding.value_or(0), " is not a row of ", c.type(1));
  Shape out = c.shape(0);
  out.push_back(c.shape(1)[1]);
  c.result(c.dtype(1), out);
}
namespace {

/// A padding index counted from the end of the table, if negative.
std::optional<int64_t> padding_row(std::optional<int64_t> index, const Dim& rows) {
  if (index && *index < 0) return *index + rows.value();
  return index;
}

}  // namespace

Tensors vjp_embedding(VjpContext& c) {
  const auto a = c.attrs_as<EmbeddingAttrs>();
  Tensors out = c.gradients();
  const Dim& rows = c.operand(1).dim(0);
  if (c.needs(1) && a.sparse) {
    const Tensor& g = c.cotangent();
    Tensor flat = ops::reshape(ops::cast(c.operand(0), DType::kI64), {Dim(-1)});
    Tensor values = ops::reshape(g, {Dim(-1), g.dim(-1)});
    if (const auto padding = padding_row(a.padding_idx, rows)) {
      const Tensor kept = ops::not_equal(flat, Tensor::number(*padding));
      values = values * ops::unsqueeze(mask_of(kept, values), {-1});
    }
    out[1] = make_row_sparse(flat, values, rows);
  } else if (c.needs(1))
    out[1] =
        ops::embedding_grad(c.operand(0), c.cotangent(), rows, padding_row(a.padding_idx, rows));
  return out;
}

void infer_embedding_grad(InferContext& c) {
  const auto a = c.attrs_as<EmbeddingGradAttrs>();
  c.check(c.rank(1) == c.rank(0) + 1, "grad must be ", c.type(0), " with one more axis, not ",
          c.type(1));
  for (size_t i = 0; i < c.shape(0).size(); ++i)
    c.require_equal(c.shape(0)[i], c.shape(1)[i], "x and grad differ in shape");
  check_shape(c, {a.rows, c.shape(1).back()});
  c.result(c.dtype(1), {a.rows, c.shape(1).back()});
}

Tensors vjp_embedding_grad(VjpContext& c) {
  const auto a = c.attrs_as<EmbeddingGradAttrs>();
  Tensors out = c.gradients();
  Tensor rows = ops::embedding(c.operand(0), c.cotangent());
  if (a.padding_idx) {
    const Tensor kept = ops::not_equal(c.operand(0), Tensor::number(*a.padding_idx));
    rows = rows * ops::unsqueeze(mask_of(kept, rows), {-1});
  }
  out[1] = rows;
  return out;
}

void infer_one_hot(InferContext& c) {
  const auto a = c.attrs_as<OneHotAttrs>();
  c.check(a.num_classes > 0, "num_classes must be positive, not ", a.num_classes);
  Shape out = c.shape(0);
  out.push_back(a.num_classes);
  c.result(DType::kF32, out);
}

}  // namespace paddle::rules
