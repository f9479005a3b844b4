// Rules of neighborhoods.yaml: for each result element, the elements of its window as a table of
// rows, which a product with the weight or a maximum combines.

#include <algorithm>

#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"
#include "ops/generated/sparse.h"
#include "ops/generated/sparse_rules.h"
#include "ops/nn/window.h"
#include "ops/sparse/layout.h"

namespace paddle::rules {
namespace {

constexpr int64_t kMaxOffsets = 1 << 16;

struct Window {
  Axes kernel, stride, dilation, padding;  ///< padding: before and after each spatial axis
  bool ceil_mode = false;
};

const AttrValue& attr(const CallContext& c, const char* name) {
  return c.attrs()[static_cast<size_t>(c.op().attr_index(name))];
}

/// A COO image or volume, its elements unique and in order.
struct Volume {
  Coo x;
  Window window;
  size_t spatial;
  int64_t offsets = 1;  ///< places in the window

  Volume(const Coo& given, Window w) : x(given), window(std::move(w)), spatial(w_size()) {
    if (x.values.ndim() != 2 || x.sparse_rank() != static_cast<int64_t>(spatial) + 1)
      reject(x.op, "x must have the sparse axes [batch, ", spatial,
             " spatial ones] and a dense one, found indices ", x.indices.type(), " and values ",
             x.values.type());
    for (const int64_t size : window.kernel) {
      if (size < 1) reject(x.op, "the window has a size of ", size);
      if (__builtin_mul_overflow(offsets, size, &offsets) || offsets > kMaxOffsets)
        reject(x.op, "windows of more than ", kMaxOffsets, " places are not computed");
    }
    for (size_t i = 0; i < spatial; ++i)
      if (window.stride[i] < 1 || window.dilation[i] < 1)
        reject(x.op, "stride and dilation must be positive");
  }
  size_t w_size() const { return window.kernel.size(); }

  /// Offset of each place of the window along an axis, minus the padding: [1, offsets].
  Tensor steps(size_t axis) const {
    std::vector<int64_t> out(static_cast<size_t>(offsets));
    int64_t inner = 1;
    for (size_t i = axis + 1; i < spatial; ++i) inner *= window.kernel[i];
    for (int64_t k = 0; k < offsets; ++k)
      out[static_cast<size_t>(k)] =
          k / inner % window.kernel[axis] * window.dilation[axis] - window.padding[2 * axis];
    return Tensor(Array::from(out, {1, offsets}));
  }

  Shape result_shape(const Dim& channels) const {
    Shape out = {x.shape[0]};
    for (size_t i = 0; i < spatial; ++i) {
      const Dim size =
          window_count(x.shape[i + 1], window.padding[2 * i], window.padding[2 * i + 1],
                       window.kernel[i], window.stride[i], window.dilation[i], window.ceil_mode);
      if (size.less(Dim(1)) == true)
        reject(x.op, "the window is larger than axis ", i + 1, " of ", text(x.shape));
      out.push_back(size);
    }
    out.push_back(channels);
    return out;
  }

  /// Indices of the windows that hold an element, in order.
  Tensor reached(const Shape& shape) const {
    const auto column = [](const Tensor& v) { return along_first(v, 2); };
    Tensor inside;
    Tensors rows = {column(x.index(0)) + full_of({Dim(1), Dim(offsets)}, 0, DType::kI64)};
    for (size_t i = 0; i < spatial; ++i) {
      const Tensor at = column(x.index(static_cast<int64_t>(i) + 1)) - steps(i);
      const Tensor stride = integer(window.stride[i]);
      const Tensor out = ops::floor_divide(at, stride);
      const Tensor on_grid = ops::equal(out * stride, at);
      const Tensor in_range =
          ops::logical_and(ops::greater_equal(out, integer(0)),
                           ops::less_than(out, dim_value(shape[i + 1], DType::kI64)));
      const Tensor valid = ops::logical_and(on_grid, in_range);
      inside = inside.defined() ? ops::logical_and(inside, valid) : valid;
      rows.push_back(out);
    }
    const Tensor kept = flat(ops::nonzero_rows(flat(inside)));
    Tensors picked;
    for (const Tensor& row : rows) picked.push_back(ops::index_select(flat(row), kept, 0));
    const Shape sparse(shape.begin(), shape.end() - 1);
    const Tensor linear = ops::sparse_linear_index(ops::stack(picked, 0), sparse);
    return unravel(ops::unique(linear)[0], sparse);
  }

