#include "paddle_program/program_sizes.h"

#include <algorithm>
#include <map>

namespace paddle::paddle_program {
namespace {

using Sizes = std::optional<Shape>;

std::optional<Dim> floored(const Dim& a, const Dim& b) {
  if (!b.is_constant() || b.value() <= 0) return std::nullopt;
  return floor_divide(a, b);
}

using Combine = std::optional<Dim> (*)(const Dim&, const Dim&);

Combine combination(std::string_view target) {
  static const std::map<std::string_view, Combine> kAll = {
      {"add", [](const Dim& a, const Dim& b) -> std::optional<Dim> { return a + b; }},
      {"subtract", [](const Dim& a, const Dim& b) -> std::optional<Dim> { return a - b; }},
      {"multiply", [](const Dim& a, const Dim& b) -> std::optional<Dim> { return a * b; }},
      {"maximum", [](const Dim& a, const Dim& b) -> std::optional<Dim> { return maximum(a, b); }},
      {"minimum", [](const Dim& a, const Dim& b) -> std::optional<Dim> { return minimum(a, b); }},
      {"floor_divide", floored}};
  const auto found = kAll.find(target);
  return found == kAll.end() ? nullptr : found->second;
}

std::optional<Value> combined(const ProgramCall& c, Combine combine) {
  const Value &x = c.value("x"), &y = c.value("y");
  const Sizes a = x.dims(), b = y.dims();
  if (!a || !b || x.dtype() != y.dtype()) return std::nullopt;
  if (a->size() != b->size() && a->size() != 1 && b->size() != 1) return std::nullopt;
  Shape out;
  for (size_t i = 0; i < std::max(a->size(), b->size()); ++i) {
    const auto d = combine((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    if (!d) return std::nullopt;
    out.push_back(*d);
  }
  return Value::of_dims(out, x.is_scalar() && y.is_scalar(), x.dtype());
}

/// x * scale + bias of whole numbers.
std::optional<Value> scaled(const ProgramCall& c, const Shape& x) {
  if (c.has("bias") || (c.has("scale") && !c.value("scale").is_concrete())) return std::nullopt;
  const double scale = c.real("scale"), bias = c.real("bias");
  const auto factor = static_cast<int64_t>(scale), added = static_cast<int64_t>(bias);
  if (static_cast<double>(factor) != scale || static_cast<double>(added) != bias)
    return std::nullopt;
  Shape out;
  for (const Dim& d : x)
    out.push_back(c.flag("bias_after_scale") ? d * factor + added : (d + added) * factor);
  return Value::of_dims(out, c.value("x").is_scalar(), c.value("x").dtype());
}

std::optional<Value> sliced(const ProgramCall& c, const Shape& x) {
  for (const char* name : {"starts", "ends", "strides"})
    for (const Value& v : c.values(name))
      if (!v.is_concrete()) return std::nullopt;
  if (c.value("x").is_scalar() || c.ints("axes") != std::vector<int64_t>{0}) return std::nullopt;
  const auto start = c.ints("starts"), end = c.ints("ends");
  const auto step =
      c.rule().argument_index("strides") >= 0 ? c.ints("strides") : std::vector<int64_t>{1};
  if (start.size() != 1 || end.size() != 1 || step != std::vector<int64_t>{1}) return std::nullopt;
  const auto n = static_cast<int64_t>(x.size());
  const auto bound = [&](int64_t at) { return std::clamp(at < 0 ? at + n : at, int64_t{0}, n); };
  Shape out;
  for (int64_t i = bound(start[0]); i < bound(end[0]); ++i)
    out.push_back(x[static_cast<size_t>(i)]);
  const bool drops = !c.ints("@decrease").empty();
  if (drops && out.size() != 1) return std::nullopt;
  return Value::of_dims(out, drops, c.value("x").dtype());
}

/// Joined along the first axis; `new_axis` for scalars.
std::optional<Value> joined(const ProgramCall& c, bool new_axis) {
  Shape out;
  const Values parts = c.values("x");
  for (const Value& v : parts) {
    const Sizes part = v.dims();
    if (!part || v.is_scalar() != new_axis || v.dtype() != parts[0].dtype()) return std::nullopt;
    out.insert(out.end(), part->begin(), part->end());
  }
  if (parts.empty() || out.size() > 64) return std::nullopt;
  return Value::of_dims(out, false, parts[0].dtype());
}

bool is_first_axis(const ProgramCall& c) {
  for (const Value& v : c.values("axis"))
    if (!v.is_concrete()) return false;
  const auto axis = c.ints("axis");
  return axis.size() == 1 && (axis[0] == 0 || axis[0] == -1);
}

}  // namespace

std::optional<Value> known_sizes(const ProgramCall& c) {
  const std::string& target = c.rule().target;
  // If everything is constant, the operation folds it.
  bool symbolic = false;
  for (size_t i = 0; i < c.node().input_count(); ++i)
    symbolic = symbolic || (c.node().has_input(i) && c.node().value(i).is_tensor() &&
                            !c.node().value(i).is_concrete());
  if (!symbolic || !c.has("x")) return std::nullopt;
  if (target == "concat" && is_first_axis(c)) return joined(c, false);
  if (target == "stack" && is_first_axis(c)) return joined(c, true);
  if (!c.value("x").is_tensor()) return std::nullopt;
  if (const Combine combine = combination(target)) return combined(c, combine);
  const Sizes x = c.value("x").dims();
  if (!x) return std::nullopt;
  const DType dtype = c.value("x").dtype();
  if (target == "assign") return c.value("x");
  if (target == "scale") return scaled(c, *x);
  if (target == "slice" || target == "strided_slice") return sliced(c, *x);
  if (target == "cast") {
    const auto to = c.dtype("dtype");
    if (to != DType::kI64 && to != DType::kI32) return std::nullopt;
    return Value::of_dims(*x, c.value("x").is_scalar(), *to);
  }
  if (target == "unsqueeze" && c.value("x").is_scalar() && is_first_axis(c))
    return Value::of_dims(*x, false, dtype);
  if (target == "squeeze" && x->size() == 1) return Value::of_dims(*x, true, dtype);
  if (target == "reshape" && x->size() == 1) {
    for (const Value& v : c.values("shape"))
      if (!v.is_concrete()) return std::nullopt;
    if (const auto to = c.ints("shape"); to.size() <= 1)
      return Value::of_dims(*x, to.empty(), dtype);
  }
  if (target == "prod" && !c.has("axis")) {
    Dim all = 1;
    for (const Dim& d : *x) all = all * d;
    return Value::of_dims({all}, true, dtype);
  }
  return std::nullopt;
}

}  // namespace paddle::paddle_program
