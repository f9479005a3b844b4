// Functions of the table: convolutions, pooling, normalization, resizing, recurrent layers, losses.

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/generated/creation.h"
#include "ops/generated/legacy.h"
#include "ops/generated/linalg.h"
#include "ops/generated/loss.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"
#include "ops/generated/transformer.h"
#include "ops/generated/vision.h"
#include "paddle_program/program_call.h"

namespace paddle::paddle_program {
namespace {

using onnx::scalar;
using onnx::slice_axis;

bool is_channels_last(const std::string& format) {
  return format == "NHWC" || format == "NDHWC" || format == "NLC" || format == "NWC";
}

/// The layout for `axes` spatial axes; programs may name that of images for all.
std::string layout_of(const ProgramCall& c, size_t axes) {
  static constexpr const char* kFirst[] = {"NCL", "NCHW", "NCDHW"};
  static constexpr const char* kLast[] = {"NLC", "NHWC", "NDHWC"};
  const std::string format = c.text("data_format");
  static constexpr std::string_view kKnown[] = {"",     "NCHW",  "NCDHW", "NCL", "NCW",
                                                "NHWC", "NDHWC", "NLC",   "NWC", "AnyLayout"};
  c.check(std::ranges::count(kKnown, format) > 0, "the layout ", format, " is not supported");
  return is_channels_last(format) ? kLast[axes - 1] : kFirst[axes - 1];
}

size_t spatial_axes(const ProgramCall& c) {
  const int64_t rank = c.tensor("x").ndim();
  c.check(rank >= 3 && rank <= 5, "expected an operand with 1 to 3 spatial axes, not ",
          c.tensor("x").type());
  return static_cast<size_t>(rank - 2);
}

AttrValue padding_of(const ProgramCall& c, const char* name) {
  const std::string algorithm = c.text("padding_algorithm");
  if (algorithm == "SAME" || algorithm == "VALID") return algorithm;
  return c.ints(name);
}

/// PaddlePaddle sets dilations to 1 with the padding SAME, whatever the attribute says.
Axes dilation_of(const ProgramCall& c, size_t axes) {
  Axes dilation = c.is_given("dilation") ? c.ints("dilation") : Axes();
  if (dilation.empty() || c.text("padding_algorithm") == "SAME") dilation.assign(axes, 1);
  return dilation;
}

Values conv(ProgramCall& c) {
  const size_t axes = spatial_axes(c);
  const Tensor &x = c.tensor("x"), &weight = c.tensor("weight");
  const Tensor bias = c.optional_tensor("bias");
  const AttrValue stride(c.ints("stride")), padding = padding_of(c, "padding"),
                                            dilation(dilation_of(c, axes));
  const int64_t groups = c.integer("groups");
  const std::string format = layout_of(c, axes);
  const auto compute = axes == 1 ? ops::conv1d : axes == 2 ? ops::conv2d : ops::conv3d;
  return {compute(x, weight, bias, stride, padding, dilation, groups, format)};
}

Values conv_transpose(ProgramCall& c) {
  const size_t axes = spatial_axes(c);
  c.check(axes >= 2, "expected images or volumes");
  const Tensor &x = c.tensor("x"), &weight = c.tensor("weight");
  const Tensor bias = c.optional_tensor("bias");
  const AttrValue stride(c.ints("stride")), padding = padding_of(c, "padding"),
                                            dilation(dilation_of(c, axes));
  Axes extra = c.ints("output_padding"), size = c.ints("output_size");
  // An output size says it already.
  if (!size.empty() || extra.empty()) extra.assign(axes, 0);
  const AttrValue wanted = size.empty() ? AttrValue() : AttrValue(size);
  const int64_t groups = c.integer("groups");
  const std::string format = layout_of(c, axes);
  if (axes == 2)
    return {ops::conv2d_transpose(x, weight, bias, stride, padding, AttrValue(extra), dilation,
                                  groups, wanted, format)};
  return {ops::conv3d_transpose(x, weight, bias, stride, padding, AttrValue(extra), groups,
                                dilation, wanted, format)};
}

/// The padding of each spatial axis, [before, after].
Axes pool_borders(const ProgramCall& c, const Tensor& x, size_t axes, size_t first) {
  const std::string algorithm = c.text("padding_algorithm");
  Axes out(2 * axes, 0);
  if (algorithm == "VALID") return out;
  const Axes window = c.ints("kernel_size"), stride = c.ints("strides"), given = c.ints("paddings");
  c.check(window.size() == axes && stride.size() == axes, "expected a window for each axis");
  for (size_t i = 0; i < axes; ++i) {
    if (algorithm == "SAME") {
      c.check(stride[i] > 0, "a stride is ", stride[i]);
      const int64_t size = onnx::constant_dim(x, static_cast<int64_t>(first + i));
      const int64_t count = (size + stride[i] - 1) / stride[i];
      const int64_t both = std::max<int64_t>((count - 1) * stride[i] + window[i] - size, 0);
      out[2 * i] = both / 2;
      out[2 * i + 1] = both - both / 2;
    } else {
      c.check(given.size() == axes || given.size() == 2 * axes, "expected a padding for each axis");
      const bool pairs = given.size() == 2 * axes;
      out[2 * i] = given[pairs ? 2 * i : i];
      out[2 * i + 1] = given[pairs ? 2 * i + 1 : i];
    }
  }
  return out;
}

/// Of means that count the padding, PaddlePaddle takes the padding after an axis to be as wide as
/// that before it, so that windows at the end are divided by fewer cells. `mean` counts cells of x.
Tensor with_padded_cells(const ProgramCall& c, const Tensor& x, Tensor mean, const Axes& borders,
                         size_t first) {
  const Axes window = c.ints("kernel_size"), stride = c.ints("strides");
  for (size_t i = 0; i < window.size(); ++i) {
    const auto axis = static_cast<int64_t>(first + i);
    const int64_t size = onnx::constant_dim(x, axis), count = onnx::constant_dim(mean, axis);
    std::vector<float> shares;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t start = k * stride[i] - borders[2 * i], end = start + window[i];
      const int64_t cells = std::min(end, size) - std::max<int64_t>(start, 0),
                    all = std::min(end, size + borders[2 * i]) - start;
      shares.push_back(static_cast<float>(cells) / static_cast<float>(std::max<int64_t>(all, 1)));
    }
    Shape shape(static_cast<size_t>(x.ndim()), Dim(1));
    shape[first + i] = Dim(count);
    const Tensor share(Array::from<float>(shares, {count}));
    mean = mean * ops::cast(ops::reshape(share, shape), mean.dtype());
  }
  return mean;
}

/// With ceil_mode PaddlePaddle also has windows that begin after x and its padding on the left,
/// which no element is in. `pooled` is without them; they have the value `empty`.
Tensor with_empty_windows(const ProgramCall& c, const Tensor& x, Tensor pooled, const Axes& borders,
                          size_t first, double empty) {
  const Axes window = c.ints("kernel_size"), stride = c.ints("strides");
  for (size_t i = 0; i < window.size(); ++i) {
    if (borders[2 * i] + borders[2 * i + 1] == 0) continue;
    const auto axis = static_cast<int64_t>(first + i);
    c.check(stride[i] > 0, "a stride is ", stride[i]);
    const int64_t size = onnx::constant_dim(x, axis);
    const int64_t span = size + borders[2 * i] + borders[2 * i + 1] - window[i];
    const int64_t count = (span + stride[i] - 1) / stride[i] + 1;
    const int64_t extra = count - onnx::constant_dim(pooled, axis);
    if (extra <= 0) continue;
    Shape shape = pooled.shape();
    shape[first + i] = Dim(extra);
    const Tensor rest = ops::cast(ops::full(shape, AttrValue(empty), DType::kF64), pooled.dtype());
    pooled = ops::concat({pooled, rest}, axis);
  }
  return pooled;
}

Values pool(ProgramCall& c) {
  const size_t axes = spatial_axes(c);
  c.check(axes >= 2, "expected images or volumes");
  const Tensor& x = c.tensor("x");
  const Axes window = c.ints("kernel_size"), strides = c.ints("strides");
  const bool global = c.flag("global_pooling"), adaptive = c.flag("adaptive");
  const auto compute = axes == 2 ? ops::pool2d : ops::pool3d;
  if (!global && !adaptive && !c.flag("exclusive") && c.text("pooling_type") == "avg") {
    const std::string format = layout_of(c, axes);
    const size_t first = is_channels_last(format) ? 1 : 2;
    const Axes borders = pool_borders(c, x, axes, first);
    bool is_plain = !c.flag("ceil_mode");
    for (size_t i = 0; i < axes; ++i) is_plain = is_plain && borders[2 * i] == borders[2 * i + 1];
    if (!is_plain) {
      const Tensor mean = with_padded_cells(
          c, x,
          compute(x, AttrValue(window), strides, AttrValue(borders), c.flag("ceil_mode"), true,
                  format, "avg", false, false, "EXPLICIT"),
          borders, first);
      return {c.flag("ceil_mode") ? with_empty_windows(c, x, mean, borders, first, 0) : mean};
    }
  }
  const Tensor pooled =
      compute(x, AttrValue(window), global || adaptive ? Axes(axes, 1) : strides,
              global || adaptive ? AttrValue(Axes(axes, 0)) : AttrValue(c.ints("paddings")),
              c.flag("ceil_mode"), c.flag("exclusive"), layout_of(c, axes), c.text("pooling_type"),
              global, adaptive, c.text("padding_algorithm"));
  if (global || adaptive || !c.flag("ceil_mode")) return {pooled};
  const size_t first = is_channels_last(layout_of(c, axes)) ? 1 : 2;
  const double lowest = x.dtype() == DType::kF64 ? std::numeric_limits<double>::lowest()
                                                 : std::numeric_limits<float>::lowest();
  const double empty = c.text("pooling_type") == "max" ? lowest : std::nan("");
  return {with_empty_windows(c, x, pooled, pool_borders(c, x, axes, first), first, empty)};
}

Values unpool(ProgramCall& c) {
  const Axes size = c.ints("output_size");
  return {ops::max_unpool2d(c.tensor("x"), c.tensor("indices"), c.ints("kernel_size"),
                            AttrValue(c.ints("stride")), AttrValue(c.ints("padding")),
                            c.text("data_format"), size.empty() ? AttrValue() : AttrValue(size))};
}

Values batch_norm(ProgramCall& c) {
  c.check(c.flag("is_test") || c.flag("use_global_stats"),
          "normalizes by the statistics of its batch; save the program for inference");
  const Tensor &x = c.tensor("x"), &mean = c.tensor("mean");
  const bool last = is_channels_last(c.text("data_format")) && x.ndim() > 2;
  // Channels are the second axis for any other layout.
  std::string format = "NCHW";
  if (last) format = x.ndim() == 5 ? "NDHWC" : x.ndim() == 4 ? "NHWC" : "NLC";
  // The running statistics stay as they are.
  return {ops::batch_norm(x, mean, c.tensor("variance"), c.optional_tensor("weight"),
                          c.optional_tensor("bias"), false, 0.9, c.real("epsilon"), format),
          mean, c.tensor("variance")};
}

}  // namespace

