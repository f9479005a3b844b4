#pragma once
// Shared by the attention operators of com.microsoft. Queries, keys and values are
// [batch, heads, steps, size].

#include "onnx/graph/node_call.h"

namespace paddle::onnx {

/// [batch, steps, heads * size] to [batch, heads, steps, size].
Tensor split_heads(const Tensor& x, int64_t heads);
/// [batch, heads, steps, size] to [batch, steps, heads * size].
Tensor join_heads(const Tensor& y);

struct ScoreOptions {
  double scale = 0;  ///< 0: 1 / sqrt(size)
  double softcap = 0;
  Tensor bias;     ///< added; may be undefined
  Tensor allowed;  ///< bool mask; may be undefined
  Tensor sink;     ///< attention sink: a logit per head without a value; may be undefined

  void add(const Tensor& more) { bias = bias ? bias + more : more; }
};

/// The input of softmax: scaled and masked scores.
Tensor masked_scores(const Tensor& q, const Tensor& k, const ScoreOptions& s);
/// softmax(masked_scores) v.
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& s);
/// Causal mask with `past` cached keys. As in ONNX Runtime, the last query sees all keys even if
/// there are more keys than queries.
Tensor causal(const Dim& queries, const Dim& keys, const Dim& past);
/// a and b; `a` may be undefined.
Tensor and_masks(const Tensor& a, const Tensor& b);

/// Rotates x by the angles of `positions` [batch, steps], whose cosines and sines are rows of
/// tables. Rotates the first `width` features; 0 means all that the angles cover.
Tensor rotate_at(const NodeCall& c, const Tensor& x, const Tensor& positions, const Tensor& cosines,
                 const Tensor& sines, bool interleaved, int64_t width);

}  // namespace paddle::onnx
