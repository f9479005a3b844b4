// Pooling.

#include <algorithm>
#include <limits>

#include "onnx/ops/helpers.h"
#include "onnx/ops/window.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/nn/window.h"

namespace paddle::onnx {
namespace {

Window window_of(const NodeCall& c, const Tensor& x) {
  const auto kernel = c.ints_attr("kernel_shape");
  c.check(!kernel.empty(), "kernel_shape is missing");
  return Window(c, x.shape(), kernel);
}

bool is_undilated(const Window& w) {
  return std::all_of(w.dilation.begin(), w.dilation.end(), [](int64_t d) { return d == 1; });
}

/// All windows, unfolded: each spatial axis becomes two, output position and kernel offset. Padding
/// holds `fill`. Sizes must be constant.
Tensor unfold_windows(const Tensor& in, const Window& w, bool ceil, double fill) {
  Tensor x = in;
  for (size_t i = 0; i < w.rank(); ++i) {
    const auto axis = static_cast<int64_t>(2 + 2 * i);
    const int64_t size = constant_dim(x, axis);
    const int64_t count =
        window_count(size, w.before[i], w.after[i], w.kernel[i], w.stride[i], w.dilation[i], ceil)
            .value();
    if (count <= 0 || count > max_listed_indices() / w.kernel[i])
      fail(ErrorCode::kModel, "a window of ", w.kernel[i], " at ", count,
           " positions is not supported");
    std::vector<int64_t> indices;
    indices.reserve(static_cast<size_t>(count * w.kernel[i]));
    bool outside = false;
    for (int64_t p = 0; p < count; ++p)
      for (int64_t k = 0; k < w.kernel[i]; ++k) {
        const int64_t at = p * w.stride[i] - w.before[i] + k * w.dilation[i];
        indices.push_back(at < 0 || at >= size ? size : at);
        outside = outside || indices.back() == size;
      }
    if (outside) {
      Shape one = x.shape();
      one[static_cast<size_t>(axis)] = 1;
      x = ops::concat({x, ops::full(one, fill, x.dtype())}, axis);
    }
    Shape shape = x.shape();
    shape[static_cast<size_t>(axis)] = count;
    shape.insert(shape.begin() + axis + 1, Dim(w.kernel[i]));
    x = ops::reshape(ops::index_select(x, int_vector(indices), axis), shape);
  }
  return x;
}

std::vector<int64_t> kernel_axes(const Window& w) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < w.rank(); ++i) axes.push_back(static_cast<int64_t>(3 + 2 * i));
  return axes;
}

double lowest(DType dtype) {
  if (is_float(dtype)) return -std::numeric_limits<double>::infinity();
  return integer_range(dtype).first;
}

/// Indices within a plane as indices into the whole tensor, row-major or (storage_order)
/// column-major.
Tensor flat_indices(const Tensor& indices, const Tensor& x, size_t rank, bool columns) {
  Tensor at = ops::cast(indices, DType::kI64);
  Dim plane = 1;
  for (size_t i = 0; i < rank; ++i) plane = plane * x.dim(static_cast<int64_t>(2 + i));
  if (columns && rank == 2) {
    const Tensor width = dim_value(x.dim(3), DType::kI64),
                 height = dim_value(x.dim(2), DType::kI64);
    at = ops::remainder(at, width) * height + ops::floor_divide(at, width);
  }
  Shape shape(2 + rank, Dim(1));
  shape[0] = x.dim(0);
  shape[1] = x.dim(1);
  const Tensor start = iota(x.dim(0) * x.dim(1)) * dim_value(plane, DType::kI64);
  return at + ops::reshape(start, shape);
}

