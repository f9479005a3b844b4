// Rules of resnet.yaml.

#include <optional>
#include <string>

#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/transformer.h"
#include "ops/generated/transformer_rules.h"
#include "ops/nn/channels.h"
#include "ops/nn/window.h"
#include "ops/transformer/parts.h"

namespace paddle::rules {
namespace {

/// Images in a data format, and sums over all but their channels.
struct Channels {
  bool last;  ///< channels last

  explicit Channels(const std::string& format) : last(channels_last(format)) {}
  Axes axes() const { return last ? Axes{0, 1, 2} : Axes{0, 2, 3}; }
  Tensor total(const Tensor& x) const { return ops::sum(x, axes()); }
  /// A value per channel, as it broadcasts to images.
  Tensor over(const Tensor& per_channel_value) const {
    return per_channel(per_channel_value, 4, last);
  }
  Tensor count(const Tensor& x) const { return count_of(x.shape(), axes(), x.dtype()); }
};

void check_image(std::string_view op, const char* name, const Tensor& x) {
  if (x.ndim() != 4) reject(op, name, " must have 4 dimensions, not ", x.type());
}

void check_given(CallContext& c, const char* reason, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (!optional(c, name).defined()) reject(c.op().name(), reason, " needs ", name);
}

/// A batch norm in training: its operand, statistics and parameters.
class TrainedNorm {
 public:
  TrainedNorm(CallContext& c, const std::string& name, const Channels& channels)
      : channels_(channels),
        input_(optional(c, (name + "_input").c_str())),
        inv_std_(optional(c, (name + "_inv_std").c_str())),
        gamma_(optional(c, (name + "_gamma").c_str())),
        beta_(optional(c, (name + "_beta").c_str())) {
    const Tensor mean = optional(c, (name + "_mean").c_str());
    unit_ = (input_ - channels.over(mean)) * channels.over(inv_std_);
  }
  Tensor result() const { return unit_ * channels_.over(gamma_) + channels_.over(beta_); }
  /// The gradients for the operand, gamma and beta.
  Tensors gradients(const Tensor& grad) const {
    const Tensor dgamma = channels_.total(grad * unit_), dbeta = channels_.total(grad);
    const Tensor mean =
        (channels_.over(dbeta) + unit_ * channels_.over(dgamma)) / channels_.count(grad);
    return {(grad - mean) * channels_.over(gamma_ * inv_std_), dgamma, dbeta};
  }

 private:
  Channels channels_;
  Tensor input_, inv_std_, gamma_, beta_, unit_;
};

}  // namespace

Tensors decompose_fused_scale_bias_relu_conv_bn(CallContext& c) {
  const auto a = c.attrs_as<FusedScaleBiasReluConvBnAttrs>();
  const std::string_view op = c.op().name();
  check_image(op, "x", c.operand(0));
  if (a.accumulation_count < 0) reject(op, "accumulation_count must not be negative");
  const Channels channels(a.data_format);
  Tensor x = c.operand(0);
  if (a.fuse_prologue) {
    check_given(c, "fuse_prologue", {"scale", "bias"});
    x = ops::relu(x * channels.over(c.operand(2)) + channels.over(c.operand(3)));
  }
  const AttrValue padding =
      a.padding_algorithm == "EXPLICIT" ? a.paddings : AttrValue(a.padding_algorithm);
  const Tensor y = ops::conv2d(x, c.operand(1), {}, AttrValue(a.strides), padding,
                               AttrValue(a.dilations), a.groups, a.data_format);
  const Tensor count = a.accumulation_count > 0
                           ? full_of({}, static_cast<double>(a.accumulation_count), y.dtype())
                           : channels.count(y);
  const Tensor mean = channels.total(y) / count;
  const Tensor variance = a.accumulation_count > 0
                              ? channels.total(ops::square(y)) / count - ops::square(mean)
                              : channels.total(ops::square(y - channels.over(mean))) / count;
  const Tensor inv_std = ops::rsqrt(variance + a.epsilon);
  const auto moved = [&](size_t i, const Tensor& fresh) {
    return c.operand(i) * a.momentum + fresh * (1 - a.momentum);
  };
  const Tensor eq_scale = c.operand(4) * inv_std;
  return {y,
          moved(6, mean),
          moved(7, variance),
          mean,
          inv_std,
          eq_scale,
          c.operand(5) - mean * eq_scale};
}

Tensors decompose_fused_dconv_drelu_dbn(CallContext& c) {
  const auto a = c.attrs_as<FusedDconvDreluDbnAttrs>();
  const std::string_view op = c.op().name();
  if (a.fuse_shortcut && a.fuse_dual)
    reject(op, "fuse_shortcut and fuse_dual are mutually exclusive");
  if (a.fuse_shortcut) check_given(c, "fuse_shortcut", {"conv_input", "residual_input"});
  if (a.fuse_dual)
    check_given(c, "fuse_dual",
                {"conv_input", "bn2_mean", "bn2_inv_std", "bn2_gamma", "bn2_beta", "bn2_input"});
  if (a.fuse_add) check_given(c, "fuse_add", {"grad_output_add"});
  if (!a.fuse_shortcut && !a.fuse_dual)
    check_given(c, "a unit without fuse_shortcut and fuse_dual", {"bn1_eqscale", "bn1_eqbias"});
  const Tensor &grad = c.operand(0), &weight = c.operand(1);
  const Tensor input = optional(c, "bn1_input");
  check_image(op, "grad_output", grad);
  check_image(op, "weight", weight);
  check_image(op, "bn1_input", input);
  const Channels channels(a.data_format);
  const int64_t first = channels.last ? 1 : 2;
  Axes kernel;
  for (const int64_t axis : {int64_t{2}, int64_t{3}}) {
    if (!weight.dim(axis).is_constant()) reject(op, "weight must have a known size");
    kernel.push_back(weight.dim(axis).value());
  }
  const Axes strides = window_sizes(AttrValue(a.strides), 2, "strides"),
             dilations = window_sizes(AttrValue(a.dilations), 2, "dilations");
  const Axes padding = window_padding(
      a.padding_algorithm == "EXPLICIT" ? a.paddings : AttrValue(a.padding_algorithm),
      {input.dim(first), input.dim(first + 1)}, kernel, strides, dilations, channels.last,
      std::string(op));
  Tensor above = ops::conv2d_input_grad(weight, grad, input.shape(), strides, padding, dilations,
                                        a.groups, a.data_format);
  if (a.fuse_add) above = above + optional(c, "grad_output_add");
  const TrainedNorm one(c, "bn1", channels);
  Tensor before = one.result();
  if (a.fuse_shortcut) before = before + optional(c, "residual_input");
  std::optional<TrainedNorm> two;
  if (a.fuse_dual) before = before + two.emplace(c, "bn2", channels).result();
  const Tensor through = ops::where(ops::greater_than(before, number(0.0)), above, number(0.0));
  const Tensor conv_input = a.fuse_shortcut || a.fuse_dual
                                ? optional(c, "conv_input")
                                : ops::relu(input * channels.over(optional(c, "bn1_eqscale")) +
                                            channels.over(optional(c, "bn1_eqbias")));
  Tensors out = {ops::conv2d_weight_grad(conv_input, grad, weight.shape(), strides, padding,
                                         dilations, a.groups, a.data_format)};
  for (const Tensor& each : one.gradients(through)) out.push_back(each);
  if (a.fuse_shortcut) out.push_back(through);
  if (two)
    for (const Tensor& each : two->gradients(through)) out.push_back(each);
  return out;
}

}  // namespace paddle::rules
