// Shape manipulation and transposition.

#include <algorithm>
#include <numeric>

#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// The shape of a tensor as dims; data-dependent sizes are unknown while tracing.
Values shape_of(NodeCall& c) {
  for (const Dim& d : c.value(0).shape())
    if (d.is_unknown()) throw DataDependentError(ErrorCode::kModel, "a size depends on the data");
  return {ops::shape(c.tensor(0))};
}
Values size_of(NodeCall& c) { return {ops::numel(c.tensor(0))}; }

/// 0 copies a dim unless `allowzero` is set, -1 is inferred.
Values reshape(NodeCall& c) {
  Shape to = c.opset() < 5 ? to_shape(c.ints_attr("shape")) : c.dims_operand(1);
  const Shape from = c.value(0).shape();
  // The attribute zeros_of_empty is our own, of operations of PaddlePaddle: there 0 copies a size
  // except where there are no elements.
  const bool is_empty = is_constant(from) && element_count(std::span<const Dim>(from)).value() == 0;
  const bool zero =
      c.bool_attr("allowzero", false) || (is_empty && c.bool_attr("zeros_of_empty", false));
  Dim known = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].is_constant() && to[i].value() == 0 && !zero) {
      c.check(i < from.size(), "size 0 at position ", i, " has no dim to copy");
      to[i] = from[i];
    }
    if (to[i].is_constant() && to[i].value() == -1) {
      c.check(!open, "only one size may be -1");
      open = i;
    } else {
      known = known * to[i];
    }
  }
  const Dim total = element_count(std::span<const Dim>(from));
  if (open) {
    c.check(
        !known.is_constant() || known.value() != 0 || !total.is_constant() || total.value() == 0,
        "cannot reshape ", text(from), " to ", text(to));
    to[*open] = known.is_constant() && known.value() == 0 ? Dim(0) : floor_divide(total, known);
  }
  // For an empty tensor, an inferred size may be 0.
  if (total.is_constant() && total.value() == 0 && is_constant(to) && is_constant(from) &&
      c.value(0).is_tensor())
    return {ops::full(to, 0.0, c.tensor(0).dtype())};
  return {ops::reshape(c.tensor(0), to)};
}

Values flatten(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  int64_t axis = c.int_attr("axis", 1);
  c.check(axis >= -x.ndim() && axis <= x.ndim(), "axis ", axis, " is out of range");
  if (axis < 0) axis += x.ndim();
  Dim rows = 1, columns = 1;
  for (int64_t i = 0; i < x.ndim(); ++i)
    (i < axis ? rows : columns) = (i < axis ? rows : columns) * x.dim(i);
  return {ops::reshape(x, {rows, columns})};
}

Values squeeze(NodeCall& c) {
  const Value& x = c.value(0);
  const Shape from = x.shape();
  const auto axes = c.axes(1);
  std::vector<bool> drop(from.size());
  if (axes) {
    for (const int64_t a : *axes)
      drop[static_cast<size_t>(c.axis(a, static_cast<int64_t>(from.size())))] = true;
  } else {
    for (size_t i = 0; i < from.size(); ++i) {
      if (!from[i].is_constant())
        throw DataDependentError(ErrorCode::kModel, "the axes of size 1 depend on the data");
      drop[i] = from[i].value() == 1;
    }
  }
  Shape to;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!drop[i]) to.push_back(from[i]);
    c.check(!drop[i] || from[i].equals(1).value_or(true), "axis ", i, " has the size ", from[i],
            ", not 1");
  }
  return {ops::reshape(x.tensor(), to)};
}

