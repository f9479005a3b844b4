#include "onnx/graph/shape_values.h"

#include <algorithm>
#include <map>

namespace paddle::onnx {
namespace {

/// Elements of a 0-D or 1-D integer input; nullopt if unknown.
using OptionalDims = std::optional<Shape>;

bool has_unknown(const Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_unknown(); });
}

std::optional<Value> shape_of(const NodeCall& c) {
  const Shape shape = c.value(0).shape();
  if (has_unknown(shape)) return std::nullopt;
  const auto rank = static_cast<int64_t>(shape.size());
  const auto bound = [&](int64_t at) {
    return std::clamp(at < 0 ? at + rank : at, int64_t{0}, rank);
  };
  const int64_t start = bound(c.int_attr("start", 0)), end = bound(c.int_attr("end", rank));
  Shape part;
  for (int64_t i = start; i < end; ++i) part.push_back(shape[static_cast<size_t>(i)]);
  return Value::of_dims(part, false);
}

std::optional<Value> size_of(const NodeCall& c) {
  const Shape shape = c.value(0).shape();
  if (has_unknown(shape)) return std::nullopt;
  return Value::of_dims({element_count(std::span<const Dim>(shape))}, true);
}

/// The dims with the dtype of input 0 and another shape.
Value same_dims(const NodeCall& c, Shape dims, bool scalar) {
  return Value::of_dims(std::move(dims), scalar, c.value(0).dtype());
}

std::optional<Value> gather(const NodeCall& c, const Shape& x) {
  if (c.int_attr("axis", 0) != 0 || c.value(0).is_scalar() || !c.value(1).is_concrete())
    return std::nullopt;
  const OptionalDims index = c.value(1).dims();
  if (!index) return std::nullopt;
  Shape out;
  for (const Dim& i : *index) {
    const int64_t at = i.value() < 0 ? i.value() + static_cast<int64_t>(x.size()) : i.value();
    if (at < 0 || at >= static_cast<int64_t>(x.size())) return std::nullopt;
    out.push_back(x[static_cast<size_t>(at)]);
  }
  return same_dims(c, out, c.value(1).is_scalar());
}

std::optional<Value> slice(const NodeCall& c, const Shape& x) {
  std::vector<int64_t> start, end, step = {1};
  if (c.input_count() > 1) {
    for (size_t i = 1; i < c.input_count(); ++i)
      if (c.has_input(i) && !c.value(i).is_concrete()) return std::nullopt;
    start = c.constant_ints(1);
    end = c.constant_ints(2);
    if (c.has_input(4)) step = c.constant_ints(4);
  } else {
    start = c.ints_attr("starts");
    end = c.ints_attr("ends");
  }
  if (start.size() != 1 || end.size() != 1 || step.size() != 1 || step[0] == 0) return std::nullopt;
  const auto n = static_cast<int64_t>(x.size());
  const int64_t low = step[0] > 0 ? 0 : -1, high = step[0] > 0 ? n : n - 1;
  const auto bound = [&](int64_t at) { return std::clamp(at < 0 ? at + n : at, low, high); };
  Shape out;
  const int64_t last = end[0] < -n ? low : bound(end[0]);
  const int64_t first = n == 0 ? last : std::max(bound(start[0]), int64_t{0});
  for (int64_t i = first; step[0] > 0 ? i < last : i > last; i += step[0])
    out.push_back(x[static_cast<size_t>(i)]);
  return same_dims(c, out, false);
}

std::optional<Value> concat(const NodeCall& c) {
  Shape out;
  for (size_t i = 0; i < c.input_count(); ++i) {
    const OptionalDims part = c.value(i).dims();
    if (!part || c.value(i).is_scalar()) return std::nullopt;
    out.insert(out.end(), part->begin(), part->end());
  }
  return same_dims(c, out, false);
}

using Binary = std::optional<Dim> (*)(const Dim&, const Dim&);

std::optional<Value> combine(const NodeCall& c, Binary f) {
  if (c.input_count() != 2) return std::nullopt;
  const OptionalDims a = c.value(0).dims(), b = c.value(1).dims();
  if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) return std::nullopt;
  Shape out;
  for (size_t i = 0; i < std::max(a->size(), b->size()); ++i) {
    const auto d = f((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    if (!d) return std::nullopt;
    out.push_back(*d);
  }
  return same_dims(c, out, c.value(0).is_scalar() && c.value(1).is_scalar());
}

/// Exact for non-negative sizes, for which truncation equals flooring.
std::optional<Dim> quotient(const Dim& a, const Dim& b) {
  if (!b.is_constant() || b.value() <= 0 || a.less(0).value_or(true)) return std::nullopt;
  return floor_divide(a, b);
}

/// Comparisons that hold for all values of the symbols.
std::optional<Value> equal(const NodeCall& c) {
  const OptionalDims a = c.value(0).dims(), b = c.value(1).dims();
  if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) return std::nullopt;
  const bool scalar = c.value(0).is_scalar() && c.value(1).is_scalar();
  const size_t count = std::max(a->size(), b->size());
  Array out = Array::empty(DType::kBool, scalar ? Dims{} : Dims{static_cast<int64_t>(count)});
  for (size_t i = 0; i < count; ++i) {
    const auto same = (*a)[a->size() == 1 ? 0 : i].equals((*b)[b->size() == 1 ? 0 : i]);
    if (!same) return std::nullopt;
    out.data<bool>()[i] = *same;
  }
  return Value(Tensor(out));
}

