// Normalization and gating operators of com.microsoft, computed in float32.

#include <cmath>

#include "onnx/ops/helpers.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

Tensor as_float32(const NodeCall& c, size_t i) { return ops::cast(c.tensor(i), DType::kF32); }

/// RMS normalization over the last axis, without a weight.
Tensor rms_normalize(const Tensor& x, double epsilon) {
  return x * ops::rsqrt(ops::mean(x * x, std::vector<int64_t>{-1}, true) + epsilon);
}

/// Splits the last axis into [branches, features], if there are branches.
Tensor split_branches(const NodeCall& c, const Tensor& x, int64_t branches) {
  if (branches == 0) return x;
  c.check(branches > 0 && x.ndim() >= 1, "num_branches is ", branches);
  const Dim& last = x.dim(-1);
  c.check(!last.is_constant() || last.value() % branches == 0, "an axis of ", last, " is not ",
          branches, " branches");
  Shape shape = x.shape();
  shape.back() = Dim(branches);
  shape.push_back(floor_divide(last, branches));
  return ops::reshape(x, shape);
}

/// Broadcasts gates to streams [..., branches, features].
Tensor broadcast_gates(const NodeCall& c, const Tensor& gates, const Tensor& streams) {
  if (gates.ndim() == streams.ndim()) return gates;
  c.check(gates.ndim() == streams.ndim() - 1, "gates ", gates.type(), " do not match streams ",
          streams.type());
  const bool one_each = gates.dim(-1).equals(streams.dim(-2)).value_or(true);
  return one_each ? ops::unsqueeze(gates, {-1}) : ops::reshape(gates, streams.shape());
}

Values branchwise_rms_norm(NodeCall& c) {
  const int64_t branches = c.int_attr("num_branches", 0);
  const Tensor x = split_branches(c, as_float32(c, 0), branches);
  c.check(x.ndim() >= 2, "the input must have an axis of branches");
  Tensor y = rms_normalize(x, c.float_attr("epsilon", 1e-5));
  if (c.has_input(1)) {
    Tensor scale = as_float32(c, 1);
    if (scale.ndim() == 1 && !scale.dim(0).equals(x.dim(-1)).value_or(true))
      scale = ops::reshape(scale, {x.dim(-2), x.dim(-1)});
    y = y * scale;
  }
  return {ops::cast(ops::reshape(y, c.tensor(0).shape()), c.tensor(0).dtype())};
}

Values gated_rms_norm(NodeCall& c) {
  const Tensor x = as_float32(c, 0), scale = as_float32(c, 1), gate = as_float32(c, 2);
  const std::string activation = c.string_attr("activation", "silu");
  const bool swish = activation == "silu" || activation == "swish";
  c.check(swish || activation == "sigmoid", "unknown activation '", activation, "'");
  const int64_t size = constant_dim(scale, 0);
  c.check(size > 0 && scale.ndim() == 1, "the scale must be a vector");
  Shape groups = x.shape();
  groups.back() = floor_divide(x.dim(-1), size);
  groups.push_back(Dim(size));
  const Tensor y = rms_normalize(ops::reshape(x, groups), c.float_attr("epsilon", 1e-5)) * scale;
  const Tensor factor = swish ? ops::silu(gate) : ops::sigmoid(gate);
  return {ops::cast(ops::reshape(y, x.shape()) * factor, c.tensor(0).dtype())};
}

/// The gate is the sigmoid of the similarity of keys and queries.
Values engram_gate(NodeCall& c) {
  const double epsilon = c.float_attr("epsilon", 1e-5);
  const Tensor key = rms_normalize(as_float32(c, 0), epsilon) * as_float32(c, 3),
               query = rms_normalize(as_float32(c, 1), epsilon) * as_float32(c, 4);
  const std::vector<int64_t> last = {-1};
  const Tensor dot = ops::sum(key * query, last, DType::kF32, true) /
                     std::sqrt(static_cast<double>(constant_dim(key, -1)));
  const Tensor root = ops::sqrt(ops::maximum(ops::abs(dot), scalar(1e-6, DType::kF32)));
  const Tensor gate =
      ops::sigmoid(ops::where(ops::less_than(dot, scalar(0, DType::kF32)), ops::neg(root), root));
  const Tensor y = gate * ops::unsqueeze(as_float32(c, 2), {2});
  const DType dtype = c.tensor(0).dtype();
  Values out = {ops::cast(y, dtype)};
  if (c.has_output(1))
    out.emplace_back(ops::cast(rms_normalize(y, epsilon) * as_float32(c, 5), dtype));
  return out;
}

Values gated_add(NodeCall& c) {
  c.check(!c.has_input(3), "gate_weight is not supported");
  return {c.tensor(0) + c.tensor(1) * c.tensor(2)};
}

Values pre_mix(NodeCall& c) {
  const Tensor x = split_branches(c, as_float32(c, 0), c.int_attr("num_branches", 0));
  c.check(x.ndim() >= 2, "the streams must have an axis of branches");
  const Tensor sum =
      ops::sum(x * broadcast_gates(c, as_float32(c, 1), x), std::vector<int64_t>{-2}, DType::kF32);
  return {ops::cast(sum * c.float_attr("reduction_scale", 1), c.tensor(0).dtype())};
}

Values post_mix(NodeCall& c) {
  const Tensor x = split_branches(c, as_float32(c, 0), c.int_attr("num_branches", 0));
  c.check(x.ndim() >= 2, "the streams must have an axis of branches");
  const Tensor mixed = c.has_input(3) ? ops::matmul(as_float32(c, 3), x, true) : x;
  const Tensor y =
      mixed + broadcast_gates(c, as_float32(c, 2), x) * ops::unsqueeze(as_float32(c, 1), {-2});
  return {ops::cast(ops::reshape(y, c.tensor(0).shape()), c.tensor(0).dtype())};
}

/// softplus is computed without overflow.
Values linear_attention_gate(NodeCall& c) {
  const DType dtype = c.tensor(0).dtype();
  Values out = {
      ops::cast(as_float32(c, 2) * ops::softplus(as_float32(c, 0) + as_float32(c, 1)), dtype)};
  if (c.has_input(3)) out.emplace_back(ops::cast(ops::sigmoid(as_float32(c, 3)), dtype));
  return out;
}

/// Rounds each step to the input's dtype.
Values scaled_silu(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const Tensor scaled =
      c.has_input(1) ? ops::cast(as_float32(c, 0) * ops::reshape(as_float32(c, 1), {}), x.dtype())
                     : ops::cast(as_float32(c, 0) * c.float_attr("alpha", 1), x.dtype());
  return {scaled * ops::cast(ops::sigmoid(ops::cast(scaled, DType::kF32)), x.dtype())};
}

}  // namespace

OperatorTable contrib_gated_operators() {
  static constexpr Operator operators[] = {
      {"BranchwiseRMSNorm", 1, branchwise_rms_norm},
      {"EngramGate", 1, engram_gate},
      {"GatedAdd", 1, gated_add},
      {"GatedRMSNorm", 1, gated_rms_norm},
      {"HyperConnectionPostMix", 1, post_mix},
      {"HyperConnectionPreMix", 1, pre_mix},
      {"LinearAttentionGate", 1, linear_attention_gate},
      {"ScaledSiLU", 1, scaled_silu},
  };
  return operators;
}

}  // namespace paddle::onnx
