// Rules of dropout and embedding in schema/nn.yaml.

#include <algorithm>
#include <cmath>

#include "ops/call.h"
#include "ops/generated/attrs.h"
#include "ops/generated/rules.h"
#include "ops/operators.h"
#include "ops/row_sparse.h"

namespace paddle::rules {

void infer_dropout(InferContext& c) {
  const auto a = c.attrs_as<DropoutAttrs>();
  c.check(a.p >= 0 && a.p <= 1, "p must lie in [0, 1], not ", a.p);
  if (a.axis) c.axes(*a.axis, c.rank(0));
  infer_same(c);
}

Tensors decompose_dropout(CallContext& c) {
  const auto a = c.attrs_as<DropoutAttrs>();
  const Tensor& x = c.operand(0);
  const bool upscale = a.mode == "upscale_in_train";
  if (!a.training) return {upscale ? ops::assign(x) : x * (1 - a.p)};
  if (a.p == 0) return {ops::assign(x)};
  if (a.p == 1) return {x * 0.0};
  // Axes that are not named share one decision.
  Shape shape = x.shape();
  if (a.axis) {
    const auto kept = normal_axes(a.axis, x.ndim());
    for (size_t i = 0; i < shape.size(); ++i)
      if (std::find(kept.begin(), kept.end(), static_cast<int64_t>(i)) == kept.end()) shape[i] = 1;
  }
  const Tensor dropped = x * ops::dropout_mask(x, a.p, shape);
  return {upscale ? dropped * (1 / (1 - a.p)) : dropped};
}

void infer_embedding(InferContext& c) {
  c.require_integer(0);
  c.check(c.rank(1) == 2, "weight must be [rows, width], not ", c.type(1));
  const auto padding = c.attrs_as<EmbeddingAttrs>().padding_idx;
  const Dim& rows = c.shape(1)[0];
  c.check(!padding || !rows.is_constant() || (*padding >= -rows.value() && *padding < rows.value()),
          "padding_idx ", padding.value_or(0), " is no row of ", c.type(1));
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
  c.require_integer(0);
  c.check(a.num_classes > 0, "num_classes must be positive, not ", a.num_classes);
  Shape out = c.shape(0);
  out.push_back(a.num_classes);
  c.result(DType::kF32, out);
}

}  // namespace paddle::rules
