#include "onnx/graph/session.h"

#include <algorithm>

#include "base/strict.h"
#include "ir/tracer.h"
#include "onnx/graph/constant_folding.h"
#include "onnx/graph/partitions.h"
#include "ops/core/call.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle::onnx {

using formats::onnx::ValueInfo;
using formats::onnx::ValueType;

namespace {

constexpr size_t kMaxCompiled = 8;

/// Outputs must have the declared dtypes. Programs of PaddlePaddle declare other ones for some
/// operations than these compute.
void check_outputs(const formats::onnx::Model& model, const Values& found) {
  if (model.producer == "PaddlePaddle") return;
  const std::vector<ValueInfo>& declared = model.graph.outputs;
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
    : Session(open_model(path, options.provided_inputs), options) {}

Session::Session(OpenModel opened, SessionOptions options)
    : opened_(std::move(opened)),
      evaluator_(std::make_unique<Evaluator>(*opened_.model)),
      options_(std::move(options)),
      profile_(options_.profile.get()) {
  runtime::register_backends();
  evaluator_->use_profile(&profile_);
  if (options_.mode == Mode::kEager) return;
  auto partitions = std::make_unique<Partitions>(*evaluator_, options_);
  partitions_ = partitions.get();
  evaluator_->use_partitions(std::move(partitions));
}

Session::Compiled Session::Compiled::clone() const {
  return {types, executable ? executable->clone() : nullptr, failure};
}

std::unique_ptr<Session> Session::clone() const {
  std::unique_ptr<Session> copy(new Session(opened_, options_));
  copy->fallback_ = fallback_;
  copy->symbolic_tried_ = symbolic_tried_;
  copy->seed_ = seed_;
  copy->step_ = step_;
  if (symbolic_) copy->symbolic_ = std::make_unique<Compiled>(symbolic_->clone());
  for (const Compiled& each : by_shape_) copy->by_shape_.add_oldest(each.clone());
  return copy;
}

std::vector<std::string> Session::fallbacks() const {
  std::vector<std::string> out;
  if (!fallback_.empty())
    out.push_back("the graph does not run as one plan, but in partitions: " + fallback_);
  if (partitions_)
    for (const std::string& failure : partitions_->failures())
      out.push_back("a part of the graph runs node by node: " + failure);
  return out;
}

int64_t Session::parameter_count() const {
  int64_t count = 0;
  for (const auto& t : model().graph.initializers)
    if (is_float(t.dtype)) count += element_count(std::span<const int64_t>(t.shape));
  return count;
}

std::shared_ptr<ir::Function> Session::trace(const std::vector<TensorType>& types) const {
  auto function = std::make_shared<ir::Function>("predict", options_.compile.target);
  ir::Tracer tracer(*function);
  Values given;
  for (size_t i = 0; i < types.size(); ++i)
    given.emplace_back(tracer.input({ir::PortKind::kValue, inputs()[i].name}, types[i]));
  const Tensor random = tracer.input({ir::PortKind::kRandom, "random"}, {DType::kU64, {Dim(2)}});
  const InterpreterScope scope(tracer);
  ConstantFolder folder;
  const InterpreterScope folder_scope(folder);
  const RandomScope random_scope(random);
  Evaluator evaluator(model());
  const Values results = evaluator.run(opened_.arguments(given));
  check_outputs(model(), results);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].is_tensor())
      throw DataDependentError(ErrorCode::kModel, "the output is " + results[i].text());
    tracer.output({ir::PortKind::kValue, outputs()[i].name}, results[i].tensor());
  }
  bool is_random = false;
  ir::for_each_operation(
      function->body, [&](const ir::Operation& o) { is_random = is_random || o.op->has(kRandom); });
  if (!is_random) {
    function->inputs.pop_back();
    function->body.arguments.pop_back();
  }
  return function;
}

Session::Compiled Session::try_compile(const std::vector<TensorType>& types) const {
  Compiled out;
  out.types = types;
  try {
    out.executable = make_executable(trace(types), options_);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kDevice) throw;
    if (e.code() == ErrorCode::kInternal && internal_errors_are_fatal()) throw;
    out.failure = e.what();  // the eager path may still succeed, or report a better error
  }
  return out;
}

