// Rules of pool.yaml: max unpooling and power-average pooling.

#include <cmath>

#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/nn_rules.h"
#include "ops/generated/shape.h"
#include "ops/nn/channels.h"
#include "ops/nn/window.h"

namespace paddle::rules {
namespace {

Tensors unpooled(CallContext& c, size_t n, const AttrValue& kernel_size, const AttrValue& step,
                 const AttrValue& padding, const AttrValue& output_size) {
  const Tensor &x = c.operand(0), &places = c.operand(1);
  const Op& op = c.op();
  const std::string name(op.name());
  if (x.ndim() != static_cast<int64_t>(n) + 2)
    reject(op.name(), "x must have ", n + 2, " dimensions, not ", x.type());
  if (!same_shape(places.shape(), x.shape()))
    reject(op.name(), "indices must have the shape of x ", x.type(), ", not ", places.type());
  const auto kernel = window_sizes(kernel_size, n, name + ": kernel_size");
  const auto stride = step.is_none() ? kernel : window_sizes(step, n, name + ": stride");
  const auto border = window_sizes(padding, n, name + ": padding");
  Shape shape = x.shape();
  Dim from = 1, to = 1;
  Axes wanted;
  if (!output_size.is_none()) {
    wanted = output_size.as_ints();
    if (wanted.size() == n + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
    if (wanted.size() != n)
      reject(op.name(), "output_size must have ", n, " numbers, not ", output_size);
  }
  for (size_t i = 0; i < n; ++i) {
    Dim& d = shape[i + 2];
    from = from * d;
    const Dim usual = (d - 1) * stride[i] - 2 * border[i] + kernel[i];
    if (!wanted.empty() && (Dim(wanted[i]).less(usual - stride[i] + 1).value_or(false) ||
                            !Dim(wanted[i]).less(usual + stride[i]).value_or(true)))
      reject(op.name(), "output_size ", wanted[i], " must be nearer than ", stride[i], " to ",
             usual);
    d = wanted.empty() ? usual : Dim(wanted[i]);
    if (d.less(1).value_or(false)) reject(op.name(), "the result would be empty");
    to = to * d;
  }
  const Tensor empty = full_of({x.dim(0), x.dim(1), to}, 0, x.dtype());
  const Shape flat = {x.dim(0), x.dim(1), from};
  const Tensor at = ops::reshape(ops::cast(places, DType::kI64), flat);
  return {ops::reshape(ops::scatter_along(empty, at, ops::reshape(x, flat), 2), shape)};
}

/// Sums over windows of the powers, and their root.
Tensor power_pool(const Tensor& x, const AttrValue& order,
                  const std::function<Tensor(const Tensor&)>& sums) {
  const double p = order.as_double();
  return ops::pow(sums(ops::pow(x, Tensor::number(p))), Tensor::number(1 / p));
}

}  // namespace

Tensors decompose_max_unpool1d(CallContext& c) {
  const auto a = c.attrs_as<MaxUnpool1dAttrs>();
  return unpooled(c, 1, a.kernel_size, a.stride, a.padding, a.output_size);
}

Tensors decompose_max_unpool2d(CallContext& c) {
  const auto a = c.attrs_as<MaxUnpool2dAttrs>();
  return unpooled(c, 2, a.kernel_size, a.stride, a.padding, a.output_size);
}

Tensors decompose_max_unpool3d(CallContext& c) {
  const auto a = c.attrs_as<MaxUnpool3dAttrs>();
  return unpooled(c, 3, a.kernel_size, a.stride, a.padding, a.output_size);
}

Tensors decompose_lp_pool1d(CallContext& c) {
  const auto a = c.attrs_as<LpPool1dAttrs>();
  const Tensor& given = c.operand(0);
  if (given.ndim() != 3) reject(c.op().name(), "x must have 3 dimensions, not ", given.type());
  const bool last = a.data_format == "NLC";
  const Tensor x = last ? ops::transpose(given, {0, 2, 1}) : given;
  const std::string name(c.op().name());
  const int64_t kernel = window_sizes(a.kernel_size, 1, name + ": kernel_size")[0];
  const int64_t stride =
      a.stride.is_none() ? kernel : window_sizes(a.stride, 1, name + ": stride")[0];
  Tensor y;
  if (std::isinf(a.norm_type.as_double())) {
    y = ops::max_pool1d(x, int_list({kernel}), int_list({stride}), a.padding, false,
                        a.ceil_mode)[0];
  } else {
    const auto border = window_padding(a.padding, {x.dim(2)}, {kernel}, {stride}, {1}, false, name);
    y = power_pool(x, a.norm_type, [&](const Tensor& t) {
      return ops::squeeze(
          ops::avg_pool2d(ops::unsqueeze(t, {2}), int_list({1, kernel}), int_list({1, stride}),
                          int_list({0, 0, border[0], border[1]}), a.ceil_mode, false, 1.0),
          Axes{2});
    });
  }
  return {last ? ops::transpose(y, {0, 2, 1}) : y};
}

Tensors decompose_lp_pool2d(CallContext& c) {
  const auto a = c.attrs_as<LpPool2dAttrs>();
  const Tensor& x = c.operand(0);
  if (std::isinf(a.norm_type.as_double()))
    return {ops::max_pool2d(x, a.kernel_size, a.stride, a.padding, false, a.ceil_mode,
                            a.data_format)[0]};
  return {power_pool(x, a.norm_type, [&](const Tensor& t) {
    return ops::avg_pool2d(t, a.kernel_size, a.stride, a.padding, a.ceil_mode, false, 1.0,
                           a.data_format);
  })};
}

}  // namespace paddle::rules
