#include "ir/module.h"

namespace paddle::ir {

void annotate(Value& to, const Value& from) {
  if (to.name.empty()) to.name = from.name;
  if (to.placement.empty() && same_type(to.type, from.type)) to.placement = from.placement;
}

std::string text(SlotScope scope) {
  return scope == SlotScope::kSequence   ? "sequence"
         : scope == SlotScope::kTraining ? "training"
                                         : "model";
}

std::string text(const Placement& placement) {
  std::string out;
  for (const Split& s : placement)
    out += str(out.empty() ? "split[" : "; ", s.dim, ": ", s.outer, "x", s.units, " over ", s.axis,
               s.order == SplitOrder::kZigzag ? " zigzag" : "");
  return out.empty() ? out : out + "]";
}

Value* Function::new_value(TensorType type) {
  Value& value = values_.emplace_back();
  value.type = std::move(type);
  value.id = static_cast<int>(values_.size()) - 1;
  return &value;
}

Value* Function::add_argument(Region& region, TensorType type) {
  Value* value = new_value(std::move(type));
  value->index = region.arguments.size();
  region.arguments.push_back(value);
  return value;
}

Value* Function::add_input(Port port, TensorType type) {
  inputs.push_back(std::move(port));
  return add_argument(body, std::move(type));
}

Value* Function::add_constant(Array array) {
  Value* value = new_value({array.dtype, to_shape(array.shape)});
  value->constant = array.contiguous();
  return value;
}

void Function::bind_input(size_t input, Array array) {
  const auto at = static_cast<ptrdiff_t>(input);
  if (body.arguments[input]->name.empty()) body.arguments[input]->name = inputs[input].name;
  body.arguments[input]->constant = array.contiguous();
  body.arguments.erase(body.arguments.begin() + at);
  inputs.erase(inputs.begin() + at);
  for (size_t i = 0; i < body.arguments.size(); ++i) body.arguments[i]->index = i;
}

Operation* Function::append(Region& region, const Op& op, std::vector<Value*> operands, Attrs attrs,
                            const std::vector<TensorType>& types) {
  auto operation = std::make_unique<Operation>();
  operation->op = &op;
  operation->operands = std::move(operands);
  operation->attrs = std::move(attrs);
  operation->sequence = next_sequence_++;
  for (size_t i = 0; i < types.size(); ++i) {
    Value* value = new_value(types[i]);
    value->producer = operation.get();
    value->index = i;
    operation->results.push_back(value);
  }
  region.operations.push_back(std::move(operation));
  return region.operations.back().get();
}

void Function::add_output(Port port, Value* value) {
  outputs.push_back(std::move(port));
  body.results.push_back(value);
}

void Function::swap(Function& other) {
  std::swap(name, other.name);
  std::swap(body, other.body);
  std::swap(inputs, other.inputs);
  std::swap(outputs, other.outputs);
  std::swap(constraints, other.constraints);
  std::swap(target, other.target);
  std::swap(values_, other.values_);
  std::swap(next_sequence_, other.next_sequence_);
}

int64_t Function::operation_count() const {
  int64_t count = 0;
  for_each_operation(body, [&](const Operation&) { ++count; });
  return count;
}

std::unordered_map<const Value*, int> count_uses(const Function& function) {
  std::unordered_map<const Value*, int> uses;
  const auto count = [&](const Value* v) { ++uses[v]; };
  for (const auto& o : function.body.operations) for_each_read(*o, count);
  for (const Value* v : function.body.results) count(v);
  return uses;
}

bool is_loop(const Operation& operation) {
  static const Op& op = get_op("cf.while");
  return operation.op == &op;
}

}  // namespace paddle::ir