Session::Compiled* Session::find_compiled(const Values& inputs) {
  if (options_.mode != Mode::kAutomatic) return nullptr;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].is_tensor() || inputs[i].dtype() == DType::kString) {
      fallback_ = str("the input '", this->inputs()[i].name, "' is ", inputs[i].text());
      return nullptr;
    }
  const auto fits = [&](const Compiled& c) {
    return std::equal(inputs.begin(), inputs.end(), c.types.begin(), c.types.end(),
                      [](const Value& v, const TensorType& type) {
                        return same_type({v.dtype(), v.shape()}, type);
                      });
  };
  if (Compiled* const found = by_shape_.find(fits)) return usable(*found);
  if (!symbolic_tried_) {
    symbolic_tried_ = true;
    const auto declared = opened_.input_types();
    if (declared.size() == inputs.size())
      if (Compiled compiled = try_compile(declared); compiled.executable)
        symbolic_ = std::make_unique<Compiled>(std::move(compiled));
  }
  // Programs of PaddlePaddle may compute otherwise where there are no elements.
  const bool is_empty = std::any_of(inputs.begin(), inputs.end(), [](const Value& v) {
    return element_count(std::span<const Dim>(v.shape())).constant() == 0;
  });
  if (symbolic_ && !(is_empty && model().producer == "PaddlePaddle")) return usable(*symbolic_);
  return compile_for_shapes(inputs);
}

Session::Compiled* Session::usable(Compiled& compiled) {
  fallback_ = compiled.failure;
  return compiled.executable ? &compiled : nullptr;
}

Session::Compiled* Session::compile_for_shapes(const Values& inputs) {
  std::vector<TensorType> types;
  for (const Value& v : inputs) types.push_back({v.dtype(), v.shape()});
  return usable(by_shape_.add(try_compile(types), kMaxCompiled));
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

Session::Compiled* Session::plan_for(const Values& inputs) {
  Compiled* compiled = find_compiled(inputs);
  if (compiled) bound_inputs_ = arrays_for(compiled->executable->function(), inputs);
  if (!compiled || compiled != symbolic_.get()) return compiled;
  // Tracing assumes that differently named sizes are equal where they meet. If they are not
  // (broadcasting of a size of 1), or if equally named sizes differ, compile for these shapes only.
  // Any other mismatch is an error in the file.
  try {
    compiled->executable->prepare(bound_inputs_);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kUsage) fail(ErrorCode::kModel, e.message());
    if (e.code() != ErrorCode::kData) throw;
    compiled = compile_for_shapes(inputs);
    if (compiled) bound_inputs_ = arrays_for(compiled->executable->function(), inputs);
  }
  return compiled;
}

void Session::check_inputs(const Values& inputs) const {
  ensure(inputs.size() == opened_.inputs.size(), "ONNX session: input count");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueType& type = opened_.inputs[i].type;
    const Value& v = inputs[i];
    const auto reject = [&] {
      fail(ErrorCode::kData, "input '", opened_.inputs[i].name, "' is ", v.text(), ", expected ",
           type);
    };
    if (type.kind != ValueType::Kind::kTensor) continue;
    if (!v.is_tensor() && v.kind() != Value::Kind::kStrings) reject();
    if (type.dtype && v.dtype() != *type.dtype) reject();
    if (!type.shape) continue;
    const Shape shape = v.shape();
    if (shape.size() != type.shape->size()) reject();
    for (size_t d = 0; d < shape.size(); ++d)
      if ((*type.shape)[d].is_constant() && !(*type.shape)[d].same(shape[d])) reject();
  }
}

Values Session::run_eagerly(const Values& inputs, double* flops) {
  CheckedExecutor eager(profile_, flops != nullptr, options_.compile.target.device);
  if (partitions_) partitions_->count_flops(flops);
  const InterpreterScope scope(eager);
  const RandomScope random(Tensor(Array::from<uint64_t>({seed_, step_}, {2})));
  Values results = evaluator_->run(opened_.arguments(inputs));
  check_outputs(model(), results);
  if (flops) *flops += eager.flops();
  if (partitions_) partitions_->count_flops(nullptr);
  return results;
}

Values Session::run(const Values& inputs) {
  check_inputs(inputs);
  ++step_;
  Compiled* const compiled = plan_for(inputs);
  if (!compiled) {
    Values results = run_eagerly(inputs);
    for (Value& v : results)
      if (v.is_tensor()) v = Value(Tensor(v.tensor().array().contiguous()));
    return results;
  }
  Values results;
  try {
    for (const Array& a : compiled->executable->run(bound_inputs_)) results.emplace_back(Tensor(a));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage) throw;
    fail(ErrorCode::kModel,
         e.message());  // the caller's inputs were checked, so the file is at fault
  }
  return results;
}

double Session::flops(const Values& inputs) {
  Compiled* const compiled = plan_for(inputs);
  if (compiled) return compiled->executable->prepare(bound_inputs_).flops();
  double flops = 0;
  run_eagerly(inputs, &flops);
  return flops;
}

}  // namespace paddle::onnx
