// Rules of norm.yaml.

#include "ops/core/operators.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/nn_rules.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

/// Number of trailing axes that layer_norm normalizes.
size_t normalized_rank(const LayerNormAttrs& a) {
  if (a.normalized_shape.is_none()) return 1;
  return a.normalized_shape.is_list() ? a.normalized_shape.as_list().size() : 1;
}

std::vector<int64_t> trailing_axes(size_t rank, size_t count) {
  std::vector<int64_t> axes;
  for (size_t i = rank - count; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

std::vector<int64_t> leading_axes(size_t count) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < count; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

Tensor mean_over(const Tensor& x, const std::vector<int64_t>& axes) {
  return ops::mean(x, axes, true);
}

DType statistics_dtype(DType d) { return d == DType::kF16 || d == DType::kBF16 ? DType::kF32 : d; }

/// Throws kUsage unless an operand has the type of saved means and deviations of such an x.
void require_statistics(const InferContext& c, size_t operand, DType x) {
  c.check(c.dtype(operand) == statistics_dtype(x), c.op().operands()[operand].name, " must be ",
          text(statistics_dtype(x)), ", not ", c.type(operand));
}

size_t channel_axis(const std::string& data_format, size_t rank) {
  return rank > 2 && !data_format.empty() && data_format.back() == 'C' ? rank - 1 : 1;
}

Shape channel_shape(size_t rank, size_t axis, const Dim& channels) {
  Shape out(rank, Dim(1));
  out[axis] = channels;
  return out;
}

std::vector<int64_t> other_axes(size_t rank, size_t axis) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i)
    if (i != axis) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

}  // namespace

void infer_layer_norm(InferContext& c) {
  const auto a = c.attrs_as<LayerNormAttrs>();
  const Shape& x = c.shape(0);
  const size_t count = normalized_rank(a);
  c.check(count >= 1 && count <= x.size(), "cannot normalize ", count, " axes of ", c.type(0));
  const Shape normal(x.end() - static_cast<ptrdiff_t>(count), x.end());
  if (!a.normalized_shape.is_none()) {
    const Shape wanted = a.normalized_shape.as_dims();
    for (size_t i = 0; i < count; ++i)
      c.require_equal(normal[i], wanted[i],
                      str("normalized_shape ", text(wanted), " does not end ", c.type(0)));
  }
  for (const size_t operand : {1, 2})
    if (c.has(operand))
      c.require_equal(element_count(std::span<const Dim>(c.shape(operand))),
                      element_count(std::span<const Dim>(normal)),
                      str(c.op().operands()[operand].name, " is ", c.type(operand),
                          ", the normalized axes are ", text(normal)));
  const Shape rows(x.begin(), x.end() - static_cast<ptrdiff_t>(count));
  c.result(c.dtype(0), x);
  c.result(statistics_dtype(c.dtype(0)), rows);
  c.result(statistics_dtype(c.dtype(0)), rows);
}

Tensors vjp_layer_norm(VjpContext& c) {
  const Tensors grads =
      ops::layer_norm_grad(c.cotangent(), c.operand(0), c.result(1), c.result(2), c.operand(1));
  Tensors out = c.gradients();
  if (c.needs(0)) out[0] = grads[0];
  if (c.needs(1)) out[1] = ops::reshape(grads[1], c.operand(1).shape());
  if (c.needs(2)) out[2] = ops::reshape(grads[2], c.operand(2).shape());
  return out;
}

void infer_layer_norm_grad(InferContext& c) {
  const Shape& x = c.shape(1);
  c.check(c.rank(0) == c.rank(1) && c.rank(2) < c.rank(1) && c.rank(3) == c.rank(2), "x is ",
          c.type(1), ", its gradient ", c.type(0), ", the means are ", c.type(2));
  for (size_t i = 0; i < x.size(); ++i)
    c.require_equal(c.shape(0)[i], x[i], "x and the gradient differ");
  for (const size_t operand : {2, 3}) {
    require_statistics(c, operand, c.dtype(1));
    for (size_t i = 0; i < c.shape(operand).size(); ++i)
      c.require_equal(c.shape(operand)[i], x[i],
                      str(c.op().operands()[operand].name, " does not fit x"));
  }
  const Shape normal(x.begin() + c.rank(2), x.end());
  if (c.has(4)) {
    c.require_equal(element_count(std::span<const Dim>(c.shape(4))),
                    element_count(std::span<const Dim>(normal)),
                    str("weight is ", c.type(4), ", the normalized axes are ", text(normal)));
  }
  c.result(c.dtype(1), x);
  c.result(c.dtype(1), normal);
  c.result(c.dtype(1), normal);
}

