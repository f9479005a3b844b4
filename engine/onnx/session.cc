#include "onnx/session.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "base/cgroup.h"
#include "ir/tracer.h"
#include "onnx/check.h"
#include "ops/call.h"
#include "passes/passes.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle::onnx {

using formats::onnx::ValueInfo;
using formats::onnx::ValueType;

namespace {

constexpr size_t kMaxCompiled = 8;
constexpr int64_t kMaxFolded = int64_t{1} << 28;     // bytes of one folded result
constexpr int64_t kMaxAllFolded = int64_t{1} << 32;  // and of all of them
constexpr int64_t kAlwaysFolded = int64_t{1} << 20;  // views and small results do not count

/// Memory that this process may use.
int64_t memory_limit() {
  static const int64_t kLimit = [] {
    const int64_t physical = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
    const int64_t group = static_cast<int64_t>(
        std::min<uint64_t>(cgroup_limits().memory.value_or(INT64_MAX), INT64_MAX));
    return physical > 0 ? std::min(physical, group) : group;
  }();
  return kLimit;
}

/// Types that are only stored have no arithmetic: their values can be cast and given other shapes.
void check_types(const OpCall& call) {
  static const std::set<std::string_view> kAnyType = {"cast",    "view_dtype", "reshape",
                                                      "squeeze", "unsqueeze",  "flatten"};
  if (kAnyType.count(call.op.name())) return;
  const auto check = [&](DType dtype) {
    if (!info(dtype).has_kernels)
      fail(ErrorCode::kModel, call.op.name(), " is not defined for ", text(dtype),
           ", which is only stored and cast");
  };
  for (const Tensor& t : call.operands)
    if (t) check(t.dtype());
  for (const TensorType& t : call.results) check(t.dtype);
}

/// Refuses a call whose results the machine cannot hold; their bytes, as far as they are known.
int64_t checked_bytes(const OpCall& call) {
  check_types(call);
  int64_t bytes = 0;
  for (const TensorType& t : call.results) {
    if (call.op.has(kRunTimeShape) || !is_constant(t.shape)) continue;
    const int64_t count = element_count(std::span<const int64_t>(concrete(t.shape)));
    // Views too: what reads them may need them packed.
    if (count > memory_limit() / item_size(t.dtype))
      fail(ErrorCode::kModel, call.op.name(), " would give ", t, ", more than the memory of ",
           human_bytes(static_cast<uint64_t>(memory_limit())));
    bytes += storage_bytes(t.dtype, count);
  }
  return bytes;
}

/// The eager executor for graphs that nobody vouches for.
class CheckedExecutor final : public Interpreter {
 public:
  Tensors apply(const OpCall& call) override {
    checked_bytes(call);
    return eager_.apply(call);
  }

 private:
  runtime::EagerExecutor eager_;
};

/// Records calls on traced values and runs those on constants at once, if what they give is small.
class FoldingTracer final : public Interpreter {
 public:
  explicit FoldingTracer(ir::Function& function) : tracer_(function) {}
  Tensors apply(const OpCall& call) override {
    return folds(call) ? eager_.apply(call) : tracer_.apply(call);
  }
  Tensors branch(const Tensor& condition, const TensorFn& then_fn,
                 const TensorFn& else_fn) override {
    return tracer_.branch(condition, then_fn, else_fn);
  }
  Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
               int64_t max_steps) override {
    return tracer_.loop(condition, body, carried, max_steps);
  }
  bool traces() const override { return true; }
  ir::Tracer& tracer() { return tracer_; }

 private:
  bool folds(const OpCall& call) {
    const int64_t bytes = checked_bytes(call);
    if (call.op.has(kRandom) || call.op.has(kEffect)) return false;
    for (const Tensor& t : call.operands)
      if (t && !t.is_concrete()) return false;
    for (const TensorType& t : call.results)
      if (!call.op.has(kRunTimeShape) && !is_constant(t.shape)) return false;
    for (const AttrValue& v : call.attrs.values)
      if (!is_fixed(v)) return false;
    if (call.op.def->view || bytes <= kAlwaysFolded) return true;
    folded_ += bytes;
    return bytes <= kMaxFolded && folded_ <= kMaxAllFolded;
  }
  static bool is_fixed(const AttrValue& value) {
    if (value.is_int()) return value.as_dim().is_constant();
    if (!value.is_list()) return true;
    const auto& list = value.as_list();
    return std::all_of(list.begin(), list.end(), is_fixed);
  }