/// Max pooling with indices, through windows of indices.
Values max_pool_with_windows(const NodeCall& c, const Tensor& x, const Window& w, bool ceil) {
  const Tensor all = unfold_windows(x, w, ceil, lowest(x.dtype()));
  const Tensor out = ops::max(all, kernel_axes(w));
  if (!c.has_output(1)) return {out};
  Dim plane = 1;
  Shape spatial = {Dim(1), Dim(1)};
  for (size_t i = 0; i < w.rank(); ++i) {
    plane = plane * x.dim(static_cast<int64_t>(2 + i));
    spatial.push_back(x.dim(static_cast<int64_t>(2 + i)));
  }
  const Tensor numbers = ops::reshape(iota(plane), spatial);
  const Tensor index = unfold_windows(numbers, w, ceil, 0x1p62);
  const Tensor best = ops::max(all, kernel_axes(w), true);
  const Tensor chosen = ops::where(ops::equal(all, best), index, int_scalar(int64_t{1} << 62));
  const Tensor indices = ops::min(chosen, kernel_axes(w));
  return {out, flat_indices(indices, x, w.rank(), c.bool_attr("storage_order", false))};
}

/// Applies a 2-D pooling function to 1-D data (as height 1) and to 3-D data (planes first, as
/// channels, then depth with each plane as one row).
template <class Pool>
Tensor pool_as_2d(const Tensor& x, const Window& w, Pool&& pool) {
  constexpr size_t kNone = 3;
  if (w.rank() == 2) return pool(x, w);
  if (w.rank() == 1)
    return ops::squeeze(pool(ops::unsqueeze(x, {2}), w.along({kNone, 0})), std::vector<int64_t>{2});
  const Tensor planes =
      pool(ops::reshape(x, {x.dim(0), x.dim(1) * x.dim(2), x.dim(3), x.dim(4)}), w.along({1, 2}));
  const Dim &height = planes.dim(2), &width = planes.dim(3);
  const Tensor across = pool(ops::reshape(planes, {x.dim(0), x.dim(1), x.dim(2), height * width}),
                             w.along({0, kNone}));
  return ops::reshape(across, {x.dim(0), x.dim(1), across.dim(2), height, width});
}

Values max_pool(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const Window w = window_of(c, x);
  const bool ceil = c.bool_attr("ceil_mode", false);
  const bool direct = is_float(x.dtype()) || x.dtype() == DType::kU8 || x.dtype() == DType::kI8;
  if (!is_undilated(w) || !direct || w.rank() > 3 || (w.rank() != 2 && c.has_output(1)))
    return max_pool_with_windows(c, x, w, ceil);
  if (c.has_output(1)) {
    const Tensors out = ops::max_pool2d(x, w.kernel, w.stride, w.borders(), true, ceil);
    return {out[0], flat_indices(out[1], x, 2, c.bool_attr("storage_order", false))};
  }
  if (w.rank() == 3) return {ops::max_pool3d(x, w.kernel, w.stride, w.borders(), false, ceil)[0]};
  return {pool_as_2d(x, w, [&](const Tensor& image, const Window& of) {
    return ops::max_pool2d(image, of.kernel, of.stride, of.borders(), true, ceil)[0];
  })};
}

Values average_pool(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const Window w = window_of(c, x);
  const bool ceil = c.bool_attr("ceil_mode", false),
             borders = c.bool_attr("count_include_pad", false);
  if (w.rank() <= 3 && is_undilated(w) && !(ceil && borders))
    return {pool_as_2d(x, w, [&](const Tensor& image, const Window& of) {
      return ops::avg_pool2d(image, of.kernel, of.stride, of.borders(), ceil, !borders);
    })};
  const Tensor total = ops::sum(unfold_windows(x, w, ceil, 0), kernel_axes(w), x.dtype());
  // Number of valid elements per window.
  Shape shape = {Dim(1), Dim(1)};
  for (size_t i = 0; i < w.rank(); ++i) shape.push_back(x.dim(static_cast<int64_t>(2 + i)));
  Tensor ones = ops::full(shape, 1.0, x.dtype());
  Window counted = w;
  if (borders)
    for (size_t i = 0; i < w.rank(); ++i) {
      const auto axis = static_cast<int64_t>(2 + i);
      Shape grown = ones.shape();
      grown[static_cast<size_t>(axis)] =
          grown[static_cast<size_t>(axis)] + w.before[i] + w.after[i];
      ones = ops::full(grown, 1.0, x.dtype());
      counted.before[i] = counted.after[i] = 0;
    }
  Tensor counts = ops::sum(unfold_windows(ones, counted, ceil, 0), kernel_axes(w), x.dtype());
  for (int64_t axis = 2; axis < counts.ndim(); ++axis)
    counts = slice_axis(counts, axis, 0, total.dim(axis));
  return {total / counts};
}

