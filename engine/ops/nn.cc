// Rules of dropout, embedding and attention in schema/nn.yaml.

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

void infer_attention(InferContext& c) {
  const Shape &q = c.shape(0), &k = c.shape(1), &v = c.shape(2);
  c.check(q.size() == 4 && k.size() == 4 && v.size() == 4,
          "operands must be [batch, sequence, heads, dim], not ", c.type(0), ", ", c.type(1), ", ",
          c.type(2));
  c.require_equal(q[0], k[0], "batch sizes of query and key differ");
  c.require_equal(k[0], v[0], "batch sizes of key and value differ");
  c.require_equal(k[1], v[1], "lengths of key and value differ");
  c.require_equal(q[2], k[2], "heads of query and key differ");
  c.require_equal(k[2], v[2], "heads of key and value differ");
  c.require_equal(q[3], k[3], "widths of query and key differ");
  c.result(c.dtype(0), {q[0], q[1], q[2], v[3]});
}

Tensors decompose_attention(CallContext& c) {
  const auto a = c.attrs_as<ScaledDotProductAttentionAttrs>();
  const bool drops = a.dropout_p > 0 && a.training;
  const Dim& width_of_heads = c.operand(0).dim(3);
  if (!drops && width_of_heads.is_constant() && width_of_heads.value() > 0)
    return {
        ops::attention(c.operand(0), c.operand(1), c.operand(2), c.has(3) ? c.operand(3) : Tensor(),
                       1 / std::sqrt(static_cast<double>(width_of_heads.value())), a.is_causal)};
  const std::vector<int64_t> heads_first = {0, 2, 1, 3};
  const Tensor q = ops::transpose(c.operand(0), heads_first);
  const Tensor k = ops::transpose(c.operand(1), heads_first);
  const Tensor v = ops::transpose(c.operand(2), heads_first);
  const Tensor width = ops::rsqrt(dim_value(q.dim(3), q.dtype()));
  Tensor scores = ops::matmul(q * width, k, false, true);
  if (c.has(3)) {
    const Tensor& mask = c.operand(3);
    scores =
        is_bool(mask.dtype())
            ? ops::where(mask, scores, Tensor::number(-std::numeric_limits<double>::infinity()))
            : scores + mask;
  }
  if (a.is_causal) {
    const auto places = [&](const Dim& count) {
      return ops::cumsum(full_of({count}, 1, DType::kI64), 0);
    };
    const Tensor row = ops::unsqueeze(places(scores.dim(-2)), {1});
    const Tensor column = ops::unsqueeze(places(scores.dim(-1)), {0});
    scores = ops::where(ops::greater_equal(row, column), scores,
                        Tensor::number(-std::numeric_limits<double>::infinity()));
  }
  Tensor weights = ops::softmax(scores, -1);
  if (drops) weights = ops::dropout(weights, a.dropout_p);
  return {ops::transpose(ops::matmul(weights, v), heads_first)};
}

}  // namespace paddle::rules