  ir::Tracer tracer_;
  runtime::EagerExecutor eager_;
  int64_t folded_ = 0;  ///< bytes of results so far
};

/// What a graph gives must be of the types that it declares.
void check_outputs(const std::vector<ValueInfo>& declared, const Values& found) {
  for (size_t i = 0; i < found.size(); ++i) {
    const ValueType& type = declared[i].type;
    const bool tensor = found[i].is_tensor() || found[i].kind() == Value::Kind::kStrings;
    if (type.kind == ValueType::Kind::kTensor && type.dtype && tensor &&
        found[i].dtype() != *type.dtype)
      fail(ErrorCode::kModel, "the output '", declared[i].name, "' is ", found[i].text(),
           ", the model declares ", type);
  }
}

}  // namespace

Session::Session(const std::string& path, SessionOptions options)
    : model_(std::make_shared<formats::onnx::Model>(formats::onnx::read_model(path))),
      evaluator_(std::make_unique<Evaluator>(*model_)),
      options_(std::move(options)) {
  runtime::register_backends();
  std::set<std::string> given, names;
  for (const auto& t : model_->graph.initializers) given.insert(t.name);
  for (const auto& s : model_->graph.sparse_initializers) given.insert(s.first);
  for (size_t i = 0; i < model_->graph.inputs.size(); ++i) {
    const ValueInfo& input = model_->graph.inputs[i];
    if (!names.insert(input.name).second)
      fail(ErrorCode::kModel, path, ": two inputs are called '", input.name, "'");
    if (given.count(input.name)) continue;
    inputs_.push_back(input);
    positions_.push_back(i);
  }
  try {
    check_model(*model_);
  } catch (const Error& e) {
    fail(e.code(), path, ": ", e.message());
  }
}

int64_t Session::parameter_count() const {
  int64_t count = 0;
  for (const auto& t : model_->graph.initializers)
    if (is_float(t.dtype)) count += element_count(std::span<const int64_t>(t.shape));
  return count;
}

std::shared_ptr<ir::Function> Session::trace(const std::vector<TensorType>& types) const {
  auto function = std::make_shared<ir::Function>("predict");
  FoldingTracer tracer(*function);
  Values arguments(model_->graph.inputs.size());
  for (size_t i = 0; i < inputs_.size(); ++i)
    arguments[positions_[i]] =
        Value(tracer.tracer().input({ir::PortKind::kValue, inputs_[i].name}, types[i]));
  const Tensor random =
      tracer.tracer().input({ir::PortKind::kRandom, "random"}, {DType::kU64, {Dim(2)}});
  const InterpreterScope scope(tracer);
  const RandomScope random_scope(random);
  Evaluator evaluator(*model_);
  const Values results = evaluator.run(arguments);
  check_outputs(outputs(), results);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].is_tensor())
      throw NeedsValue(ErrorCode::kModel, "the output is " + results[i].text());
    tracer.tracer().output({ir::PortKind::kValue, outputs()[i].name}, results[i].tensor());
  }
  bool draws = false;
  ir::for_each_operation(function->body,
                         [&](const ir::Operation& o) { draws = draws || o.op->has(kRandom); });
  if (!draws) {
    function->inputs.pop_back();
    function->body.arguments.pop_back();
  }
  return function;
}

std::unique_ptr<runtime::Executable> Session::compile(const std::vector<TensorType>& types) const {
  const auto function = trace(types);
  for (const passes::Pass& pass : passes::standard_passes(runtime::pass_options()))
    pass.run(*function);
  runtime::ExecutableOptions executable;
  executable.plan.profile = options_.profile;
  return std::make_unique<runtime::Executable>(function, executable);
}

std::vector<TensorType> Session::declared_types() const {
  std::vector<TensorType> types;
  int unnamed = 0;
  for (const ValueInfo& input : inputs_) {
    if (input.type.kind != ValueType::Kind::kTensor || !input.type.dtype || !input.type.shape ||
        *input.type.dtype == DType::kString)
      return {};
    TensorType type{*input.type.dtype, *input.type.shape};
    for (Dim& d : type.shape)
      if (d.is_unknown()) d = Dim::symbol(str("unnamed", unnamed++));
    types.push_back(type);
  }
  return types;
}

