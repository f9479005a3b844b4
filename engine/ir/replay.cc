#include "ir/replay.h"

#include <unordered_set>

#include "ir/tracer.h"
#include "ops/call.h"

namespace paddle::ir {
namespace {

Tensor lookup(ValueMap& values, const Value* value) {
  if (!value) return {};
  if (const auto it = values.find(value); it != values.end()) return it->second;
  ensure(value->constant.has_value(), "replay: value %", value->id, " is not defined");
  return values[value] = Tensor(*value->constant);
}

Tensors replay_operation(const Operation& operation, ValueMap& values) {
  Tensors operands;
  for (const Value* v : operation.operands) operands.push_back(lookup(values, v));
  const PlaceScope place(operation.place);
  if (!operation.op->has(kControlFlow)) {
    const Inferred inferred = infer(*operation.op, operation.attrs, operands);
    return current_interpreter().apply(
        {*operation.op, operands, operation.attrs, inferred.results, inferred.constraints});
  }
  const auto nested = [&](size_t i) {
    return [&values, &region = *operation.regions[i]](const Tensors& arguments) {
      ValueMap inner = values;
      for (size_t a = 0; a < arguments.size(); ++a) inner[region.arguments[a]] = arguments[a];
      return replay(region, inner);
    };
  };
  if (operation.regions.size() == 1) return nested(0)(operands);
  if (operation.regions.size() == 2 && operation.regions[0]->arguments.empty() &&
      operation.op->name() == "cf.if")
    return current_interpreter().branch(operands[0], nested(0), nested(1));
  return current_interpreter().loop(nested(0), nested(1), operands, operation.attrs[0].as_int());
}

}  // namespace

Tensors replay(const Region& region, ValueMap& values) {
  for (const auto& operation : region.operations) {
    const Tensors results = replay_operation(*operation, values);
    ensure(results.size() == operation->results.size(), "replay: result count of ",
           operation->op->name());
    for (size_t i = 0; i < results.size(); ++i) values[operation->results[i]] = results[i];
  }
  Tensors out;
  for (const Value* v : region.results) out.push_back(lookup(values, v));
  return out;
}

Tensors replay(const Function& function, const Tensors& inputs) {
  ensure(inputs.size() == function.inputs.size(), "replay: ", function.name, " takes ",
         function.inputs.size(), " inputs");
  ValueMap values;
  for (size_t i = 0; i < inputs.size(); ++i) values[function.body.arguments[i]] = inputs[i];
  return replay(function.body, values);
}

void rewrite(Function& function, Interpreter& rewriter) {
  Function fresh(function.name);
  {
    Tracer tracer(fresh);
    const InterpreterScope below(tracer), above(rewriter);
    Tensors inputs;
    for (size_t i = 0; i < function.inputs.size(); ++i)
      inputs.push_back(tracer.input(function.inputs[i], function.body.arguments[i]->type));
    const Tensors results = replay(function, inputs);
    for (size_t i = 0; i < results.size(); ++i) tracer.output(function.outputs[i], results[i]);
  }
  fresh.constraints = std::move(function.constraints);
  function.swap(fresh);
}

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
