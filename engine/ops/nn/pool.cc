// Rules of pool.yaml: 2-D pooling.

#include "ops/core/operators.h"
#include "ops/generated/nn.h"
#include "ops/generated/nn_rules.h"
#include "ops/nn/window.h"

namespace paddle::rules {
namespace {

Shape pooled_shape(InferContext& c, const Shape& x, const AttrValue& kernel_size,
                   const AttrValue& stride_size, const AttrValue& padding, bool ceil_mode,
                   bool channels_last) {
  c.check(x.size() == 4, "x must have 4 dimensions, not ", text(x));
  const std::string name(c.op().name());
  const auto kernel = window_sizes(kernel_size, 2, name + ": kernel_size");
  const auto stride =
      stride_size.is_none() ? kernel : window_sizes(stride_size, 2, name + ": stride");
  const size_t first = channels_last ? 1 : 2;
  const Shape spatial(x.begin() + static_cast<ptrdiff_t>(first),
                      x.begin() + static_cast<ptrdiff_t>(first) + 2);
  for (size_t i = 0; i < 2; ++i)
    c.check(kernel[i] > 0 && stride[i] > 0, "kernel_size and stride must be positive");
  const auto pad = window_padding(padding, spatial, kernel, stride, {1, 1}, channels_last, name);
  Shape out = x;
  for (size_t i = 0; i < 2; ++i) {
    c.check(pad[2 * i] < kernel[i] && pad[2 * i + 1] < kernel[i], "padding ", padding,
            " is not smaller than the window ", kernel_size);
    Dim& d = out[first + i];
    c.check(d.less(1) != true, "the rows or columns of x are empty: ", text(x));
    d = window_count(d, pad[2 * i], pad[2 * i + 1], kernel[i], stride[i], 1, ceil_mode);
    c.check(!d.is_constant() || d.value() > 0, "the window is larger than the padded x ", text(x));
  }
  return out;
}

}  // namespace

void infer_max_pool2d(InferContext& c) {
  const auto a = c.attrs_as<MaxPool2dAttrs>();
  const Shape out = pooled_shape(c, c.shape(0), a.kernel_size, a.stride,
                                 max_pool_padding(a.padding, a.return_mask), a.ceil_mode,
                                 a.data_format == "NHWC");
  c.result(c.dtype(0), out);
  c.result(DType::kI32, out);
}

Tensors vjp_max_pool2d(VjpContext& c) {
  const auto a = c.attrs_as<MaxPool2dAttrs>();
  return {ops::max_pool2d_grad(c.cotangent(), c.result(1), c.operand(0).shape(), a.data_format)};
}

namespace {

/// Checks the operands of pooling gradients: the gradient of the result and the indices of maxima.
void check_planes(InferContext& c, size_t grad, size_t mask, const Shape& input) {
  c.check(c.rank(grad) == 4 && input.size() == 4, "expected planes [n, c, rows, columns], found ",
          c.type(grad), " for ", text(input));
  if (grad == mask) return;
  c.check(c.rank(mask) == 4, "expected a mask of planes, found ", c.type(mask));
}

/// Batch and channels of both must be the same.
void check_channels(InferContext& c, const Shape& a, const Shape& b, bool last) {
  const size_t channel = last ? 3 : 1;
  c.require_equal(a[0], b[0], "batches differ");
  c.require_equal(a[channel], b[channel], "channels differ");
}

}  // namespace

void infer_max_pool2d_grad(InferContext& c) {
  const auto a = c.attrs_as<MaxPool2dGradAttrs>();
  check_planes(c, 0, 1, a.input_shape);
  for (size_t i = 0; i < 4; ++i)
    c.require_equal(c.shape(0)[i], c.shape(1)[i], "the mask does not fit the gradient");
  check_channels(c, c.shape(0), a.input_shape, a.data_format == "NHWC");
  c.result(c.dtype(0), c.attrs_as<MaxPool2dGradAttrs>().input_shape);
}

Tensors vjp_max_pool2d_grad(VjpContext& c) {
  const auto a = c.attrs_as<MaxPool2dGradAttrs>();
  Tensors out = c.gradients();
  out[0] = ops::max_pool2d_take(c.cotangent(), c.operand(1), a.data_format);
  return out;
}

void infer_max_pool2d_take(InferContext& c) {
  check_planes(c, 0, 1, c.shape(0));
  check_channels(c, c.shape(0), c.shape(1), c.attrs_as<MaxPool2dTakeAttrs>().data_format == "NHWC");
  c.result(c.dtype(0), c.shape(1));
}

Tensors vjp_max_pool2d_take(VjpContext& c) {
  const auto a = c.attrs_as<MaxPool2dTakeAttrs>();
  Tensors out = c.gradients();
  out[0] = ops::max_pool2d_grad(c.cotangent(), c.operand(1), c.operand(0).shape(), a.data_format);
  return out;
}

void infer_avg_pool2d(InferContext& c) {
  const auto a = c.attrs_as<AvgPool2dAttrs>();
  c.result(c.dtype(0), pooled_shape(c, c.shape(0), a.kernel_size, a.stride, a.padding, a.ceil_mode,
                                    a.data_format == "NHWC"));
}

Tensors vjp_avg_pool2d(VjpContext& c) {
  const auto a = c.attrs_as<AvgPool2dAttrs>();
  return {ops::avg_pool2d_grad(c.cotangent(), c.operand(0).shape(), a.kernel_size, a.stride,
                               a.padding, a.ceil_mode, a.exclusive, a.divisor_override,
                               a.data_format)};
}

void infer_avg_pool2d_grad(InferContext& c) {
  const auto a = c.attrs_as<AvgPool2dGradAttrs>();
  check_planes(c, 0, 0, a.input_shape);
  const Shape pooled = pooled_shape(c, a.input_shape, a.kernel_size, a.stride, a.padding,
                                    a.ceil_mode, a.data_format == "NHWC");
  for (size_t i = 0; i < 4; ++i)
    c.require_equal(c.shape(0)[i], pooled[i], "the gradient does not fit the windows");
  c.result(c.dtype(0), a.input_shape);
}

Tensors vjp_avg_pool2d_grad(VjpContext& c) {
  const auto a = c.attrs_as<AvgPool2dGradAttrs>();
  return {ops::avg_pool2d(c.cotangent(), a.kernel_size, a.stride, a.padding, a.ceil_mode,
                          a.exclusive, a.divisor_override, a.data_format)};
}

}  // namespace paddle::rules