Session::Compiled* Session::compiled_for(const Values& inputs) {
  if (options_.mode == Mode::kEager) return nullptr;
  std::vector<TensorType> types;
  for (const Value& v : inputs) {
    if (!v.is_tensor() || v.dtype() == DType::kString) return nullptr;
    types.push_back({v.dtype(), v.shape()});
  }
  const auto attempt =
      [&](const std::vector<TensorType>& of) -> std::unique_ptr<runtime::Executable> {
    try {
      return compile(of);
    } catch (const Error& e) {
      if (e.code() == ErrorCode::kDevice) throw;
      return nullptr;  // node by node it may still run, or say better what is wrong
    }
  };
  if (!symbolic_tried_) {
    symbolic_tried_ = true;
    const auto declared = declared_types();
    if (declared.size() == inputs.size())
      if (auto executable = attempt(declared)) {
        symbolic_ = std::make_unique<Compiled>();
        symbolic_->executable = std::move(executable);
      }
  }
  if (symbolic_) return symbolic_.get();
  for (auto it = by_shape_.begin(); it != by_shape_.end(); ++it)
    if (std::equal(types.begin(), types.end(), it->types.begin(), it->types.end(), same_type)) {
      by_shape_.splice(by_shape_.begin(), by_shape_, it);
      return it->executable ? &*it : nullptr;
    }
  by_shape_.push_front({types, attempt(types)});
  if (by_shape_.size() > kMaxCompiled) by_shape_.pop_back();
  return by_shape_.front().executable ? &by_shape_.front() : nullptr;
}

std::vector<Array> Session::arrays_for(const ir::Function& function, const Values& inputs) const {
  std::vector<Array> arrays;
  size_t next = 0;
  for (const ir::Port& port : function.inputs)
    arrays.push_back(port.kind == ir::PortKind::kRandom
                         ? Array::from<uint64_t>({seed_, step_}, {2})
                         : inputs[next++].tensor().array().contiguous());
  return arrays;
}

void Session::check_inputs(const Values& inputs) const {
  ensure(inputs.size() == inputs_.size(), "ONNX session: input count");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueType& type = inputs_[i].type;
    const Value& v = inputs[i];
    const auto refuse = [&] {
      fail(ErrorCode::kData, "input '", inputs_[i].name, "' is ", v.text(), ", the model takes ",
           type);
    };
    if (type.kind != ValueType::Kind::kTensor) continue;
    if (!v.is_tensor() && v.kind() != Value::Kind::kStrings) refuse();
    if (type.dtype && v.dtype() != *type.dtype) refuse();
    if (!type.shape) continue;
    const Shape shape = v.shape();
    if (shape.size() != type.shape->size()) refuse();
    for (size_t d = 0; d < shape.size(); ++d)
      if ((*type.shape)[d].is_constant() && !(*type.shape)[d].same(shape[d])) refuse();
  }
}

Values Session::run_eagerly(const Values& inputs) {
  CheckedExecutor eager;
  const InterpreterScope scope(eager);
  const RandomScope random(Tensor(Array::from<uint64_t>({seed_, step_}, {2})));
  Values arguments(model_->graph.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) arguments[positions_[i]] = inputs[i];
  Values results = evaluator_->run(arguments);
  check_outputs(outputs(), results);
  return results;
}

Values Session::run(const Values& inputs) {
  check_inputs(inputs);
  ++step_;
  Compiled* const compiled = compiled_for(inputs);
  if (!compiled) {
    Values results = run_eagerly(inputs);
    for (Value& v : results)
      if (v.is_tensor()) v = Value(Tensor(v.tensor().array().contiguous()));
    return results;
  }
  Values results;
  held_ = arrays_for(compiled->executable->function(), inputs);
  for (const Array& a : compiled->executable->run(held_)) results.emplace_back(Tensor(a));
  return results;
}

double Session::flops(const Values& inputs) {
  Compiled* const compiled = compiled_for(inputs);
  if (!compiled) return 0;
  std::vector<Layout> layouts;
  for (const Array& a : arrays_for(compiled->executable->function(), inputs))
    layouts.push_back(Layout::of(a));
  return compiled->executable->plan(layouts).flops();
}

}  // namespace paddle::onnx