  /// The elements in the windows at `sites`: [sites, offsets, channels], `fill` where there is
  /// none.
  Tensor gathered(const Tensor& sites, double fill) const {
    const Coo elements = x.coalesced();
    const Tensor known = elements.linear();
    const auto site = [&](int64_t axis) {
      return along_first(
          ops::squeeze(slice_axis(sites, 0, axis, axis + 1), std::vector<int64_t>{0}), 2);
    };
    Tensor inside, linear = site(0) + full_of({Dim(1), Dim(offsets)}, 0, DType::kI64);
    for (size_t i = 0; i < spatial; ++i) {
      const Tensor size = dim_value(x.shape[i + 1], DType::kI64);
      const Tensor at = site(static_cast<int64_t>(i) + 1) * integer(window.stride[i]) + steps(i);
      const Tensor valid =
          ops::logical_and(ops::greater_equal(at, integer(0)), ops::less_than(at, size));
      inside = inside.defined() ? ops::logical_and(inside, valid) : valid;
      linear = linear * size + at;
    }
    const Tensor wanted = flat(ops::where(inside, linear, integer(-1)));
    const Tensor place = ops::searchsorted(known, wanted);
    // A last one that nothing equals stands for elements that are not there.
    const Tensor padded = ops::concat({known, full_of({Dim(1)}, -2, DType::kI64)}, 0);
    const Tensor hit = ops::equal(ops::index_select(padded, place, 0), wanted);
    const Tensor row = ops::where(hit, place, dim_value(elements.count(), DType::kI64));
    const Dim channels = elements.values.dim(1);
    const Tensor values = ops::concat(
        {elements.values, full_of({Dim(1), channels}, fill, elements.values.dtype())}, 0);
    return ops::reshape(ops::index_select(values, row, 0),
                        Shape{sites.dim(1), Dim(offsets), channels});
  }
};

Window window_of(const CallContext& c, const Coo& x, Axes kernel, const AttrValue& stride,
                 const AttrValue& dilation, bool ceil_mode) {
  const size_t n = kernel.size();
  const std::string op(c.op().name());
  if (x.shape.size() != n + 2) reject(op, "shape must have ", n + 2, " axes, not ", text(x.shape));
  Window out;
  out.kernel = std::move(kernel);
  out.stride = window_sizes(stride, n, op + ": stride");
  out.dilation = window_sizes(dilation, n, op + ": dilation");
  const Shape spatial(x.shape.begin() + 1, x.shape.end() - 1);
  out.padding = window_padding(attr(c, "padding"), spatial, out.kernel, out.stride, out.dilation,
                               true, op + ": padding");
  out.ceil_mode = ceil_mode;
  return out;
}

Tensors convolution(CallContext& c, bool submanifold) {
  const std::string_view op = c.op().name();
  const Coo x(op, c.operand(0), c.operand(1), attr(c, "shape").as_dims());
  const Tensor& weight = c.operand(2);
  const size_t n = op.find("conv3d") != std::string_view::npos ? 3 : 2;
  if (weight.ndim() != static_cast<int64_t>(n) + 2)
    reject(op, "weight must have ", n + 2, " dimensions, not ", weight.type());
  if (attr(c, "groups").as_int() != 1) reject(op, "groups must be 1");
  Axes kernel;
  for (size_t i = 0; i < n; ++i) {
    const auto size = weight.dim(static_cast<int64_t>(i)).constant();
    if (!size) reject(op, "the window of weight ", weight.type(), " must be known");
    kernel.push_back(*size);
  }
  const Volume volume(x, window_of(c, x, kernel, attr(c, "stride"), attr(c, "dilation"), false));
  if (x.shape.back().equals(weight.dim(-2)) == false)
    reject(op, "weight ", weight.type(), " does not take the ", x.shape.back(), " channels of x");
  if (submanifold)
    for (const int64_t stride : volume.window.stride)
      if (stride != 1) reject(op, "the stride of a submanifold convolution must be 1");
  const Dim channels = weight.dim(-1);
  Shape shape = volume.result_shape(channels);
  if (submanifold) {
    for (size_t i = 1; i + 1 < shape.size(); ++i)
      if (shape[i].equals(x.shape[i]) == false)
        reject(op, "the padding must keep the shape ", text(x.shape), "; it gives ", text(shape));
    shape = x.shape;
    shape.back() = channels;
  }
  const Tensor sites = submanifold ? x.indices : volume.reached(shape);
  const Dim width = weight.dim(-2) * volume.offsets;
  const Tensor table = ops::reshape(volume.gathered(sites, 0), Shape{sites.dim(1), width});
  Tensor values = ops::matmul(table, ops::reshape(weight, Shape{width, channels}));
  if (c.has(3)) values = values + c.operand(3);
  return {sites + integer(0), values, shape_tensor(shape)};
}

}  // namespace

Tensors decompose_sparse_conv(CallContext& c) { return convolution(c, false); }
Tensors decompose_sparse_subm_conv(CallContext& c) { return convolution(c, true); }

Tensors decompose_sparse_max_pool3d(CallContext& c) {
  const auto a = c.attrs_as<SparseMaxPool3dAttrs>();
  const std::string_view op = c.op().name();
  const Coo x(op, c.operand(0), c.operand(1), a.shape);
  const Axes kernel = window_sizes(a.kernel_size, 3, std::string(op) + ": kernel_size");
  const Volume volume(x, window_of(c, x, kernel, a.stride.is_none() ? a.kernel_size : a.stride,
                                   AttrValue(1), a.ceil_mode));
  const Shape shape = volume.result_shape(x.shape.back());
  const Tensor sites = volume.reached(shape);
  return {sites, ops::max(volume.gathered(sites, -INFINITY), Axes{1}), shape_tensor(shape)};
}

}  // namespace paddle::rules
