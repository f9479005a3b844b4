// Rules of norm.yaml: normalization in terms of other operations.

#include <algorithm>

#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/nn_rules.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/nn/channels.h"

namespace paddle::rules {

namespace {

/// Groups of channels to mean 0 and variance 1, then an affine map per channel.
Tensor normalized_groups(const char* op, const Tensor& given, int64_t groups, double epsilon,
                         const Tensor& weight, const Tensor& bias, const std::string& format) {
  if (given.ndim() < 2) reject(op, "x must have at least 2 dimensions, not ", given.type());
  const bool last = given.ndim() > 2 && channels_last(format);
  const Tensor x = last ? first_channels(given) : given;
  const Dim channels = x.dim(1);
  if (groups < 1 || modulo(channels, groups).constant().value_or(0) != 0)
    reject(op, channels, " channels do not divide into ", groups, " groups");
  for (const Tensor& t : {weight, bias})
    if (t.defined() &&
        (t.ndim() > 1 || element_count(std::span<const Dim>(t.shape())).equals(channels) == false))
      reject(op, "weight and bias must be [", channels, "], not ", t.type());
  Dim each = floor_divide(channels, groups);
  for (int64_t i = 2; i < x.ndim(); ++i) each = each * x.dim(i);
  const Tensor rows = ops::reshape(x, {x.dim(0), Dim(groups), each});
  Tensor y = ops::reshape(ops::layer_norm(rows, AttrValue(std::vector<Dim>{each}), {}, {}, epsilon),
                          x.shape());
  if (weight.defined()) y = y * ops::cast(per_channel(weight, x.ndim(), false), y.dtype());
  if (bias.defined()) y = y + ops::cast(per_channel(bias, x.ndim(), false), y.dtype());
  return last ? last_channels(y) : y;
}

}  // namespace

Tensors decompose_group_norm(CallContext& c) {
  const auto a = c.attrs_as<GroupNormAttrs>();
  return {normalized_groups("group_norm", c.operand(0), a.num_groups, a.epsilon, c.operand(1),
                            c.operand(2), a.data_format)};
}

Tensors decompose_instance_norm(CallContext& c) {
  const auto a = c.attrs_as<InstanceNormAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() < 2) reject("instance_norm", "x must have at least 2 dimensions, not ", x.type());
  const bool last = x.ndim() > 2 && channels_last(a.data_format);
  if (!a.use_input_stats && c.has(1) && c.has(2)) {
    const Tensor mean = per_channel(c.operand(1), x.ndim(), last),
                 variance = per_channel(c.operand(2), x.ndim(), last);
    Tensor y = (x - mean) * ops::rsqrt(variance + a.eps);
    if (c.has(3)) y = y * per_channel(c.operand(3), x.ndim(), last);
    if (c.has(4)) y = y + per_channel(c.operand(4), x.ndim(), last);
    return {y};
  }
  return {normalized_groups("instance_norm", x, x.dim(last ? -1 : 1).value(), a.eps, c.operand(3),
                            c.operand(4), a.data_format)};
}

Tensors decompose_rms_norm(CallContext& c) {
  const auto a = c.attrs_as<RmsNormAttrs>();
  const Tensor& given = c.operand(0);
  const auto count =
      static_cast<int64_t>(a.normalized_shape.is_list() ? a.normalized_shape.as_list().size() : 1);
  if (count < 1 || count > given.ndim())
    reject("rms_norm", "cannot normalize ", count, " axes of ", given.type());
  const auto sizes = a.normalized_shape.as_dims();
  for (int64_t i = 0; i < count; ++i)
    if (given.dim(i - count).equals(sizes[static_cast<size_t>(i)]) == false)
      reject("rms_norm", "normalized_shape ", a.normalized_shape, " is not the end of ",
             given.type());
  const bool narrow = given.dtype() == DType::kF16 || given.dtype() == DType::kBF16;
  const Tensor x = narrow ? ops::cast(given, DType::kF32) : given;
  Axes axes;
  for (int64_t i = x.ndim() - count; i < x.ndim(); ++i) axes.push_back(i);
  Tensor y = x * ops::rsqrt(ops::mean(ops::square(x), axes, true) + a.eps);
  if (narrow) y = ops::cast(y, given.dtype());
  if (c.has(1)) {
    const Shape shape(x.shape().end() - static_cast<ptrdiff_t>(count), x.shape().end());
    y = y * ops::reshape(c.operand(1), shape);
  }
  return {y};
}

Tensors decompose_local_response_norm(CallContext& c) {
  const auto a = c.attrs_as<LocalResponseNormAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() < 3)
    reject("local_response_norm", "x must have at least 3 dimensions, not ", x.type());
  if (a.size < 1) reject("local_response_norm", "size must be positive, not ", a.size);
  const int64_t axis = channels_last(a.data_format) ? x.ndim() - 1 : 1;
  // Neighbors beyond the channels are zeros.
  constexpr int64_t kMaxNeighbors = 1 << 12;
  const int64_t channels = x.dim(axis).constant().value_or(kMaxNeighbors);
  if (a.size > kMaxNeighbors && channels >= kMaxNeighbors)
    reject("local_response_norm", "size must be at most ", kMaxNeighbors, ", not ", a.size);
  const int64_t before = std::min(a.size / 2, channels),
                after = std::min((a.size - 1) / 2, channels);
  std::vector<int64_t> border(static_cast<size_t>(2 * x.ndim()), 0);
  border[static_cast<size_t>(2 * axis)] = before;
  border[static_cast<size_t>(2 * axis + 1)] = after;
  const Tensor squares = ops::pad(ops::square(x), border);
  Tensor sum;
  for (int64_t i = 0; i <= before + after; ++i) {
    const Tensor moved = slice_axis(squares, axis, i, x.dim(axis) + i);
    sum = sum.defined() ? sum + moved : moved;
  }
  return {x /
          ops::pow(sum * (a.alpha / static_cast<double>(a.size)) + a.k, Tensor::number(a.beta))};
}

}  // namespace paddle::rules