std::optional<Value> where(const NodeCall& c) {
  if (!c.value(0).is_concrete() || c.value(0).kind() != Value::Kind::kTensor) return std::nullopt;
  const Array condition = c.tensor(0).array();
  const OptionalDims a = c.value(1).dims(), b = c.value(2).dims();
  if (!a || !b || condition.ndim() > 1) return std::nullopt;
  const size_t count = std::max({static_cast<size_t>(condition.size()), a->size(), b->size()});
  const auto fits = [&](size_t n) { return n == 1 || n == count; };
  if (!fits(static_cast<size_t>(condition.size())) || !fits(a->size()) || !fits(b->size()))
    return std::nullopt;
  Shape out;
  for (size_t i = 0; i < count; ++i) {
    const bool chosen = condition.integer(condition.size() == 1 ? 0 : static_cast<int64_t>(i)) != 0;
    const Shape& from = chosen ? *a : *b;
    out.push_back(from[from.size() == 1 ? 0 : i]);
  }
  const bool scalar = condition.ndim() == 0 && c.value(1).is_scalar() && c.value(2).is_scalar();
  return Value::of_dims(out, scalar, c.value(1).dtype());
}

std::optional<Value> product(const NodeCall& c, const Shape& x) {
  Dim all = 1;
  for (const Dim& d : x) all = all * d;
  return same_dims(c, {all}, !c.bool_attr("keepdims", true));
}

std::optional<Value> of_one_input(const NodeCall& c, const std::string& type, const Shape& x) {
  if (type == "Identity") return c.value(0);
  if (type == "Gather") return gather(c, x);
  if (type == "Slice") return slice(c, x);
  if (type == "Cast") {
    const DType to = c.dtype_attr("to", DType::kF32);
    if (to != DType::kI64 && to != DType::kI32) return std::nullopt;
    return Value::of_dims(x, c.value(0).is_scalar(), to);
  }
  if (type == "Unsqueeze") {
    if (!c.value(0).is_scalar()) return std::nullopt;
    return same_dims(c, x, false);
  }
  if (type == "Squeeze") {
    if (x.size() != 1) return std::nullopt;
    return same_dims(c, x, true);
  }
  if (type == "Reshape") {
    const OptionalDims to = c.value(1).dims();
    if (!to || to->size() > 1) return std::nullopt;
    return same_dims(c, x, to->empty());
  }
  if (type == "ReduceProd") return product(c, x);
  return std::nullopt;
}

}  // namespace

std::optional<Value> shape_value(const NodeCall& c) {
  if (!c.node().domain.empty()) return std::nullopt;
  const std::string& type = c.node().op_type;
  if (type == "Shape" && c.has_input(0)) return shape_of(c);
  if (type == "Size" && c.has_input(0)) return size_of(c);
  // If everything is constant, the operator's rule folds it.
  bool symbolic = false;
  for (size_t i = 0; i < c.input_count(); ++i)
    if (c.has_input(i)) symbolic = symbolic || !c.value(i).is_concrete();
  if (!symbolic || !c.has_input(0)) return std::nullopt;
  if (type == "Concat") return concat(c);
  if (type == "Equal") return equal(c);
  if (type == "Where") return where(c);
  static const std::map<std::string, Binary, std::less<>> kBinaries = {
      {"Add", [](const Dim& a, const Dim& b) -> std::optional<Dim> { return a + b; }},
      {"Sub", [](const Dim& a, const Dim& b) -> std::optional<Dim> { return a - b; }},
      {"Mul", [](const Dim& a, const Dim& b) -> std::optional<Dim> { return a * b; }},
      {"Max", [](const Dim& a, const Dim& b) -> std::optional<Dim> { return maximum(a, b); }},
      {"Min", [](const Dim& a, const Dim& b) -> std::optional<Dim> { return minimum(a, b); }},
      {"Div", quotient}};
  if (const auto it = kBinaries.find(type); it != kBinaries.end()) return combine(c, it->second);
  const OptionalDims x = c.value(0).dims();
  return x ? of_one_input(c, type, *x) : std::nullopt;
}

}  // namespace paddle::onnx
