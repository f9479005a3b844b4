// Linear attention (Katharopoulos et al., "Transformers are RNNs", 2020): each head keeps a state
// that every step updates and reads.

#include <cmath>

#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

constexpr int64_t kMaxSteps = 4096;

/// [batch, steps, heads * size] to [batch, heads, steps, size] in float32.
Tensor heads_of(const Tensor& x, int64_t heads) {
  const Tensor wide = ops::cast(x, DType::kF32);
  return ops::transpose(
      ops::reshape(wide, {x.dim(0), x.dim(1), Dim(heads), floor_divide(x.dim(2), heads)}),
      {0, 2, 1, 3});
}

Values linear_attention(NodeCall& c) {
  const std::string rule = c.string_attr("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool delta = rule == "delta" || rule == "gated_delta";
  c.check(gated || delta || rule == "linear", "unknown update_rule '", rule, "'");
  c.check(c.int_attr("state_window", 0) == 0, "state_window is not supported");
  const int64_t q_heads = c.int_attr("q_num_heads", 0), kv_heads = c.int_attr("kv_num_heads", 0);
  c.check(kv_heads > 0 && q_heads > 0 && q_heads % kv_heads == 0,
          "q_num_heads must be a multiple of kv_num_heads");
  const DType dtype = c.tensor(0).dtype();
  const Tensor q = heads_of(c.tensor(0), q_heads), k = heads_of(c.tensor(1), kv_heads),
               v = heads_of(c.tensor(2), kv_heads);
  Tensor decay, rate;
  if (gated) decay = heads_of(c.tensor(4), kv_heads);
  if (delta) rate = heads_of(c.tensor(5), constant_dim(c.tensor(5), 2));
  const DType state_dtype = c.has_input(3) ? c.tensor(3).dtype() : dtype;
  Tensor state = c.has_input(3)
                     ? ops::cast(c.tensor(3), DType::kF32)
                     : ops::full({q.dim(0), Dim(kv_heads), k.dim(3), v.dim(3)}, 0.0, DType::kF32);
  double scale = c.float_attr("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(constant_dim(q, 3)));
  const int64_t steps = constant_dim(q, 2), group = q_heads / kv_heads;
  c.check(steps <= kMaxSteps, "more than ", kMaxSteps, " steps are not supported");
  Tensors out;
  for (int64_t t = 0; t < steps; ++t) {
    const auto at = [&](const Tensor& x) { return slice_axis(x, 2, t, t + 1); };  // [b, h, 1, d]
    if (gated) state = state * ops::transpose(ops::exp(at(decay)), {0, 1, 3, 2});
    Tensor value = at(v);
    if (delta) value = at(rate) * (value - ops::matmul(at(k), state));
    state = state + ops::transpose(at(k), {0, 1, 3, 2}) * value;
    Tensor read = state;
    if (group > 1) {
      const Shape wide = {state.dim(0), state.dim(1), Dim(group), state.dim(2), state.dim(3)};
      read = ops::reshape(ops::expand(ops::unsqueeze(state, {2}), wide),
                          {state.dim(0), Dim(q_heads), state.dim(2), state.dim(3)});
    }
    out.push_back(ops::matmul(at(q), read) * scale);
  }
  const Tensor all = ops::transpose(ops::concat(out, 2), {0, 2, 1, 3});
  return {ops::cast(ops::reshape(all, {all.dim(0), all.dim(1), all.dim(2) * all.dim(3)}), dtype),
          ops::cast(state, state_dtype)};
}

}  // namespace

OperatorTable linear_attention_operators() {
  static constexpr Operator operators[] = {{"LinearAttention", 1, linear_attention}};
  return operators;
}

}  // namespace paddle::onnx
