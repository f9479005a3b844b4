#include "ir/replay.h"

#include <optional>
#include <unordered_set>

#include "ir/tracer.h"
#include "ops/core/call.h"

namespace paddle::ir {
namespace {

Tensor lookup(ValueMap& values, const Value* value) {
  if (!value) return {};
  if (const auto it = values.find(value); it != values.end()) return it->second;
  ensure(value->constant.has_value(), "replay: value %", value->id, " is not defined");
  return values[value] = Tensor(*value->constant);
}

/// Run-time dims of replayed operations: new ones, or the same ones if the copy replaces the
/// original, since attributes and constraints refer to them.
enum class RunTimeSizes : uint8_t { kNew, kSame };

Tensors replay_region(const Region& region, ValueMap& values, RunTimeSizes sizes);

Tensors replay_operation(const Operation& operation, ValueMap& values, RunTimeSizes sizes) {
  Tensors operands;
  for (const Value* v : operation.operands) operands.push_back(lookup(values, v));
  const LocationScope location(operation.location);
  if (!operation.op->has(kControlFlow)) {
    Inferred inferred = infer_results(*operation.op, operation.attrs, operands);
    if (sizes == RunTimeSizes::kSame && operation.op->has(kRunTimeShape))
      for (size_t i = 0; i < inferred.results.size(); ++i)
        inferred.results[i].shape = operation.results[i]->type.shape;
    return current_interpreter().apply(
        {*operation.op, operands, operation.attrs, inferred.results, inferred.constraints});
  }
  const auto nested = [&](size_t i) {
    return [&values, sizes, &region = *operation.regions[i]](const Tensors& arguments) {
      ValueMap inner = values;
      for (size_t a = 0; a < arguments.size(); ++a) inner[region.arguments[a]] = arguments[a];
      return replay_region(region, inner, sizes);
    };
  };
  if (operation.regions.size() == 1) return nested(0)(operands);
  if (is_loop(operation))
    return current_interpreter().loop(nested(0), nested(1), operands, operation.attrs[0].as_int());
  return current_interpreter().branch(operands[0], nested(0), nested(1));
}

/// The number of values of the trace that holds one of the operands; 0 without a trace.
int traced_count(const Operation& operation, const ValueMap& values) {
  for (const Value* v : operation.operands) {
    const auto it = values.find(v);
    if (it == values.end() || !it->second.defined()) continue;
    if (const Function* function = traced_function(it->second)) return function->value_count();
  }
  return 0;
}

/// Notes the name and placement of the original at what took its place. `first`: the number of the
/// first value that was traced for it. A pass may compute a value in another layout and give a view
/// of it; then the computed value has the name, too, since nothing may read the view.
void annotate_traced(const Tensor& result, const Value& original, int first) {
  if (original.name.empty() && original.placement.empty()) return;
  Value* to = result.defined() ? traced_value(result) : nullptr;
  while (to && to->producer) {
    annotate(*to, original);
    const bool is_view = to->producer->op->def->view && to->producer->operands[0];
    to = is_view && to->producer->operands[0]->id >= first && first > 0 ? to->producer->operands[0]
                                                                        : nullptr;
  }
}

/// The same, and keeps the results.
Tensors replay_and_keep(const Operation& operation, ValueMap& values, RunTimeSizes sizes) {
  const int first = traced_count(operation, values);
  Tensors results = replay_operation(operation, values, sizes);
  ensure(results.size() == operation.results.size(), "replay: result count of ",
         operation.op->name());
  for (size_t i = 0; i < results.size(); ++i) {
    annotate_traced(results[i], *operation.results[i], first);
    values[operation.results[i]] = results[i];
  }
  return results;
}

Tensors replay_region(const Region& region, ValueMap& values, RunTimeSizes sizes) {
  for (const auto& operation : region.operations) replay_and_keep(*operation, values, sizes);
  Tensors out;
  for (const Value* v : region.results) out.push_back(lookup(values, v));
  return out;
}

Tensors replay_function(const Function& function, const Tensors& inputs, RunTimeSizes sizes) {
  ensure(inputs.size() == function.inputs.size(), "replay: ", function.name, " takes ",
         function.inputs.size(), " inputs");
  ValueMap values;
  for (size_t i = 0; i < inputs.size(); ++i) values[function.body.arguments[i]] = inputs[i];
  return replay_region(function.body, values, sizes);
}

}  // namespace

Tensors replay(const Region& region, ValueMap& values) {
  return replay_region(region, values, RunTimeSizes::kNew);
}

Tensors replay(const Operation& operation, ValueMap& values) {
  return replay_and_keep(operation, values, RunTimeSizes::kNew);
}

Tensors replay(const Function& function, const Tensors& inputs) {
  return replay_function(function, inputs, RunTimeSizes::kNew);
}

namespace {

/// `interpreter`: null for none above the tracer.
std::unique_ptr<Function> retraced_under(const Function& function, Interpreter* interpreter) {
  auto fresh = std::make_unique<Function>(function.name, function.target);
  Tracer tracer(*fresh);
  const InterpreterScope below(tracer);
  std::optional<InterpreterScope> above;
  if (interpreter) above.emplace(*interpreter);
  Tensors inputs;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    inputs.push_back(tracer.input(function.inputs[i], function.body.arguments[i]->type));
    annotate(*traced_value(inputs.back()), *function.body.arguments[i]);
  }
  const Tensors results = replay_function(function, inputs, RunTimeSizes::kSame);
  for (size_t i = 0; i < results.size(); ++i) tracer.output(function.outputs[i], results[i]);
  return fresh;
}

void retrace_under(Function& function, Interpreter* interpreter) {
  const auto fresh = retraced_under(function, interpreter);
  fresh->constraints = std::move(function.constraints);
  function.swap(*fresh);
}

}  // namespace

std::unique_ptr<Function> retraced(const Function& function, Interpreter& interpreter) {
  return retraced_under(function, &interpreter);
}

void retrace(Function& function, Interpreter& interpreter) {
  retrace_under(function, &interpreter);
}
void retrace(Function& function) { retrace_under(function, nullptr); }

std::vector<Value*> captures(const Region& region) {
  std::unordered_set<const Value*> defined, seen;
  std::vector<Value*> out;
  const auto use = [&](Value* v) {
    if (v && !v->constant && !defined.count(v) && seen.insert(v).second) out.push_back(v);
  };
  const auto walk = [&](const auto& self, const Region& r) -> void {
    for (Value* v : r.arguments) defined.insert(v);
    for (const auto& operation : r.operations) {
      for (Value* v : operation->operands) use(v);
      for (const auto& nested : operation->regions) self(self, *nested);
      for (Value* v : operation->results) defined.insert(v);
    }
    for (Value* v : r.results) use(v);
  };
  walk(walk, region);
  return out;
}

}  // namespace paddle::ir