Tensors decompose_layer_norm_grad(CallContext& c) {
  const Tensor x = ops::cast(c.operand(1), c.operand(2).dtype());
  const Tensor g = ops::cast(c.operand(0), x.dtype());
  const size_t rank = x.shape().size(), lead = c.operand(2).shape().size();
  const auto axes = trailing_axes(rank, rank - lead);
  // The statistics are recomputed from x, so that gradients of higher order flow through them.
  const Tensor centered = x - mean_over(x, axes);
  const Tensor saved = ops::unsqueeze(ops::square(c.operand(3)),
                                      [&] { return std::vector<int64_t>(rank - lead, -1); }());
  // rstd^-2 = variance + epsilon, so epsilon is the saved value minus the variance.
  const Tensor variance = mean_over(ops::square(centered), axes);
  const Tensor epsilon = ops::detach(ops::reciprocal(saved) - variance);
  const Tensor rstd = ops::rsqrt(variance + epsilon);
  const Tensor normal = centered * rstd;
  Tensor scaled = g;
  if (c.has(4)) {
    Shape shape(x.shape().begin() + static_cast<ptrdiff_t>(lead), x.shape().end());
    scaled = g * ops::cast(ops::reshape(c.operand(4), shape), x.dtype());
  }
  const Tensor dx =
      (scaled - mean_over(scaled, axes) - normal * mean_over(scaled * normal, axes)) * rstd;
  const DType out = c.operand(1).dtype();
  const auto rows = leading_axes(lead);
  const auto over_rows = [&](const Tensor& t) { return lead ? ops::sum(t, rows) : t; };
  return {ops::cast(dx, out), ops::cast(over_rows(g * normal), out), ops::cast(over_rows(g), out)};
}

void infer_batch_norm(InferContext& c) {
  const auto a = c.attrs_as<BatchNormAttrs>();
  const Shape& x = c.shape(0);
  c.check(x.size() >= 2, "x must have at least 2 dimensions, not ", c.type(0));
  const Dim channels = x[channel_axis(a.data_format, x.size())];
  for (size_t i = 1; i <= 4; ++i) {
    if (!c.has(i)) continue;
    c.check(c.rank(i) <= 1, c.op().operands()[i].name, " must have one dimension, not ", c.type(i));
    c.require_equal(
        element_count(std::span<const Dim>(c.shape(i))), channels,
        str(c.op().operands()[i].name, " is ", c.type(i), ", x has ", channels, " channels"));
  }
  c.result(c.dtype(0), x);
  c.result(c.dtype(1), c.shape(1));
  c.result(c.dtype(2), c.shape(2));
  c.result(statistics_dtype(c.dtype(0)), {channels});
  c.result(statistics_dtype(c.dtype(0)), {channels});
}

void infer_batch_norm_statistics(InferContext& c) {
  infer_batch_norm(c);
  c.results().erase(c.results().begin());
  const TensorType statistics = c.results().back();
  c.result(statistics);
  c.result(statistics);
}

/// One operation for the statistics, then an elementwise chain that fuses with its neighbors. Not
/// for channels first, where a scale per plane makes the single kernel as fast.
Tensors decompose_for_fusion_batch_norm(CallContext& c) {
  const auto a = c.attrs_as<BatchNormAttrs>();
  const Tensor& x = c.operand(0);
  if (channel_axis(a.data_format, x.shape().size()) + 1 != x.shape().size()) return {};
  const Tensors s = ops::batch_norm_statistics(x, c.operand(1), c.operand(2), c.operand(3),
                                               c.operand(4), a.training, a.momentum, a.epsilon,
                                               a.data_format, a.use_global_stats);
  const Tensor wide = ops::cast(x, s[2].dtype());
  return {ops::cast((wide - s[2]) * s[4] + s[5], x.dtype()), s[0], s[1], s[2], s[3]};
}

