// Concatenation, splitting, slicing and padding.

#include <algorithm>
#include <optional>

#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

Values concat(NodeCall& c) {
  for (size_t i = 1; i < c.input_count(); ++i) c.check_same_dtype({0, i});
  return {ops::concat(c.tensors(), c.axis(c.int_attr("axis", 1), c.tensor(0).ndim()))};
}

/// Sizes are an attribute or an input; by default equal chunks, the last one smaller.
Values split(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.axis(c.int_attr("axis", 0), x.ndim());
  Shape sizes;
  if (c.has_input(1)) {
    sizes = c.dims_operand(1);
  } else if (c.has_attribute("split")) {
    sizes = to_shape(c.ints_attr("split"));
  } else {
    const auto count = c.int_attr("num_outputs", static_cast<int64_t>(c.output_count()));
    c.check(count > 0 && count == static_cast<int64_t>(c.output_count()), "cannot split into ",
            count, " parts for ", c.output_count(), " outputs");
    const Dim size = x.dim(axis), each = ceil_divide(size, count);
    Dim left = size;
    for (int64_t i = 0; i < count; ++i) {
      sizes.push_back(i + 1 < count ? minimum(each, left) : left);
      left = left - sizes.back();
    }
  }
  Values out;
  Dim at = 0;
  for (const Dim& size : sizes) {
    c.check(!size.less(0).value_or(false), "the size ", size, " of a part is negative");
    out.emplace_back(slice_axis(x, axis, at, at + size));
    at = at + size;
  }
  c.check(at.equals(x.dim(axis)).value_or(true), "the parts ", text(sizes),
          " do not add up to the size ", x.dim(axis));
  return out;
}

/// Attributes before opset 10, inputs since. Bounds far out of range mean the end.
Values slice(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  Shape starts, ends;
  std::vector<int64_t> axes, steps;
  if (c.opset() < 10 && !c.has_input(1)) {
    starts = to_shape(c.ints_attr("starts"));
    ends = to_shape(c.ints_attr("ends"));
    axes = c.ints_attr("axes", leading_axes(static_cast<int64_t>(starts.size())));
  } else {
    starts = c.dims_operand(1);
    ends = c.dims_operand(2);
    axes = c.has_input(3) ? c.constant_ints(3) : leading_axes(static_cast<int64_t>(starts.size()));
    if (c.has_input(4)) steps = c.constant_ints(4);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  c.check(
      starts.size() == ends.size() && starts.size() == axes.size() && starts.size() == steps.size(),
      "starts, ends, axes and steps must have one length");
  constexpr int64_t kFar = int64_t{1} << 40;
  for (Shape* bounds : {&starts, &ends})
    for (Dim& d : *bounds)
      if (d.is_constant()) d = std::clamp(d.value(), -kFar, kFar);
  for (int64_t& s : steps) s = std::clamp(s, -kFar, kFar);
  for (size_t i = 0; i < steps.size(); ++i) {
    const Dim& size = x.dim(c.axis(axes[i], x.ndim()));
    // With a negative step, a start before the first element means the first element.
    if (steps[i] >= 0 || !starts[i].is_constant() || starts[i].value() >= -1) continue;
    starts[i] = size.is_constant() ? Dim(std::max(starts[i].value(), -size.value()))
                                   : maximum(size + starts[i], 0);
  }
  return {ops::strided_slice(x, axes, starts, ends, steps)};
}

/// Source indices of padding. `at` are output indices relative to the input: negative before it, at
/// least `size` after it.
Tensor source_indices(const std::string& mode, const Tensor& at, const Tensor& size) {
  const Tensor zero = int_scalar(0, DType::kI64), one = int_scalar(1, DType::kI64);
  if (mode == "edge") return ops::minimum(ops::maximum(at, zero), size - one);
  if (mode == "wrap") return ops::remainder(at, size);
  const Tensor period = ops::maximum(one, (size - one) + (size - one));
  const Tensor there = ops::remainder(at, period);
  return ops::where(ops::less_than(there, size), there, period - there);
}

}  // namespace