Values unsqueeze(NodeCall& c) {
  const Value& x = c.value(0);
  const auto axes = c.axes(1);
  c.check(axes.has_value(), "axes are missing");
  const Shape from = x.shape();
  const auto rank = static_cast<int64_t>(from.size() + axes->size());
  std::vector<bool> added(static_cast<size_t>(rank));
  for (const int64_t a : *axes) {
    const auto at = static_cast<size_t>(c.axis(a, rank));
    c.check(!added[at], "axis ", a, " is repeated");
    added[at] = true;
  }
  Shape to;
  size_t next = 0;
  for (const bool one : added) to.push_back(one ? Dim(1) : from[next++]);
  return {ops::reshape(x.tensor(), to)};
}

Values transpose(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  std::vector<int64_t> perm = c.ints_attr("perm");
  if (!c.has_attribute("perm")) {
    perm = leading_axes(x.ndim());
    std::reverse(perm.begin(), perm.end());
  }
  return {ops::transpose(x, perm)};
}

/// Bidirectional broadcasting: a size of 1 keeps the tensor's size.
Values expand(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  Shape to = c.dims_operand(1);
  while (static_cast<int64_t>(to.size()) < x.ndim()) to.insert(to.begin(), Dim(1));
  const size_t lead = to.size() - x.shape().size();
  for (size_t i = lead; i < to.size(); ++i)
    if (to[i].is_constant() && to[i].value() == 1) to[i] = x.shape()[i - lead];
  return {ops::expand(x, to)};
}

Values tile(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  if (c.opset() < 6) {  // tile count and axis
    Shape repeats(static_cast<size_t>(x.ndim()), Dim(1));
    repeats[static_cast<size_t>(c.axis(c.constant_int(2), x.ndim()))] = c.constant_int(1);
    return {ops::tile(x, repeats)};
  }
  return {ops::tile(x, c.dims_operand(1))};
}

Values depth_to_space(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const int64_t b = c.int_attr("blocksize", 1);
  const Shape& s = x.shape();
  c.check(s.size() == 4 && b > 0 && b < 1 << 20,
          "expected a tensor of rank 4 and a positive block size");
  const Dim channels = floor_divide(s[1], b * b);
  if (c.string_attr("mode", "DCR") == "CRD")
    return {ops::reshape(
        ops::transpose(ops::reshape(x, {s[0], channels, b, b, s[2], s[3]}), {0, 1, 4, 2, 5, 3}),
        {s[0], channels, s[2] * b, s[3] * b})};
  return {ops::reshape(
      ops::transpose(ops::reshape(x, {s[0], b, b, channels, s[2], s[3]}), {0, 3, 4, 1, 5, 2}),
      {s[0], channels, s[2] * b, s[3] * b})};
}

Values space_to_depth(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const int64_t b = c.int_attr("blocksize", 1);
  const Shape& s = x.shape();
  c.check(s.size() == 4 && b > 0 && b < 1 << 20,
          "expected a tensor of rank 4 and a positive block size");
  const Dim rows = floor_divide(s[2], b), columns = floor_divide(s[3], b);
  const Tensor blocks = ops::reshape(x, {s[0], s[1], rows, b, columns, b});
  if (c.string_attr("mode", "DCR") == "CRD")
    return {ops::reshape(ops::transpose(blocks, {0, 1, 3, 5, 2, 4}),
                         {s[0], s[1] * b * b, rows, columns})};
  return {ops::reshape(ops::transpose(blocks, {0, 3, 5, 1, 2, 4}),
                       {s[0], s[1] * b * b, rows, columns})};
}

}  // namespace

OperatorTable shape_operators() {
  static constexpr Operator operators[] = {
      {"Shape", 1, shape_of},
      {"Size", 1, size_of},
      {"Reshape", 1, reshape},
      {"Flatten", 1, flatten},
      {"Squeeze", 1, squeeze},
      {"Unsqueeze", 1, unsqueeze},
      {"Transpose", 1, transpose},
      {"Expand", 1, expand},
      {"Tile", 1, tile},
      {"DepthToSpace", 1, depth_to_space},
      {"SpaceToDepth", 1, space_to_depth},
  };
  return operators;
}

}  // namespace paddle::onnx
