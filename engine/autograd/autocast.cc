#include "autograd/autocast.h"

#include <algorithm>
#include <utility>

#include "autograd/precision_override.h"
#include "base/source_location.h"
#include "base/text.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/kernel.h"
#include "ops/generated/math.h"

namespace paddle::autograd {
namespace {

bool is_half(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

/// Operations that only move or convert values: they keep the type that these have.
bool moves_only(const Op& op) { return op.def->view || op.has(kSameElements); }

/// Sets a variable for a scope.
template <class T>
class Within {
 public:
  Within(T& variable, T value) : variable_(variable), before_(std::exchange(variable, value)) {}
  ~Within() { variable_ = before_; }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  T& variable_;
  T before_;
};

}  // namespace

/// Whether the operation that is being traced belongs to a layer, or to an inner layer of one, that
/// a pattern of full_layers names.
bool Autocast::is_in_full_layer() {
  if (options_.full_layers.empty()) return false;
  const std::string& origin = ir::LocationScope::current();
  if (origin == origin_) return origin_is_full_;
  origin_ = origin;
  origin_is_full_ = false;
  const std::string layer = parse_origin(origin).layer;
  for (size_t end = layer.find('.'); !layer.empty(); end = layer.find('.', end + 1)) {
    const std::string path = layer.substr(0, end);
    for (const std::string& pattern : options_.full_layers) {
      if (!matches_pattern(pattern, path)) continue;
      origin_is_full_ = true;
      if (options_.matched_layers) options_.matched_layers->insert(pattern);
    }
    if (end == std::string::npos) break;
  }
  return origin_is_full_;
}

PrecisionClass Autocast::class_of(const Op& op) {
  if (is_in_full_layer()) return PrecisionClass::kFull;
  if (options_.custom_full.contains(&op)) return PrecisionClass::kFull;
  if (options_.custom_low.contains(&op)) return PrecisionClass::kLow;
  return overridden_precision(op).value_or(op.def->precision);
}

/// Calls the decomposition of an operation. With `widening`, intermediate values stay in float32.
Tensors Autocast::decomposed(const OpCall& c, bool widening) {
  const Within outer(outer_, promoted_.size());
  if (!widening) return decompose(c);
  std::vector<TensorType> results = c.results;
  for (TensorType& type : results)
    if (is_half(type.dtype)) type.dtype = DType::kF32;
  const Within inside(in_widening_, true);
  return decompose({c.op, c.operands, c.attrs, results, c.constraints});
}

/// x in the 16-bit type; the operand before promotion if x was promoted from that type.
Tensor Autocast::lowered(const Tensor& x) const {
  for (const auto& [before, after] : promoted_)
    if (after.is_same_cell(x)) return before;
  return ops::cast(x, options_.low);
}

Tensors Autocast::apply(const OpCall& c) {
  static const Op& cast = get_op("cast");
  if (&c.op == &cast) {
    const ScopedInterpreter below(next());
    Tensors results = next().apply(c);
    if (c.operands[0].dtype() == options_.low && results[0].dtype() == DType::kF32)
      promoted_.emplace_back(c.operands[0], results[0]);
    return results;
  }
  Tensors results = cast_and_call(c);
  promoted_.resize(outer_);
  return results;
}

Tensors Autocast::branch(const Tensor& condition, const TensorFn& then_fn,
                         const TensorFn& else_fn) {
  const auto full = [this](const TensorFn& fn) -> TensorFn {
    return [this, fn](const Tensors& inputs) {
      Tensors results = fn(inputs);
      for (Tensor& t : results)
        if (t.defined() && t.dtype() == options_.low) t = ops::cast(t, DType::kF32);
      return results;
    };
  };
  return ForwardingInterpreter::branch(condition, full(then_fn), full(else_fn));
}

Tensors Autocast::loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
                       int64_t max_steps) {
  std::vector<DType> types;
  for (const Tensor& t : carried) types.push_back(t.dtype());
  const TensorFn keep_types = [body, types](const Tensors& inputs) {
    Tensors results = body(inputs);
    for (size_t i = 0; i < std::min(results.size(), types.size()); ++i)
      if (is_float(types[i]) && is_float(results[i].dtype()) && results[i].dtype() != types[i])
        results[i] = ops::cast(results[i], types[i]);
    return results;
  };
  return ForwardingInterpreter::loop(condition, keep_types, carried, max_steps);
}

Tensors Autocast::cast_and_call(const OpCall& c) {
  const PrecisionClass precision = class_of(c.op);
  // Decomposed operations are cast at the operations they consist of, unless the whole operation is
  // full precision or overridden by the user.
  if (is_decomposed(c, {.device = next().device()})) {
    const bool whole = precision == PrecisionClass::kFull || options_.custom_low.contains(&c.op);
    if (!whole) return decomposed(c, precision == PrecisionClass::kWidening);
  }
  const bool lowers = options_.all_low && !in_widening_;
  const auto wanted = [&](size_t operand, DType dtype) {
    const bool low = precision == PrecisionClass::kLow ||
                     (precision == PrecisionClass::kFollow && lowers && !moves_only(c.op)) ||
                     (precision == PrecisionClass::kFirst && lowers && operand == 0);
    const bool full =
        precision == PrecisionClass::kFull || (precision == PrecisionClass::kFirst && operand > 0);
    if (full && (is_half(dtype) || dtype == DType::kF32) && on_full_precision_)
      on_full_precision_(c.operands[operand]);
    if (low && dtype == DType::kF32) return options_.low;
    if (full && is_half(dtype)) return DType::kF32;
    return dtype;
  };
  Tensors operands = c.operands;
  bool changed = false;
  const ScopedInterpreter below(next());
  for (size_t i = 0; i < operands.size(); ++i) {
    Tensor& t = operands[i];
    if (!t.defined() || t.type().weak) continue;
    const DType dtype = wanted(i, t.dtype());
    if (dtype == t.dtype()) continue;
    t = dtype == options_.low ? lowered(t) : ops::cast(t, dtype);
    changed = true;
  }
  return changed ? paddle::call(c.op, std::move(operands), c.attrs) : next().apply(c);
}

}  // namespace paddle::autograd
