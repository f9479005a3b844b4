#include <algorithm>
#include <map>
#include <set>

#include "autograd/history.h"
#include "base/source_location.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/math.h"

namespace paddle::autograd {
namespace {

using Key = History::Key;

/// Gradients for the operands of one call.
Tensors call_vjp(History& history, const RecordedCall& call, const Tensors& cotangents,
                 const std::vector<bool>& needed) {
  const Op& op = *call.op;
  if (call.vjp) {
    Tensors out = (*call.vjp)(cotangents, needed);
    out.resize(call.operands.size());
    return out;
  }
  if (op.has(kControlFlow)) return control_flow_vjp(call, cotangents, needed);
  if (op.def->vjp) {
    VjpContext context(op, *call.attrs, call.operands, call.results, cotangents, needed);
    Tensors out = op.def->vjp(context);
    out.resize(call.operands.size());
    return out;
  }
  if (op.has(kStopGradient)) return Tensors(call.operands.size());
  if (!op.def->decompose || *op.def->no_gradient)
    fail(ErrorCode::kUsage, op.name(), ": has no gradient", *op.def->no_gradient ? ": " : "",
         op.def->no_gradient);
  // Through the decomposition: compute it again from the operands, and go back through that. One
  // operand may depend on another one; new values for them stop the way back at the operands, since
  // the caller continues from there.
  Tensors operands = call.operands;
  if (std::count(needed.begin(), needed.end(), true) > 1)
    for (size_t i = 0; i < needed.size(); ++i)
      if (needed[i]) operands[i] = ops::assign(operands[i]);
  const Inferred inferred = infer_results(op, *call.attrs, operands);
  const Tensors again =
      decompose({op, operands, *call.attrs, inferred.results, inferred.constraints});
  Tensors inputs;
  for (size_t i = 0; i < needed.size(); ++i)
    if (needed[i]) inputs.push_back(operands[i]);
  const Tensors partial = backward(history, again, cotangents, inputs);
  Tensors out(call.operands.size());
  for (size_t i = 0, p = 0; i < needed.size(); ++i)
    if (needed[i]) out[i] = partial[p++];
  return out;
}

/// Calls `f` at the source location of the call: the operations of its gradient are traced with
/// that location, and errors without one get it.
template <class F>
void at_location_of(const RecordedCall& call, F&& f) {
  if (call.location.empty()) return f();
  Origin origin = parse_origin(call.location);
  origin.gradient = true;
  const ir::LocationScope scope(text(origin));
  try {
    f();
  } catch (const Error& e) {
    if (!e.location().file.empty()) throw;
    Error located(e.code(), e.message(), parse_source_location(call.location));
    for (const std::string& note : e.notes()) located.note(note);
    throw located;
  }
}

/// The part of the computation between inputs and outputs.
class Subgraph {
 public:
  Subgraph(History& history, const Tensors& outputs, const std::set<Key>& wanted)
      : wanted_(wanted) {
    std::vector<Key> stack;
    for (const Tensor& t : outputs)
      if (t.defined()) stack.push_back(history.key(t));
    while (!stack.empty()) {
      const Key key = stack.back();
      stack.pop_back();
      if (!key.node || key.leaf) continue;
      auto [it, inserted] = calls_.try_emplace(key.node);
      if (!inserted) continue;
      it->second = history.call(key);
      order_.push_back({history.sequence(key), key.node});
      if (stops(key.node)) continue;
      for (const Tensor& t : it->second.operands)
        if (t.defined()) stack.push_back(history.key(t));
    }
    std::sort(order_.begin(), order_.end());
    for (const auto& [sequence, node] : order_) {
      if (stops(node)) continue;
      const Tensors& operands = calls_.at(node).operands;
      if (std::any_of(operands.begin(), operands.end(), [&](const Tensor& t) {
            return t.defined() && leads_to_input(history.key(t));
          }))
        relevant_.insert(node);
    }
  }

  bool leads_to_input(const Key& key) const {
    return key.node && (wanted_.count(key) || relevant_.count(key.node));
  }
  bool is_relevant(const void* node) const { return relevant_.count(node) > 0; }
  const RecordedCall& call(const void* node) const { return calls_.at(node); }
  const std::vector<std::pair<int64_t, const void*>>& order() const { return order_; }

 private:
  /// No gradient flows through this call, so what is before it has no part.
  bool stops(const void* node) const { return calls_.at(node).op->has(kStopGradient); }

  const std::set<Key>& wanted_;
  std::map<const void*, RecordedCall> calls_;
  std::vector<std::pair<int64_t, const void*>> order_;
  std::set<const void*> relevant_;
};

}  // namespace

Tensors backward(History& history, const Tensors& outputs, const Tensors& cotangents,
                 const Tensors& inputs) {
  std::set<Key> wanted;
  for (const Tensor& t : inputs) wanted.insert(history.key(t));
  const Subgraph graph(history, outputs, wanted);

  std::map<Key, Tensor> gradient;
  const auto accumulate = [&](const Key& key, const Tensor& value) {
    auto [it, inserted] = gradient.try_emplace(key, value);
    if (!inserted) it->second = it->second + value;
  };
  std::set<Key> hooked;
  const auto hook = [&](const Key& key, Tensor& value) {
    if (!hooked.insert(key).second) return;
    for (const GradientHook& each : history.hooks(key))
      if (Tensor next = each(value); next.defined()) value = std::move(next);
  };
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].defined() && cotangents[i].defined()) {
      const Key key = history.key(outputs[i]);
      if (graph.leads_to_input(key)) accumulate(key, cotangents[i]);
    }

  for (auto it = graph.order().rbegin(); it != graph.order().rend(); ++it) {
    const void* node = it->second;
    if (!graph.is_relevant(node)) continue;
    const RecordedCall& call = graph.call(node);
    Tensors received(call.results.size());
    bool any = false;
    for (size_t i = 0; i < received.size(); ++i) {
      const Key key = history.key(call.results[i]);
      const auto found = gradient.find(key);
      if (found == gradient.end()) continue;
      hook(key, found->second);
      received[i] = found->second;
      any = true;
    }
    if (!any) continue;
    std::vector<bool> needed(call.operands.size());
    for (size_t i = 0; i < needed.size(); ++i) {
      const Tensor& t = call.operands[i];
      needed[i] =
          t.defined() && is_differentiable(t.dtype()) && graph.leads_to_input(history.key(t));
    }
    at_location_of(call, [&] {
      const Tensors partial = call_vjp(history, call, received, needed);
      for (size_t i = 0; i < needed.size(); ++i)
        if (needed[i] && partial[i].defined())
          accumulate(history.key(call.operands[i]), partial[i]);
    });
  }

  Tensors out;
  for (const Tensor& t : inputs) {
    const Key key = history.key(t);
    const auto found = gradient.find(key);
    if (found != gradient.end()) hook(key, found->second);
    out.push_back(found == gradient.end() ? Tensor() : found->second);
  }
  return out;
}

}  // namespace paddle::autograd