Tensor pad_axis(const Tensor& in, int64_t axis, int64_t before, int64_t after,
                const std::string& mode, const Tensor& fill) {
  Tensor x = in;
  const Dim size = x.dim(axis);
  constexpr int64_t kFar = int64_t{1} << 40;
  if (std::max(before, after) > kFar || std::min(before, after) < -kFar)
    fail(ErrorCode::kModel, "a padding of ", before, " and ", after, " elements is not supported");
  if (before < 0 || after < 0) {
    x = slice_axis(x, axis, std::max<int64_t>(0, -before), size + std::min<int64_t>(0, after));
    before = std::max<int64_t>(0, before);
    after = std::max<int64_t>(0, after);
  }
  if (before == 0 && after == 0) return x;
  Tensors parts;
  const auto add = [&](int64_t count, bool front) {
    if (count == 0) return;
    Shape shape = x.shape();
    shape[static_cast<size_t>(axis)] = count;
    if (mode == "constant") {
      parts.push_back(ops::expand(fill, shape));
    } else {  // modes that copy elements
      const Dim& n = x.dim(axis);
      if (n.same(0)) fail(ErrorCode::kModel, "an empty axis can only be padded in constant mode");
      if (count > max_listed_indices())
        fail(ErrorCode::kModel, "a padding of ", count, " elements is not supported");
      const Dim first = front ? Dim(-count) : n;
      const Tensor at =
          ops::arange(AttrValue(first), AttrValue(first + Dim(count)), AttrValue(1), DType::kI64);
      const Tensor indices = source_indices(mode, at, dim_value(n, DType::kI64));
      parts.push_back(ops::index_select(x, indices, axis));
    }
  };
  add(before, true);
  parts.push_back(x);
  add(after, false);
  return parts.size() == 1 ? parts[0] : ops::concat(parts, axis);
}

namespace {

/// All axes at once, for modes that copy elements of spatial axes of known sizes.
std::optional<Tensor> pad_spatial(const Tensor& x, const std::vector<int64_t>& axes,
                                  const std::vector<int64_t>& pads, const std::string& mode) {
  const int64_t rank = x.ndim();
  if (mode == "constant" || rank < 3 || rank > 5) return std::nullopt;
  std::vector<int64_t> borders(static_cast<size_t>(2 * (rank - 2)), 0);  // the last axis first
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t before = pads[i], after = pads[i + axes.size()];
    if (before == 0 && after == 0) continue;
    const Dim& size = x.dim(axes[i]);
    if (axes[i] < 2 || !size.is_constant() || std::min(before, after) < 0 ||
        std::max(before, after) >= size.value())
      return std::nullopt;
    const auto at = static_cast<size_t>(2 * (rank - 1 - axes[i]));
    if (borders[at] != 0 || borders[at + 1] != 0) return std::nullopt;  // an axis is given twice
    borders[at] = before;
    borders[at + 1] = after;
  }
  const std::string ours = mode == "edge" ? "replicate" : mode == "wrap" ? "circular" : mode;
  return ops::pad(x, borders, ours);
}

Values pad(NodeCall& c) {
  Tensor x = c.tensor(0);
  const std::string mode = c.string_attr("mode", "constant");
  c.check(mode == "constant" || mode == "reflect" || mode == "edge" || mode == "wrap",
          "unknown mode '", mode, "'");
  std::vector<int64_t> pads;
  Tensor fill = scalar(c.float_attr("value", 0), x.dtype());
  if (c.opset() < 11) {
    pads = c.ints_attr(c.opset() < 2 ? "paddings" : "pads");
  } else {
    pads = c.constant_ints(1);
    if (c.has_input(2)) fill = ops::reshape(c.tensor(2), Shape());
  }
  std::vector<int64_t> axes = c.has_input(3) ? c.constant_ints(3) : leading_axes(x.ndim());
  c.check(pads.size() == 2 * axes.size(), pads.size(), " pads for ", axes.size(), " axes");
  for (int64_t& axis : axes) axis = c.axis(axis, x.ndim());
  if (const auto padded = pad_spatial(x, axes, pads, mode)) return {*padded};
  for (size_t i = 0; i < axes.size(); ++i)
    x = pad_axis(x, axes[i], pads[i], pads[i + axes.size()], mode, fill);
  return {x};
}

