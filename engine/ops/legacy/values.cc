// Rules of values.yaml.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/core/compose.h"
#include "ops/generated/legacy.h"
#include "ops/generated/legacy_rules.h"
#include "ops/generated/math.h"
#include "ops/generated/random.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

/// A list of numbers as a tensor; integers stay exact.
Tensor tensor_of_list(std::string_view op, const AttrValue& values,
                      const std::vector<int64_t>& shape, DType dtype) {
  if (!values.is_list()) reject(op, "values must be a list of numbers, not ", values);
  const AttrValue::List& list = values.as_list();
  const auto count = static_cast<int64_t>(list.size());
  int64_t expected = 1;
  for (const int64_t size : shape) {
    if (size < 0) reject(op, "shape ", AttrValue(shape), " has a negative size");
    expected = size != 0 && expected > count / size ? count + 1 : expected * size;
  }
  if (expected != count)
    reject(op, "shape ", AttrValue(shape), " does not hold the ", count, " values");
  const bool whole =
      std::all_of(list.begin(), list.end(), [](const AttrValue& v) { return v.is_int(); });
  std::vector<double> numbers;
  if (!whole)
    for (const AttrValue& v : list) numbers.push_back(v.is_bool() ? v.as_bool() : v.as_double());
  const Tensor flat_list(whole ? Array::from(values.as_ints(), {count})
                               : Array::from(numbers, {count}));
  Shape sizes(shape.begin(), shape.end());
  return ops::reshape(ops::cast(flat_list, dtype), sizes);
}

/// The shapes that a value takes in place of a part of a tensor.
struct ReplacedPart {
  Shape shape;   ///< of the part
  Shape viewed;  ///< without the axes that indices took, with those that None added

  ReplacedPart(std::string_view op, const SetValueAttrs& a, const Tensor& taken)
      : shape(taken.shape()) {
    const int64_t rank = taken.ndim();
    std::vector<bool> dropped(shape.size(), false);
    for (const int64_t axis : a.decrease_axes) {
      const int64_t own = axis_of(op, axis, rank);
      if (!is_one(taken.dim(own)))
        reject(op, "decrease_axes: the part ", text(shape), " has more than one element in axis ",
               axis);
      dropped[static_cast<size_t>(own)] = true;
    }
    Axes added = a.none_axes;
    std::sort(added.begin(), added.end());
    if (!added.empty() && (added[0] < 0 || added.back() > rank))
      reject(op, "none_axes must be from 0 to ", rank, ", found ", AttrValue(added));
    size_t next = 0;
    for (int64_t axis = 0; axis <= rank; ++axis) {
      for (; next < added.size() && added[next] <= axis; ++next) viewed.push_back(Dim(1));
      if (axis < rank && !dropped[static_cast<size_t>(axis)]) viewed.push_back(taken.dim(axis));
    }
  }
};

double lower_chance(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

}  // namespace

Tensors decompose_assign_value(CallContext& c) {
  const auto a = c.attrs_as<AssignValueAttrs>();
  return {tensor_of_list("assign_value", a.values, a.shape, a.dtype)};
}

Tensors decompose_set_value(CallContext& c) {
  const auto a = c.attrs_as<SetValueAttrs>();
  constexpr const char* kName = "set_value";
  const Tensor& x = c.operand(0);
  const size_t count = a.axes.size();
  const std::vector<int64_t> steps = a.steps.empty() ? Axes(count, 1) : a.steps;
  if (a.starts.size() != count || a.ends.size() != count || steps.size() != count)
    reject(kName, "starts, ends and steps must have a number for each of the ", count, " axes");
  const bool has_list = !(a.values.is_list() && a.values.as_list().empty());
  if (c.has(1) == has_list) reject(kName, "one of value and values must be given");
  const Tensor value = has_list ? tensor_of_list(kName, a.values, a.shape, x.dtype())
                                : ops::cast(c.operand(1), x.dtype());
  const Shape starts(a.starts.begin(), a.starts.end()), ends(a.ends.begin(), a.ends.end());
  const ReplacedPart part(kName, a, ops::strided_slice(x, a.axes, starts, ends, steps));
  if (value.ndim() > static_cast<int64_t>(part.viewed.size()))
    reject(kName, "value ", value.type(), " does not broadcast to ", text(part.viewed));
  const Tensor whole = ops::reshape(ops::expand(value, part.viewed), part.shape);
  return {ops::strided_slice_scatter(x, whole, a.axes, starts, ends, steps)};
}

Tensors decompose_truncated_gaussian_random(CallContext& c) {
  const auto a = c.attrs_as<TruncatedGaussianRandomAttrs>();
  constexpr const char* kName = "truncated_gaussian_random";
  if (!(a.std > 0)) reject(kName, "std must be positive, not ", a.std);
  if (!(a.a < a.b)) reject(kName, "a must be below b, found ", a.a, " and ", a.b);
  const DType dtype = a.dtype.value_or(DType::kF32);
  if (!is_float(dtype)) reject(kName, "dtype must be floating, not ", text(dtype));
  const double low = lower_chance((a.a - a.mean) / a.std),
               high = lower_chance((a.b - a.mean) / a.std);
  if (!(low < high))
    reject(kName, "normal numbers are never from ", a.a, " to ", a.b, " with mean ", a.mean,
           " and std ", a.std);
  // In float64, as the inverse of the distribution is steep at its ends.
  const Tensor chance = ops::uniform(a.shape, DType::kF64, low, high, a.seed);
  const Tensor unit = ops::erfinv(chance * 2.0 - 1.0) * (std::numbers::sqrt2 * a.std);
  return {ops::cast(ops::clip(unit + a.mean, AttrValue(a.a), AttrValue(a.b)), dtype)};
}

}  // namespace paddle::rules