Tensor normalized_from(const ProgramCall& c, const Tensor& x, const Tensor& weight,
                       const Tensor& bias, int64_t axis) {
  c.check(axis >= 0 && axis < x.ndim(), "its axis ", axis, " is out of range for ", x.type());
  const Shape sizes(x.shape().begin() + axis, x.shape().end());
  AttrValue::List normalized;
  for (const Dim& d : sizes) {
    if (!d.is_constant())
      throw DataDependentError(ErrorCode::kModel, "the size of a normalized axis is not known");
    normalized.emplace_back(d);
  }
  // Scale and bias are one number for each normalized element, in one axis.
  const auto over_axes = [&](const Tensor& v) {
    return v && sizes.size() > 1 ? ops::reshape(v, sizes) : v;
  };
  return ops::layer_norm(x, normalized, over_axes(weight), over_axes(bias), c.real("epsilon"));
}

namespace {

Values layer_norm_of(const ProgramCall& c, const Tensor& x) {
  return {normalized_from(c, x, c.optional_tensor("weight"), c.optional_tensor("bias"),
                          c.integer("begin_norm_axis"))};
}

Values layer_norm(ProgramCall& c) { return layer_norm_of(c, c.tensor("x")); }
Values skip_layer_norm(ProgramCall& c) { return layer_norm_of(c, c.tensor("x") + c.tensor("y")); }

Values lp_pool(ProgramCall& c) {
  const double norm = c.real("norm_type");
  c.check(norm > 0, "expected a norm_type above 0, not ", norm);
  return {ops::lp_pool2d(c.tensor("x"), norm, c.ints("kernel_size"), AttrValue(c.ints("strides")),
                         padding_of(c, "paddings"), c.flag("ceil_mode"), c.text("data_format"))};
}

/// Results of operands that are absent are absent.
Values rotary_embedding(ProgramCall& c) {
  const Tensors made = ops::fused_rotary_position_embedding(
      c.tensor("q"), c.optional_tensor("k"), c.optional_tensor("v"), c.optional_tensor("sin"),
      c.optional_tensor("cos"), c.optional_tensor("position_ids"), c.flag("use_neox_rotary_style"),
      c.flag("time_major"), c.real("rotary_emb_base"));
  Values out;
  size_t next = 0;
  for (const char* name : {"q", "k", "v"})
    out.push_back(c.has(name) && next < made.size() ? Value(made[next++]) : Value());
  return out;
}

Values group_norm(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const bool last = is_channels_last(c.text("data_format"));
  return {ops::group_norm(x, c.integer("groups"), c.real("epsilon"), c.optional_tensor("weight"),
                          c.optional_tensor("bias"), last ? "NHWC" : "NCHW")};
}

Values instance_norm(ProgramCall& c) {
  return {ops::instance_norm(c.tensor("x"), {}, {}, c.optional_tensor("weight"),
                             c.optional_tensor("bias"), true, 0.9, c.real("epsilon"))};
}

Values rms_norm(ProgramCall& c) {
  Tensor x = c.tensor("x");
  // With the sizes of the axes, as PaddlePaddle 3.3 has them, the weight is the second operand.
  const Axes normalized = c.is_given("normalized_shape") ? c.ints("normalized_shape") : Axes();
  const bool has_sizes = !normalized.empty() && !c.has("weight");
  if (c.has("bias") && !has_sizes) x = x + c.tensor("bias");
  Values out(2);
  if (c.has("residual")) {
    x = x + c.tensor("residual");
    out[1] = x;
  }
  const auto sizes_given = static_cast<int64_t>(normalized.size());
  const int64_t begin = sizes_given > 0 ? -sizes_given : c.integer("begin_norm_axis");
  const int64_t first = begin < 0 ? x.ndim() + begin : begin;
  c.check(first >= 0 && first < x.ndim(), "its axis ", first, " is out of range for ", x.type());
  Axes axes;
  for (int64_t i = first; i < x.ndim(); ++i) axes.push_back(i);
  const Tensor scale = ops::rsqrt(ops::mean(ops::square(x), axes, true) + c.real("epsilon"));
  Shape sizes(x.shape().begin() + first, x.shape().end());
  const Tensor weight = c.optional_tensor(has_sizes ? "bias" : "weight");
  Tensor y = x * scale;
  if (weight) y = y * ops::reshape(weight, sizes);
  if (c.has("norm_bias")) y = y + ops::reshape(c.tensor("norm_bias"), sizes);
  out[0] = y;
  return out;
}

/// Its k, alpha and n are those of the formula, where the layer divides alpha by n.
Values local_response_norm(ProgramCall& c) {
  const int64_t n = c.integer("n");
  return {ops::local_response_norm(c.tensor("x"), n, c.real("alpha") * static_cast<double>(n),
                                   c.real("beta"), c.real("k"), c.text("data_format"))};
}

Values spectral_norm(ProgramCall& c) {
  return {ops::spectral_norm(c.tensor("weight"), c.tensor("u"), c.tensor("v"), c.integer("dim"),
                             c.integer("power_iters"), c.real("eps"))[0]};
}

Values dropout(ProgramCall& c) {
  c.check(c.flag("is_test"), "draws random numbers; save the program for inference");
  const Tensor& x = c.tensor("x");
  return {c.text("mode") == "upscale_in_train" ? x : x * (1 - c.real("p"))};
}

Values prelu(ProgramCall& c) {
  const Tensor &x = c.tensor("x"), &weight = c.tensor("weight");
  const std::string mode = c.text("mode");
  if (mode == "element") {
    Shape shape = x.shape();
    if (!shape.empty()) shape[0] = Dim(1);
    const Tensor slope = ops::reshape(weight, shape);
    return {ops::where(ops::greater_than(x, scalar(0, x.dtype())), x, x * slope)};
  }
  const bool last = is_channels_last(c.text("data_format"));
  const Tensor slopes = ops::reshape(weight, {Dim(-1)});
  return {ops::prelu(x, slopes, last ? "NHWC" : "NCHW")};
}

/// The element that resizing to one makes of an axis: PaddlePaddle reads at the first one, and
/// cubic resizing at -0.5, between the first and its repetitions.
Tensor first_element(const Tensor& x, int64_t axis, bool cubic) {
  Tensor first = slice_axis(x, axis, 0, 1);
  if (!cubic) return first;
  return first * 1.09375 + slice_axis(x, axis, 1, 2) * -0.09375;
}

/// Programs have the scale of each axis, or its sizes, or operands that go before both.
Values resize(ProgramCall& c) {
  const size_t axes = spatial_axes(c);
  Tensor x = c.tensor("x");
  AttrValue::List sizes;
  if (c.has("size_tensor"))
    for (const Dim& d : c.dims("size_tensor")) sizes.emplace_back(d);
  else if (c.has("out_size"))
    for (const Dim& d : c.dims("out_size")) sizes.emplace_back(d);
  std::vector<double> scales;
  if (sizes.empty() && c.has("scale_tensor")) scales = c.reals("scale_tensor");
  if (sizes.empty() && scales.empty()) {
    scales = c.reals("scale");
    std::erase_if(scales, [](double each) { return each <= 0; });
  }
  // With sizes in the attributes as well, the scale counts.
  if (sizes.empty() && scales.empty()) {
    const char* const names[] = {"out_d", "out_h", "out_w"};
    for (size_t i = 3 - axes; i < 3; ++i) sizes.emplace_back(c.integer(names[i]));
  }
  c.check(sizes.empty() || sizes.size() == axes, "expected a size for each spatial axis");
  c.check(scales.size() <= 1 || scales.size() == axes, "expected a scale for each spatial axis");
  if (scales.size() == 1) scales.assign(axes, scales[0]);
  const std::string which = c.text("function");
  static constexpr const char* kLinear[] = {"linear", "bilinear", "trilinear"};
  static constexpr const char* kFirst[] = {"NCW", "NCHW", "NCDHW"};
  static constexpr const char* kLast[] = {"NWC", "NHWC", "NDHWC"};
  const bool last = is_channels_last(layout_of(c, axes));
  const bool cubic = which == "bicubic" && !c.flag("align_corners");
  for (size_t i = 0; i < axes; ++i) {
    const auto axis = static_cast<int64_t>(i) + (last ? 1 : 2);
    const Dim size = x.dim(axis);
    if (size.equals(1).value_or(true)) continue;
    const bool is_one =
        sizes.empty()
            ? size.is_constant() && std::floor(static_cast<double>(size.value()) * scales[i]) == 1
            : sizes[i].as_dim().equals(1).value_or(false);
    if (!is_one) continue;
    x = first_element(x, axis, cubic);
    if (!scales.empty()) scales[i] = 1;
  }
  return {ops::interpolate(x, sizes.empty() ? AttrValue() : AttrValue(sizes),
                           sizes.empty() ? AttrValue(scales) : AttrValue(),
                           which == "linear" ? kLinear[axes - 1] : which, c.flag("align_corners"),
                           c.integer("align_mode"), last ? kLast[axes - 1] : kFirst[axes - 1])};
}

/// Paddings are pairs, from the last spatial axis to the first.
Values pad_spatial(ProgramCall& c) {
  const size_t axes = spatial_axes(c);
  const Tensor& x = c.tensor("x");
  const Axes given = c.ints("pad");
  c.check(given.size() == 2 * axes, "expected two paddings for each spatial axis");
  const bool last = is_channels_last(c.text("data_format"));
  Axes all(2 * (axes + 2), 0);
  for (size_t i = 0; i < axes; ++i) {
    const size_t axis = axes - 1 - i + (last ? 1 : 2);
    all[2 * axis] = given[2 * i];
    all[2 * axis + 1] = given[2 * i + 1];
  }
  const std::string mode = c.text("mode");
  if (mode == "constant") {
    const std::string format = layout_of(c, axes);
    return {ops::pad(x, all, mode, c.real("value"))};
  }
  return {ops::pad(x, given, mode, c.real("value"), layout_of(c, axes))};
}

/// Paddings are pairs for all axes.
Values pad(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const Axes given = c.ints("pad");
  c.check(given.size() == 2 * static_cast<size_t>(x.ndim()), "expected two paddings for each axis");
  return {ops::pad(x, given, "constant", c.real("value"))};
}

/// Layers of LSTM, GRU or RNN, time first. Weights are w_ih and w_hh of each layer and direction,
/// then b_ih and b_hh in the same way, where the operation has them layer by layer.
Values rnn(ProgramCall& c) {
  const std::string mode = c.text("mode");
  const bool lstm = mode == "LSTM", gru = mode == "GRU";
  c.check(c.flag("is_test"), "draws random numbers; save the program for inference");
  const int64_t hidden = c.integer("hidden_size"), layers = c.integer("num_layers");
  const bool both = c.flag("is_bidirec");
  const Tensors given = c.list("weights"), states = c.list("states");
  const auto cells = static_cast<size_t>(layers < 1 || layers > 1024 ? 0 : layers * (both ? 2 : 1));
  c.check(cells > 0 && given.size() == 4 * cells && states.size() == (lstm ? 2U : 1U),
          "its weights or states have another form");
  Tensors weights;
  for (size_t i = 0; i < cells; ++i)
    for (const size_t at : {2 * i, 2 * i + 1, 2 * (cells + i), 2 * (cells + i) + 1})
      weights.push_back(given[at]);
  const Tensor& x = c.tensor("x");
  const Tensor lengths = c.optional_tensor("sequence_length");
  const char* const direction = both ? "bidirect" : "forward";
  Tensors made;
  if (lstm)
    made = ops::lstm(x, hidden, layers, direction, 0, true, false, weights, states[0], states[1],
                     lengths);
  else if (gru)
    made = ops::gru(x, hidden, layers, direction, 0, true, false, weights, states[0], lengths);
  else
    made =
        ops::simple_rnn(x, hidden, layers, direction, 0, true, mode == "RNN_RELU" ? "relu" : "tanh",
                        false, weights, states[0], lengths);
  Values out = {made.at(0), Value(), made.at(1)};
  if (lstm) out.emplace_back(made.at(2));
  return out;
}

/// The softmax and the loss, which keeps the axis of the classes.
Values softmax_cross_entropy(ProgramCall& c) {
  const Tensor &logits = c.tensor("logits"), &label = c.tensor("label");
  const int64_t axis = c.integer("axis");
  const bool soft = c.flag("soft_label"), is_logits = c.flag("use_softmax");
  const Tensor share = is_logits ? ops::softmax(logits, axis) : logits;
  if (is_logits)
    return {share, ops::softmax_with_cross_entropy(logits, label, soft, c.integer("ignore_index"),
                                                   true, false, axis)[0]};
  return {share, ops::unsqueeze(ops::cross_entropy(logits, label, {}, c.integer("ignore_index"),
                                                   "none", soft, axis, false),
                                Axes{axis})};
}

Values sigmoid_cross_entropy(ProgramCall& c) {
  const Tensor &x = c.tensor("x"), &label = c.tensor("label");
  if (!c.has("pos_weight"))
    return {ops::sigmoid_cross_entropy_with_logits(x, label, c.flag("normalize"),
                                                   c.integer("ignore_index"))};
  c.check(!c.flag("normalize"), "pos_weight with normalize is not supported");
  // The operand is the factor of each element's logarithm, 1 + (weight - 1) * label.
  // Before PaddlePaddle 3 it was the factor of log(1 + exp(-|x|)) only.
  const Tensor& factor = c.tensor("pos_weight");
  const Tensor loss =
      c.attribute(kBeforeVersion3)
          ? ops::relu(x) - x * label + factor * ops::softplus(ops::neg(ops::abs(x)), 1, 20)
          : (1.0 - label) * x + factor * ops::softplus(ops::neg(x), 1, 20);
  const Tensor ignored = scalar(static_cast<double>(c.integer("ignore_index")), label.dtype());
  return {ops::where(ops::equal(label, ignored), scalar(0, loss.dtype()), loss)};
}

Values nll_loss(ProgramCall& c) {
  return {ops::nll_loss(c.tensor("x"), c.tensor("label"), c.optional_tensor("weight"),
                        c.integer("ignore_index"), c.text("reduction"))};
}

/// Queries, keys and values [batch, length, heads, size].
Values flash_attention(ProgramCall& c) {
  return {ops::scaled_dot_product_attention(c.tensor("query"), c.tensor("key"), c.tensor("value"),
                                            c.optional_tensor("attn_mask"), 0, c.flag("causal"),
                                            false)};
}

}  // namespace

ProgramFunctions program_network_functions() {
  return {
      {"conv", conv},
      {"conv_transpose", conv_transpose},
      {"pool", pool},
      {"unpool", unpool},
      {"batch_norm", batch_norm},
      {"layer_norm", layer_norm},
      {"skip_layer_norm", skip_layer_norm},
      {"lp_pool", lp_pool},
      {"rotary_embedding", rotary_embedding},
      {"group_norm", group_norm},
      {"instance_norm", instance_norm},
      {"rms_norm", rms_norm},
      {"local_response_norm", local_response_norm},
      {"spectral_norm", spectral_norm},
      {"dropout", dropout},
      {"prelu", prelu},
      {"resize", resize},
      {"pad_spatial", pad_spatial},
      {"pad", pad},
      {"rnn", rnn},
      {"softmax_cross_entropy", softmax_cross_entropy},
      {"sigmoid_cross_entropy", sigmoid_cross_entropy},
      {"nll_loss", nll_loss},
      {"flash_attention", flash_attention},
  };
}

}  // namespace paddle::paddle_program