/// Crops or pads axes symmetrically to a size.
Values center_crop_pad(NodeCall& c) {
  Tensor x = c.tensor(0);
  const auto sizes = c.constant_ints(1);
  const auto axes = c.ints_attr("axes", leading_axes(x.ndim()));
  c.check(axes.size() == sizes.size(), "expected one size per axis");
  const Tensor zero = scalar(0, x.dtype());
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = c.axis(axes[i], x.ndim()), size = constant_dim(x, axis);
    const int64_t surplus = size - sizes[i];
    if (surplus > 0) x = slice_axis(x, axis, surplus / 2, surplus / 2 + sizes[i]);
    if (surplus < 0) x = pad_axis(x, axis, -surplus / 2, -surplus - -surplus / 2, "constant", zero);
  }
  return {x};
}

/// Reverses the leading elements of each sequence.
Values reverse_sequence(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const int64_t time = c.int_attr("time_axis", 0), batch = c.int_attr("batch_axis", 1);
  c.check(x.ndim() >= 2 && time + batch == 1 && time * batch == 0,
          "time_axis and batch_axis must be 0 and 1");
  if (time == 0) return {reverse_sequences(x, c.tensor(1))};
  return {ops::swapaxes(reverse_sequences(ops::swapaxes(x, 0, 1), c.tensor(1)), 0, 1)};
}

/// The upper or lower triangle; the diagonal is an optional input.
Values trilu(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const int64_t k = c.has_input(1) ? c.constant_int(1) : 0;
  const auto bound = [](int64_t v) { return std::clamp(v, -(int64_t{1} << 40), int64_t{1} << 40); };
  const bool upper = c.bool_attr("upper", true);
  const Tensor rows = ops::unsqueeze(iota(x.dim(-2)), {1});
  const Tensor columns = ops::unsqueeze(iota(x.dim(-1)), {0});
  const Tensor offset = columns - rows, limit = int_scalar(bound(k));
  const Tensor keep = upper ? ops::greater_equal(offset, limit) : ops::less_equal(offset, limit);
  return {ops::where(keep, x, scalar(0, x.dtype()))};
}

}  // namespace

Tensor reverse_sequences(const Tensor& x, const Tensor& lengths) {
  const Dim steps = x.dim(0), batch = x.dim(1);
  const Tensor at = ops::unsqueeze(iota(steps), {1});
  const Tensor ends = ops::unsqueeze(ops::cast(lengths, DType::kI64), {0});
  const Tensor from = ops::where(ops::less_than(at, ends), ends - int_scalar(1) - at, at);
  const Tensor row = from * dim_value(batch, DType::kI64) + ops::unsqueeze(iota(batch), {0});
  Shape rows = x.shape();
  rows.erase(rows.begin());
  rows[0] = steps * batch;
  const Tensor taken =
      ops::index_select(ops::reshape(x, rows), ops::reshape(row, {steps * batch}), 0);
  return ops::reshape(taken, x.shape());
}

OperatorTable concat_split_pad_operators() {
  static constexpr Operator operators[] = {
      {"Concat", 1, concat},
      {"Split", 1, split},
      {"Slice", 1, slice},
      {"DynamicSlice", 1, slice},
      {"Pad", 1, pad},
      {"CenterCropPad", 1, center_crop_pad},
      {"ReverseSequence", 1, reverse_sequence},
      {"Trilu", 1, trilu},
  };
  return operators;
}

}  // namespace paddle::onnx