Values lp_pool(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const Window w = window_of(c, x);
  const double p = c.float_attr("p", 2);
  const Tensor all = unfold_windows(ops::abs(x), w, c.bool_attr("ceil_mode", false), 0);
  const Tensor powers = ops::pow(all, Tensor::number(p));
  return {ops::pow(ops::sum(powers, kernel_axes(w), x.dtype()), Tensor::number(1 / p))};
}

std::vector<int64_t> spatial_axes(const Tensor& x) {
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < x.ndim(); ++i) axes.push_back(i);
  return axes;
}
Values global_average_pool(NodeCall& c) {
  return {ops::mean(c.tensor(0), spatial_axes(c.tensor(0)), true)};
}
Values global_max_pool(NodeCall& c) {
  return {ops::max(c.tensor(0), spatial_axes(c.tensor(0)), true)};
}
Values global_lp_pool(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const double p = c.float_attr("p", 2);
  const Tensor total =
      ops::sum(ops::pow(ops::abs(x), Tensor::number(p)), spatial_axes(x), x.dtype(), true);
  return {ops::pow(total, Tensor::number(1 / p))};
}

/// Scatters values to their indices in the tensor before pooling, which may lie in a larger one.
Values max_unpool(NodeCall& c) {
  const Tensor &x = c.tensor(0), &indices = c.tensor(1);
  const Window w = window_of(c, x);
  Shape shape = {x.dim(0), x.dim(1)};
  for (size_t i = 0; i < w.rank(); ++i)
    shape.push_back((x.dim(static_cast<int64_t>(2 + i)) - 1) * w.stride[i] -
                    (w.before[i] + w.after[i]) + w.kernel[i]);
  const Tensor zeros = ops::full({element_count(std::span<const Dim>(shape))}, 0.0, x.dtype());
  Tensor out = ops::reshape(
      ops::scatter_along(zeros, ops::reshape(indices, Shape{-1}), ops::reshape(x, Shape{-1}), 0),
      shape);
  if (!c.has_input(2)) return {out};
  const Shape wanted = c.dims_operand(2);
  c.check(wanted.size() == shape.size(), "output_shape has ", wanted.size(), " sizes");
  for (size_t i = 0; i < shape.size(); ++i) {
    const Dim missing = wanted[i] - shape[i];
    if (missing.equals(0).value_or(false)) continue;
    Shape more = out.shape();
    more[i] = missing;
    out = ops::concat({out, ops::full(more, 0.0, x.dtype())}, static_cast<int64_t>(i));
  }
  return {out};
}

}  // namespace

Values average_pool_rule(NodeCall& c) { return average_pool(c); }
Values max_pool_rule(NodeCall& c) { return max_pool(c); }
Values global_average_pool_rule(NodeCall& c) { return global_average_pool(c); }
Values global_max_pool_rule(NodeCall& c) { return global_max_pool(c); }

OperatorTable pooling_operators() {
  static constexpr Operator operators[] = {
      {"MaxPool", 1, max_pool},
      {"AveragePool", 1, average_pool},
      {"LpPool", 1, lp_pool},
      {"GlobalAveragePool", 1, global_average_pool},
      {"GlobalMaxPool", 1, global_max_pool},
      {"GlobalLpPool", 1, global_lp_pool},
      {"MaxUnpool", 1, max_unpool},
  };
  return operators;
}

}  // namespace paddle::onnx
