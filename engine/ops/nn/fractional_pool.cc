// Rules of fractional_pool.yaml.

#include <algorithm>
#include <cmath>

#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/nn_rules.h"
#include "ops/generated/random.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/nn/channels.h"
#include "ops/nn/window.h"

namespace paddle::rules {
namespace {

/// The indices [windows, length] that the windows of an axis read. Windows shorter than the longest
/// one repeat their last element.
Tensor window_indices(std::string_view op, const Dim& size, int64_t count, int64_t kernel,
                      const Tensor& random) {
  if (!size.is_constant()) reject(op, "the sizes of x must be constant");
  const int64_t in = size.value();
  if (count < 1 || count > in || kernel > in - count + 1)
    reject(op, count, " windows of ", std::max<int64_t>(kernel, 1), " do not fit ", in,
           " elements");
  if (kernel > 0 && count == 1 && in > kernel)
    reject(op, "one window of kernel_size ", kernel, " does not cover ", in, " elements");
  // In float32, as in other implementations: the places of windows depend on the rounding.
  const int64_t steps = count - (kernel > 0 ? 1 : 0);
  const float alpha =
      steps == 0 ? 1.0F : static_cast<float>(in - kernel) / static_cast<float>(steps);
  Tensor u = random;
  if (kernel == 0) {
    const int64_t base = in / count;
    const float first = static_cast<float>(base + 2) / alpha - 1,
                second = static_cast<float>(in + 1 - base) / alpha - static_cast<float>(count - 1);
    u = random * static_cast<double>(std::min(first, second));
  }
  const auto place = [&](const Tensor& at) {
    return ops::cast(ops::floor((at + u) * static_cast<double>(alpha)), DType::kI64);
  };
  const Tensor window = range_of(Dim(count), DType::kF32);
  const Tensor origin = place(full_of({}, 0, DType::kF32));
  const Tensor start = place(window) - origin;
  const int64_t length = kernel > 0 ? kernel : static_cast<int64_t>(std::ceil(alpha)) + 1;
  const Tensor end = kernel > 0 ? start + integer(kernel) : place(window + 1.0) - origin;
  const Tensor last = ops::minimum(ops::unsqueeze(end, {1}), integer(in)) - integer(1);
  const Tensor index =
      ops::unsqueeze(start, {1}) + ops::unsqueeze(range_of(Dim(length), DType::kI64), {0});
  return ops::maximum(ops::minimum(index, last), integer(0));
}

Tensors fractional_pool(CallContext& c, size_t n, const AttrValue& output_size,
                        const AttrValue& kernel_size, std::optional<double> random_u,
                        bool return_mask) {
  const std::string_view op = c.op().name();
  Tensor x = c.operand(0);
  const auto spatial = static_cast<int64_t>(n);
  if (x.ndim() != spatial + 2) reject(op, "x must have ", n + 2, " dimensions, not ", x.type());
  if (random_u && !(*random_u > 0 && *random_u < 1))
    reject(op, "random_u must be between 0 and 1, not ", *random_u);
  const Axes kernel =
      kernel_size.is_none() ? Axes(n, 0) : window_sizes(kernel_size, n, str(op, ": kernel_size"));
  for (const int64_t k : kernel)
    if (k < 0 || (k == 0 && !kernel_size.is_none()))
      reject(op, "kernel_size must be positive, not ", k);
  const Tensor u = random_u ? full_of({}, *random_u, DType::kF32)
                            : ops::uniform(Shape(), DType::kF32, 1e-6, 1.0);
  const Shape given = x.shape();
  Shape out = {given[0], given[1]}, lengths;
  Tensor place;  // indices into the flattened spatial axes, [o1, l1, o2, l2, ...]
  for (size_t i = 0; i < n; ++i) {
    AttrValue each = output_size;
    if (output_size.is_list()) {
      if (output_size.as_list().size() != n)
        reject(op, "output_size must be a number or ", n, " numbers, not ", output_size);
      each = output_size.as_list()[i];
    }
    const Dim& size = given[i + 2];
    const int64_t count = each.is_none() ? size.value() : each.as_int();
    const Tensor index = window_indices(op, size, count, kernel[i], u);
    const int64_t axis = 2 + 2 * static_cast<int64_t>(i);
    Shape split = x.shape();
    split[static_cast<size_t>(axis)] = index.dim(0);
    split.insert(split.begin() + axis + 1, index.dim(1));
    x = ops::reshape(ops::index_select(x, flat(index), axis), split);
    Shape along(2 * n, Dim(1));
    along[2 * i] = index.dim(0);
    along[2 * i + 1] = index.dim(1);
    const Tensor own = ops::reshape(index, along);
    place = i == 0 ? own : place * dim_value(size, DType::kI64) + own;
    out.push_back(index.dim(0));
    lengths.push_back(index.dim(1));
  }
  Axes order = {0, 1}, windows;
  for (int64_t i = 0; i < spatial; ++i) windows.push_back(2 * i);
  for (int64_t i = 0; i < spatial; ++i) windows.push_back(2 * i + 1);
  for (const int64_t w : windows) order.push_back(w + 2);
  const Dim all = element_count(std::span<const Dim>(lengths));
  Shape flattened = out;
  flattened.push_back(all);
  const Tensor values = ops::reshape(ops::transpose(x, order), flattened);
  const Tensor largest = ops::max(values, Axes{spatial + 2});
  if (!return_mask) return {largest};
  const Tensor at = ops::argmax(values, spatial + 2, true);
  const Tensor places = ops::expand(ops::reshape(ops::transpose(place, windows),
                                                 [&] {
                                                   Shape s = flattened;
                                                   s[0] = s[1] = 1;
                                                   return s;
                                                 }()),
                                    flattened);
  const Tensor mask = ops::squeeze(ops::gather_along(places, at, spatial + 2), Axes{spatial + 2});
  return {largest, ops::cast(mask, DType::kI32)};
}

}  // namespace

Tensors decompose_fractional_max_pool2d(CallContext& c) {
  const auto a = c.attrs_as<FractionalMaxPool2dAttrs>();
  return fractional_pool(c, 2, a.output_size, a.kernel_size, a.random_u, a.return_mask);
}

Tensors decompose_fractional_max_pool3d(CallContext& c) {
  const auto a = c.attrs_as<FractionalMaxPool3dAttrs>();
  return fractional_pool(c, 3, a.output_size, a.kernel_size, a.random_u, a.return_mask);
}

}  // namespace paddle::rules
