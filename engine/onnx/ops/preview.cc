// Operators of ai.onnx.preview.

#include <cmath>

#include "onnx/graph/evaluator.h"
#include "onnx/ops/helpers.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// Attention whose scores and probabilities pass through subgraphs of the node.
Values flex_attention(NodeCall& c) {
  const Tensor& q = c.tensor(0);
  Tensor k = c.tensor(1), v = c.tensor(2);
  c.check(q.ndim() == 4 && k.ndim() == 4 && v.ndim() == 4, "inputs must be of rank 4");
  if (!q.dim(1).equals(k.dim(1)).value_or(true)) {
    const auto repeated = [&](const Tensor& x) {
      const Shape wide = {x.dim(0), x.dim(1), floor_divide(q.dim(1), x.dim(1)), x.dim(2), x.dim(3)};
      return ops::reshape(ops::expand(ops::unsqueeze(x, {2}), wide),
                          {x.dim(0), q.dim(1), x.dim(2), x.dim(3)});
    };
    k = repeated(k);
    v = repeated(v);
  }
  const double scale = c.has_attribute("scale")
                           ? c.float_attr("scale", 1)
                           : 1 / std::sqrt(static_cast<double>(constant_dim(q, 3)));
  const double root = std::sqrt(scale);
  const DType work =
      c.dtype_attr("softmax_precision", q.dtype() == DType::kF64 ? DType::kF64 : DType::kF32);
  const auto modified = [&](const char* graph, const Tensor& x) {
    if (!c.has_attribute(graph)) return x;
    return ops::cast(c.evaluator().run(c.graph_attr(graph), {x}, c.scope()).at(0).tensor(), work);
  };
  const Tensor scores = ops::matmul(q * root, k * root, false, true);
  Tensor weights = modified("score_mod", ops::cast(scores, work));
  weights = modified("prob_mod", ops::softmax(weights, -1));
  return {ops::cast(ops::matmul(weights, ops::cast(v, work)), v.dtype())};
}

}  // namespace

OperatorTable preview_operators() {
  static constexpr Operator operators[] = {{"FlexAttention", 1, flex_attention}};
  return operators;
}

}  // namespace paddle::onnx
