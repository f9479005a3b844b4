#include "ir/clone.h"

namespace paddle::ir {
namespace {

Value* copied(Function& function, Value* value, Copies& copies) {
  if (!value) return nullptr;
  if (const auto it = copies.find(value); it != copies.end()) return it->second;
  if (!value->constant) return value;
  Value* const constant = function.add_constant(*value->constant);
  annotate(*constant, *value);
  return copies[value] = constant;
}

std::unique_ptr<Region> copied(Function& function, const Region& region, Copies& copies) {
  auto out = std::make_unique<Region>();
  for (const Value* argument : region.arguments) {
    copies[argument] = function.add_argument(*out, argument->type);
    annotate(*copies[argument], *argument);
  }
  for (const auto& operation : region.operations)
    clone_operation(function, *out, *operation, copies);
  for (Value* result : region.results) out->results.push_back(copied(function, result, copies));
  return out;
}

}  // namespace

Operation* clone_operation(Function& function, Region& region, const Operation& operation,
                           Copies& copies) {
  std::vector<Value*> operands;
  for (Value* v : operation.operands) operands.push_back(copied(function, v, copies));
  std::vector<TensorType> types;
  for (const Value* v : operation.results) types.push_back(v->type);
  Operation* const out =
      function.append(region, *operation.op, std::move(operands), operation.attrs, types);
  out->location = operation.location;
  for (const auto& inner : operation.regions)
    out->regions.push_back(copied(function, *inner, copies));
  for (size_t i = 0; i < types.size(); ++i) {
    annotate(*out->results[i], *operation.results[i]);
    copies[operation.results[i]] = out->results[i];
  }
  return out;
}

std::unique_ptr<Function> clone(const Function& function) {
  auto out = std::make_unique<Function>(function.name, function.target);
  Copies copies;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const Value* const argument = function.body.arguments[i];
    copies[argument] = out->add_input(function.inputs[i], argument->type);
    annotate(*copies[argument], *argument);
  }
  for (const auto& operation : function.body.operations)
    clone_operation(*out, out->body, *operation, copies);
  for (size_t i = 0; i < function.outputs.size(); ++i)
    out->add_output(function.outputs[i], copied(*out, function.body.results[i], copies));
  out->constraints = function.constraints;
  return out;
}

}  // namespace paddle::ir
