#include "ir/tracer.h"

#include "ops/core/call.h"
#include "ops/core/kernel.h"

namespace paddle::ir {
namespace {

constexpr int64_t kMaxOperations = 1'000'000;

thread_local LocationScope* current_location = nullptr;

}  // namespace

LocationScope::LocationScope(std::string location)
    : location_(std::move(location)), previous_(current_location) {
  current_location = this;
}

LocationScope::~LocationScope() { current_location = previous_; }

const std::string& LocationScope::current() {
  static const std::string kNone;
  return current_location ? current_location->location_ : kNone;
}

Value* traced_value(const Tensor& tensor) {
  const auto* content = dynamic_cast<const TracedValue*>(tensor.content().get());
  return content ? content->value : nullptr;
}

void name_traced(const Tensor& tensor, const std::string& name) {
  Value* const value = traced_value(tensor);
  if (value && value->producer && value->name.empty()) value->name = name;
}

Function* traced_function(const Tensor& tensor) {
  const auto* content = dynamic_cast<const TracedValue*>(tensor.content().get());
  return content ? content->function : nullptr;
}

Tracer::Tracer(Function& function) : function_(function), region_(&function.body) {}

Tensor Tracer::tensor_of(Value* value) const {
  auto content = std::make_shared<TracedValue>();
  content->value = value;
  content->function = &function_;
  return Tensor(value->type, std::move(content));
}

Value* Tracer::value_of(const Tensor& tensor) {
  if (const auto* content = dynamic_cast<const TracedValue*>(tensor.content().get())) {
    ensure(content->function == &function_, "a value of another trace is used");
    return content->value;
  }
  const std::shared_ptr<const Content> held = tensor.content();
  auto [it, inserted] = constants_.try_emplace(held.get(), held, nullptr);
  if (inserted) it->second.second = function_.add_constant(tensor.array());
  return it->second.second;
}

Tensor Tracer::input(Port port, TensorType type) {
  return tensor_of(function_.add_input(std::move(port), std::move(type)));
}

void Tracer::output(Port port, const Tensor& tensor) {
  function_.add_output(std::move(port), value_of(tensor));
}

Tensors Tracer::apply(const OpCall& call) {
  // Operations of plug-ins stay whole, so that a saved model says which plug-ins it was made with;
  // but for losses, whose bodies say how the loss of a batch is made of those of its samples.
  const OpDef& def = *call.op.def;
  const bool stays = def.provider && std::string_view(def.family) != "loss";
  if (!stays && is_decomposed(call, function_.target)) return decompose(call);
  if (function_.value_count() > kMaxOperations)
    fail(ErrorCode::kConfig, "the program has more than a million operations");
  std::vector<Value*> operands;
  operands.reserve(call.operands.size());
  for (const Tensor& t : call.operands) operands.push_back(t.defined() ? value_of(t) : nullptr);
  Operation* operation =
      function_.append(*region_, call.op, std::move(operands), call.attrs, call.results);
  operation->location = LocationScope::current();
  function_.constraints.insert(function_.constraints.end(), call.constraints.begin(),
                               call.constraints.end());
  Tensors results;
  for (Value* value : operation->results) results.push_back(tensor_of(value));
  return results;
}

std::unique_ptr<Region> Tracer::region(const TensorFn& fn, const std::vector<TensorType>& types) {
  auto region = std::make_unique<Region>();
  Tensors arguments;
  for (const TensorType& t : types)
    arguments.push_back(tensor_of(function_.add_argument(*region, t)));
  Region* outer = region_;
  region_ = region.get();
  try {
    for (const Tensor& t : fn(arguments)) region->results.push_back(value_of(t));
  } catch (...) {
    region_ = outer;
    throw;
  }
  region_ = outer;
  return region;
}

namespace {

/// The type of a value that comes from either of two branches.
TensorType join(const TensorType& a, const TensorType& b, const char* what) {
  if (a.dtype != b.dtype)
    fail(ErrorCode::kUsage, what, ": the branches return ", a, " and ", b,
         "; they must have the same dtype");
  TensorType out = a;
  if (a.shape.size() != b.shape.size())
    fail(ErrorCode::kUsage, what, ": the branches return ", a, " and ", b,
         "; they must have the same rank");
  for (size_t i = 0; i < out.shape.size(); ++i)
    if (!a.shape[i].same(b.shape[i])) out.shape[i] = Dim::unknown();
  return out;
}

}  // namespace

Tensors Tracer::branch(const Tensor& condition, const TensorFn& then_fn, const TensorFn& else_fn) {
  if (condition.is_concrete())
    return condition.array().on_host().number() != 0 ? then_fn({}) : else_fn({});
  static const Op& op = get_op("cf.if");
  auto then_region = region(then_fn, {});
  auto else_region = region(else_fn, {});
  if (then_region->results.size() != else_region->results.size())
    fail(ErrorCode::kUsage, "if: the branches return different numbers of values");
  std::vector<TensorType> types;
  for (size_t i = 0; i < then_region->results.size(); ++i)
    types.push_back(join(then_region->results[i]->type, else_region->results[i]->type, "if"));
  Operation* operation =
      function_.append(*region_, op, {value_of(condition)}, default_attrs(op), types);
  operation->location = LocationScope::current();
  operation->regions.push_back(std::move(then_region));
  operation->regions.push_back(std::move(else_region));
  Tensors results;
  for (Value* value : operation->results) results.push_back(tensor_of(value));
  return results;
}

Tensors Tracer::loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
                     int64_t max_steps) {
  static const Op& op = get_op("cf.while");
  std::vector<TensorType> types;
  std::vector<Value*> operands;
  for (const Tensor& t : carried) {
    operands.push_back(value_of(t));
    types.push_back(operands.back()->type);
  }
  auto condition_region = region(condition, types);
  if (condition_region->results.size() != 1)
    fail(ErrorCode::kUsage, "while: the condition must be one value");
  auto body_region = region(body, types);
  if (body_region->results.size() != types.size())
    fail(ErrorCode::kUsage, "while: the body returns ", body_region->results.size(), " values for ",
         types.size(), " carried ones");
  for (size_t i = 0; i < types.size(); ++i)
    if (!same_type(types[i], body_region->results[i]->type))
      fail(ErrorCode::kUsage, "while: a carried value changes its type from ", types[i], " to ",
           body_region->results[i]->type);
  Attrs attrs = default_attrs(op);
  attrs[0] = max_steps;
  attrs.list_sizes = {static_cast<int32_t>(operands.size())};
  Operation* operation =
      function_.append(*region_, op, std::move(operands), std::move(attrs), types);
  operation->location = LocationScope::current();
  operation->regions.push_back(std::move(condition_region));
  operation->regions.push_back(std::move(body_region));
  Tensors results;
  for (Value* value : operation->results) results.push_back(tensor_of(value));
  return results;
}

}  // namespace paddle::ir
