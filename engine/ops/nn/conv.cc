// Rules of conv.yaml: 2-D convolution and its gradients, and the inference of conv3d.

#include "ops/nn/conv.h"

#include "ops/core/cost.h"
#include "ops/core/operators.h"
#include "ops/generated/nn.h"
#include "ops/generated/nn_rules.h"
#include "ops/generated/quantization.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/nn/window.h"

namespace paddle {
namespace {

/// Everything about a convolution, brought to one form.
struct Conv {
  bool channels_last;
  size_t channel_axis, first_spatial;
  std::vector<int64_t> kernel, stride, dilation, padding;
};

/// `A` has the attributes of conv2d; the weight's rank says how many spatial axes.
template <class A>
Conv read_conv(const A& a, const Shape& x, const Shape& w, const std::string& name) {
  const size_t n = w.size() - 2;
  Conv conv;
  conv.channels_last = a.data_format.ends_with('C');
  conv.channel_axis = conv.channels_last ? n + 1 : 1;
  conv.first_spatial = conv.channels_last ? 1 : 2;
  for (size_t i = 0; i < n; ++i) conv.kernel.push_back(w[2 + i].value());
  conv.stride = window_sizes(a.stride, n, name + ": stride");
  conv.dilation = window_sizes(a.dilation, n, name + ": dilation");
  const auto first = x.begin() + static_cast<ptrdiff_t>(conv.first_spatial);
  conv.padding = window_padding(a.padding, Shape(first, first + static_cast<ptrdiff_t>(n)),
                                conv.kernel, conv.stride, conv.dilation, conv.channels_last, name);
  return conv;
}

template <class A>
Shape conv_shape(InferContext& c, const A& a, size_t n) {
  const Shape &x = c.shape(0), &w = c.shape(1);
  c.check(x.size() == n + 2, "x must have ", n + 2, " dimensions, not ", c.type(0));
  c.check(w.size() == n + 2, "weight must have ", n + 2, " dimensions, not ", c.type(1));
  const Conv conv = read_conv(a, x, w, std::string(c.op().name()));
  c.check(a.groups > 0, "groups must be positive, not ", a.groups);
  for (size_t i = 0; i < n; ++i) {
    c.check(conv.stride[i] > 0 && conv.dilation[i] > 0, "stride and dilation must be positive");
    c.check(conv.kernel[i] > 0, "the kernel ", c.type(1), " is empty");
  }
  c.require_equal(x[conv.channel_axis], w[1] * a.groups,
                  str("x has ", x[conv.channel_axis], " channels, weight ", c.type(1), " with ",
                      a.groups, " groups takes ", w[1] * a.groups));
  c.check(!w[0].is_constant() || w[0].value() % a.groups == 0, "out channels ", w[0],
          " do not divide into ", a.groups, " groups");
  Shape out = x;
  out[conv.channel_axis] = w[0];
  for (size_t i = 0; i < n; ++i) {
    Dim& d = out[conv.first_spatial + i];
    d = window_count(d, conv.padding[2 * i], conv.padding[2 * i + 1], conv.kernel[i],
                     conv.stride[i], conv.dilation[i], false);
    c.check(!d.is_constant() || d.value() > 0, "the kernel ", c.type(1),
            " is larger than the padded x ", c.type(0));
  }
  return out;
}

template <class A>
void infer_convolution(InferContext& c, const A& a, size_t n) {
  c.check(c.rank(0) == static_cast<int64_t>(n) + 2, "x must have ", n + 2, " dimensions, not ",
          c.type(0));
  const Shape out = conv_shape(c, a, n);
  if (c.has(2))
    c.require_equal(element_count(std::span<const Dim>(c.shape(2))), c.shape(1)[0],
                    "bias does not fit the out channels");
  c.result(c.dtype(0), out);
}

}  // namespace

Shape quantized_conv_shape(InferContext& c, const QuantizedConvAttrs& a) {
  return conv_shape(c, a, a.data_format.size() - 2);
}

namespace {

/// The shapes of a convolution whose gradient is asked for must be those of one.
template <class Attrs>
void check_gradient(InferContext& c, const Attrs& a, const Shape& x, const Shape& w,
                    const Shape& grad) {
  c.check(x.size() == 4 && w.size() == 4 && grad.size() == 4,
          "input, weight and gradient must have 4 dimensions, not ", text(x), ", ", text(w), ", ",
          text(grad));
  c.check(a.stride.size() == 2 && a.dilation.size() == 2 && a.padding.size() == 4,
          "stride and dilation must be 2 numbers, padding 4");
  const size_t channel = a.data_format == "NHWC" ? 3 : 1, first = a.data_format == "NHWC" ? 1 : 2;
  c.check(a.groups > 0, "groups must be positive, not ", a.groups);
  c.require_equal(x[0], grad[0], "batches of input and gradient differ");
  c.require_equal(x[channel], w[1] * a.groups, "channels of input and weight differ");
  c.require_equal(grad[channel], w[0], "channels of gradient and weight differ");
  for (size_t i = 0; i < 2; ++i) {
    c.check(a.stride[i] > 0 && a.dilation[i] > 0, "stride and dilation must be positive");
    c.check(a.padding[2 * i] >= 0 && a.padding[2 * i + 1] >= 0, "padding must not be negative");
    if (!w[2 + i].is_constant()) continue;
    const Dim count = window_count(x[first + i], a.padding[2 * i], a.padding[2 * i + 1],
                                   w[2 + i].value(), a.stride[i], a.dilation[i], false);
    c.check(count.equals(grad[first + i]) != false, "the windows are ", count, ", the gradient ",
            grad[first + i]);
  }
}

}  // namespace

void check_quantized_conv_transpose(InferContext& c, const QuantizedConvTransposeAttrs& a) {
  check_gradient(c, a, a.out_shape, c.shape(1), c.shape(0));
}

namespace rules {

void infer_conv2d(InferContext& c) { infer_convolution(c, c.attrs_as<Conv2dAttrs>(), 2); }

void infer_conv3d(InferContext& c) { infer_convolution(c, c.attrs_as<Conv3dAttrs>(), 3); }

Tensors vjp_conv2d(VjpContext& c) {
  const auto a = c.attrs_as<Conv2dAttrs>();
  const Tensor &x = c.operand(0), &w = c.operand(1), &g = c.cotangent();
  const Conv conv = read_conv(a, x.shape(), w.shape(), "conv2d");
  Tensors out = c.gradients();
  if (c.needs(0))
    out[0] = ops::conv2d_input_grad(w, g, x.shape(), conv.stride, conv.padding, conv.dilation,
                                    a.groups, a.data_format);
  if (c.needs(1))
    out[1] = ops::conv2d_weight_grad(x, g, w.shape(), conv.stride, conv.padding, conv.dilation,
                                     a.groups, a.data_format);
  if (c.needs(2)) {
    const std::vector<int64_t> axes =
        conv.channels_last ? std::vector<int64_t>{0, 1, 2} : std::vector<int64_t>{0, 2, 3};
    out[2] = ops::reshape(ops::sum(g, axes), c.operand(2).shape());
  }
  return out;
}

void infer_conv2d_input_grad(InferContext& c) {
  const auto a = c.attrs_as<Conv2dInputGradAttrs>();
  check_gradient(c, a, a.input_shape, c.shape(0), c.shape(1));
  c.result(c.dtype(1), a.input_shape);
}

void infer_conv2d_weight_grad(InferContext& c) {
  const auto a = c.attrs_as<Conv2dWeightGradAttrs>();
  check_gradient(c, a, c.shape(0), a.weight_shape, c.shape(1));
  c.result(c.dtype(0), a.weight_shape);
}

// Both are linear in each operand, so their gradients are the other two of the family.
Tensors vjp_conv2d_input_grad(VjpContext& c) {
  const auto a = c.attrs_as<Conv2dInputGradAttrs>();
  const Tensor &w = c.operand(0), &g = c.operand(1), &gg = c.cotangent();
  Tensors out = c.gradients();
  if (c.needs(0))
    out[0] = ops::conv2d_weight_grad(gg, g, w.shape(), a.stride, a.padding, a.dilation, a.groups,
                                     a.data_format);
  if (c.needs(1))
    out[1] = ops::conv2d(gg, w, {}, a.stride, a.padding, a.dilation, a.groups, a.data_format);
  return out;
}

Tensors vjp_conv2d_weight_grad(VjpContext& c) {
  const auto a = c.attrs_as<Conv2dWeightGradAttrs>();
  const Tensor &x = c.operand(0), &g = c.operand(1), &gg = c.cotangent();
  Tensors out = c.gradients();
  if (c.needs(0))
    out[0] = ops::conv2d_input_grad(gg, g, x.shape(), a.stride, a.padding, a.dilation, a.groups,
                                    a.data_format);
  if (c.needs(1))
    out[1] = ops::conv2d(x, gg, {}, a.stride, a.padding, a.dilation, a.groups, a.data_format);
  return out;
}

// --- cost ---

namespace {

/// Output elements times the products that each one sums.
double convolution(const Dims& output, const Dims& weight) {
  return 2 * element_product(output) * element_product(weight) /
         static_cast<double>(std::max<int64_t>(1, weight[0]));
}

}  // namespace

double cost_conv(const Attrs&, const std::vector<Dims>& operands,
                 const std::vector<Dims>& results) {
  return convolution(results[0], operands[1]);
}

double cost_conv_input_grad(const Attrs&, const std::vector<Dims>& operands,
                            const std::vector<Dims>&) {
  return convolution(operands[1], operands[0]);
}

double cost_conv_weight_grad(const Attrs&, const std::vector<Dims>& operands,
                             const std::vector<Dims>& results) {
  return convolution(operands[1], results[0]);
}

}  // namespace rules
}  // namespace paddle