Tensors vjp_batch_norm(VjpContext& c) {
  const auto a = c.attrs_as<BatchNormAttrs>();
  const bool batch = a.training && !a.use_global_stats.value_or(false);
  const Tensors grads = ops::batch_norm_grad(c.cotangent_or_zeros(0), c.operand(0), c.result(3),
                                             c.result(4), c.operand(3), batch, a.data_format);
  Tensors out = c.gradients();
  if (c.needs(0)) out[0] = grads[0];
  if (c.needs(3))
    out[3] = ops::cast(ops::reshape(grads[1], c.operand(3).shape()), c.operand(3).dtype());
  if (c.needs(4))
    out[4] = ops::cast(ops::reshape(grads[2], c.operand(4).shape()), c.operand(4).dtype());
  return out;
}

void infer_batch_norm_grad(InferContext& c) {
  c.check(c.rank(1) >= 2 && c.rank(0) == c.rank(1),
          "expected x of at least 2 dimensions and a "
          "gradient of its shape, found ",
          c.type(1), " and ", c.type(0));
  for (size_t i = 0; i < c.shape(1).size(); ++i)
    c.require_equal(c.shape(0)[i], c.shape(1)[i], "x and the gradient differ");
  for (const size_t operand : {2, 3}) require_statistics(c, operand, c.dtype(1));
  const auto format = c.attrs_as<BatchNormGradAttrs>().data_format;
  const Dim channels = c.shape(1)[channel_axis(format, c.shape(1).size())];
  for (size_t i = 2; i <= 4; ++i) {
    if (!c.has(i)) continue;
    c.require_equal(element_count(std::span<const Dim>(c.shape(i))), channels,
                    str(c.op().operands()[i].name, " does not fit the channels"));
  }
  c.result(c.dtype(1), c.shape(1));
  c.result(c.dtype(2), c.shape(2));
  c.result(c.dtype(2), c.shape(2));
}

void infer_batch_norm_grad_statistics(InferContext& c) {
  infer_batch_norm_grad(c);
  c.results().erase(c.results().begin());
  const TensorType statistics = c.results().back();
  for (int i = 0; i < 3; ++i) c.result(statistics);
}

/// As lower_batch_norm does it.
Tensors decompose_for_fusion_batch_norm_grad(CallContext& c) {
  const auto a = c.attrs_as<BatchNormGradAttrs>();
  const Tensor &g = c.operand(0), &x = c.operand(1), &mean = c.operand(2);
  if (channel_axis(a.data_format, x.shape().size()) + 1 != x.shape().size()) return {};
  if (g.dtype() != x.dtype()) return {};
  const Tensors s = ops::batch_norm_grad_statistics(g, x, mean, c.operand(3), c.operand(4),
                                                    a.batch_statistics, a.data_format);
  Tensor dx = ops::cast(g, mean.dtype()) * s[2];
  if (a.batch_statistics) dx = dx + (ops::cast(x, mean.dtype()) - mean) * s[3] + s[4];
  return {ops::cast(dx, x.dtype()), s[0], s[1]};
}

Tensors decompose_batch_norm_grad(CallContext& c) {
  const auto a = c.attrs_as<BatchNormGradAttrs>();
  const DType wide = c.operand(2).dtype();
  const Tensor x = ops::cast(c.operand(1), wide), g = ops::cast(c.operand(0), wide);
  const size_t rank = x.shape().size(), axis = channel_axis(a.data_format, rank);
  const Shape per_channel = channel_shape(rank, axis, x.shape()[axis]);
  const auto axes = other_axes(rank, axis);
  const auto spread = [&](const Tensor& t) {
    return ops::reshape(ops::cast(t, wide), per_channel);
  };
  const Tensor weight = c.has(4) ? spread(c.operand(4)) : Tensor();
  const Tensor scaled = weight.defined() ? g * weight : g;
  Tensor normal, dx;
  if (a.batch_statistics) {
    const Tensor centered = x - mean_over(x, axes);
    const Tensor variance = mean_over(ops::square(centered), axes);
    const Tensor epsilon =
        ops::detach(ops::reciprocal(ops::square(spread(c.operand(3)))) - variance);
    const Tensor rstd = ops::rsqrt(variance + epsilon);
    normal = centered * rstd;
    dx = (scaled - mean_over(scaled, axes) - normal * mean_over(scaled * normal, axes)) * rstd;
  } else {
    const Tensor rstd = spread(c.operand(3));
    normal = (x - spread(c.operand(2))) * rstd;
    dx = scaled * rstd;
  }
  return {ops::cast(dx, c.operand(1).dtype()), ops::sum(g * normal, axes), ops::sum(g, axes)};
}

}  // namespace paddle::rules
