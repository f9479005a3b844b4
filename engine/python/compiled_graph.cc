#include "python/compiled_graph.h"

#include <set>

#include "autograd/autograd.h"
#include "ir/clone.h"
#include "ir/replay.h"
#include "python/core.h"
#include "runtime/compile.h"

namespace paddle::python {
namespace {

using Values = std::vector<ir::Value*>;

/// A function of `inputs` that computes `results` by the operations that `takes` chooses.
template <class Takes>
std::shared_ptr<ir::Function> extract(const ir::Function& from, const std::vector<ir::Port>& ports,
                                      const Values& inputs, const Values& results, Takes&& takes) {
  auto out = std::make_shared<ir::Function>(from.name, from.target);
  ir::Copies copies;
  for (size_t i = 0; i < inputs.size(); ++i)
    copies[inputs[i]] = out->add_input(ports[i], inputs[i]->type);
  for (const auto& operation : from.body.operations)
    if (takes(*operation)) ir::clone_operation(*out, out->body, *operation, copies);
  for (size_t i = 0; i < results.size(); ++i) {
    ir::Value* const value = results[i];
    ir::Value* copy = copies.count(value) ? copies[value] : nullptr;
    if (!copy) {
      ensure(value->constant.has_value(), "to_static: a value is missing");
      copy = copies[value] = out->add_constant(*value->constant);
    }
    out->add_output({ir::PortKind::kValue, str("result_", i)}, copy);
  }
  out->constraints = from.constraints;
  return out;
}

/// Values that depend on the gradients of the outputs, which are inputs from `first` on.
std::set<const ir::Value*> values_of_backward(const ir::Function& function, size_t first) {
  std::set<const ir::Value*> out(
      function.body.arguments.begin() + static_cast<std::ptrdiff_t>(first),
      function.body.arguments.end());
  for (const auto& operation : function.body.operations) {
    bool depends = false;
    ir::for_each_read(*operation, [&](const ir::Value* v) { depends |= out.count(v) > 0; });
    if (depends) out.insert(operation->results.begin(), operation->results.end());
  }
  return out;
}

/// Adds the values of a region that a gradient would flow from to those of `flows`.
void spread_gradients(const ir::Region& region, std::set<const ir::Value*>& flows) {
  static const Op &branch = get_op("cf.if"), &loop = get_op("cf.while");
  const auto add = [&](const ir::Value* v, bool has_gradient) {
    if (has_gradient && is_differentiable(v->type.dtype)) flows.insert(v);
  };
  for (const auto& operation : region.operations) {
    const auto& results = operation->results;
    if (operation->op == &branch) {
      for (const auto& side : operation->regions) {
        spread_gradients(*side, flows);
        for (size_t i = 0; i < results.size(); ++i) add(results[i], flows.count(side->results[i]));
      }
    } else if (operation->op == &loop) {
      const ir::Region& body = *operation->regions[1];
      for (size_t before = flows.size() + 1; before != flows.size();) {
        before = flows.size();
        for (size_t i = 0; i < results.size(); ++i) {
          const bool has_gradient =
              flows.count(operation->operands[i]) || flows.count(body.results[i]);
          add(body.arguments[i], has_gradient);
          add(results[i], has_gradient);
        }
        spread_gradients(body, flows);
      }
    } else if (!operation->op->has(kStopGradient)) {
      const bool has_gradient = std::any_of(operation->operands.begin(), operation->operands.end(),
                                            [&](const ir::Value* v) { return flows.count(v) > 0; });
      for (const ir::Value* const result : results) add(result, has_gradient);
    }
  }
}

/// Those of the outputs `of` that a gradient flows from to the inputs `by`, by index.
std::vector<size_t> outputs_with_gradient(const ir::Function& function,
                                          const std::vector<size_t>& by,
                                          const std::vector<size_t>& of) {
  std::set<const ir::Value*> flows;
  for (const size_t i : by) flows.insert(function.body.arguments[i]);
  spread_gradients(function.body, flows);
  std::vector<size_t> out;
  for (const size_t i : of)
    if (flows.count(function.body.results[i])) out.push_back(i);
  return out;
}

/// Rejects outputs with sizes that the types of the inputs do not tell: their gradients cannot be
/// inputs.
void require_known_sizes(const Tensor& output, const ir::Function& function) {
  std::vector<std::string> names, known;
  for (const Dim& each : output.shape()) each.collect_symbols(names);
  for (const ir::Value* const input : function.body.arguments)
    for (const Dim& each : input->type.shape) each.collect_symbols(known);
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail(ErrorCode::kUsage, "the size of a result that has a gradient depends on values");
}

/// Those values that the gradient reads and the function computes: neither arguments nor constants
/// nor `late`.
Values residuals_of(const ir::Function& function, const std::set<const ir::Value*>& late,
                    const Values& gradients) {
  Values out;
  std::set<const ir::Value*> seen(function.body.arguments.begin(), function.body.arguments.end());
  const auto note = [&](ir::Value* v) {
    if (v && !v->constant && !late.count(v) && seen.insert(v).second) out.push_back(v);
  };
  for (const auto& operation : function.body.operations) {
    if (operation->results.empty() || !late.count(operation->results[0])) continue;
    for (ir::Value* v : operation->operands) note(v);
    for (const auto& region : operation->regions)
      for (ir::Value* v : ir::captures(*region)) note(v);
  }
  for (ir::Value* v : gradients) note(v);
  return out;
}

std::unique_ptr<runtime::Executable> compiled(std::shared_ptr<ir::Function> function, bool exact) {
  ir::verify(*function);
  compiler::CompileOptions options;
  options.exact = exact;
  return runtime::compile(std::move(function), options);
}

std::vector<Array> arrays_of(const Tensors& tensors) {
  std::vector<Array> out;
  out.reserve(tensors.size());
  for (const Tensor& tensor : tensors) out.push_back(tensor.array().contiguous());
  return out;
}

}  // namespace

CompiledGraph::CompiledGraph(ir::Tracer& tracer, const std::vector<size_t>& by,
                             const std::vector<size_t>& of, bool exact)
    : outputs_(tracer.function().outputs.size()) {
  const std::vector<size_t> recorded = outputs_with_gradient(tracer.function(), by, of);
  if (by.empty() || recorded.empty()) {
    const ir::Function& traced = tracer.function();
    const Values inputs(traced.body.arguments.begin(), traced.body.arguments.end());
    const Values results(traced.body.results.begin(), traced.body.results.end());
    function_ =
        extract(traced, traced.inputs, inputs, results, [](const ir::Operation&) { return true; });
  } else {
    add_backward(tracer, by, recorded, exact);
  }
  run_ = compiled(function_, exact);
}

void CompiledGraph::add_backward(ir::Tracer& tracer, const std::vector<size_t>& by,
                                 const std::vector<size_t>& of, bool exact) {
  const InterpreterScope scope(tracer);
  ir::Function& function = tracer.function();
  auto backward = std::make_shared<Backward>();
  Tensors leaves, outputs, cotangents;
  for (const size_t i : by) leaves.push_back(tracer.tensor_of(function.body.arguments[i]));
  const size_t first = function.inputs.size();
  for (const size_t i : of) {
    outputs.push_back(tracer.tensor_of(function.body.results[i]));
    backward->outputs.push_back(i);
    require_known_sizes(outputs.back(), function);
    cotangents.push_back(
        tracer.input({ir::PortKind::kValue, str("gradient_", i)}, outputs.back().type()));
  }
  const Tensors found = autograd::grad(outputs, leaves, cotangents);
  Values gradients;
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i].defined()) {
      backward->inputs.push_back(by[i]);
      gradients.push_back(tracer.value_of(found[i]));
    }
  const Values arguments(function.body.arguments.begin(), function.body.arguments.end());
  const auto end_of_own = static_cast<std::ptrdiff_t>(first);
  Values inputs(arguments.begin(), arguments.begin() + end_of_own);
  std::vector<ir::Port> ports(function.inputs.begin(), function.inputs.begin() + end_of_own);
  const auto late = values_of_backward(function, first);
  const auto is_late = [&](const ir::Operation& operation) {
    return !operation.results.empty() && late.count(operation.results[0]) > 0;
  };
  Values results(function.body.results.begin(), function.body.results.end());
  const Values residuals = gradients.empty() ? Values() : residuals_of(function, late, gradients);
  results.insert(results.end(), residuals.begin(), residuals.end());
  function_ = extract(function, ports, inputs, results,
                      [&](const ir::Operation& operation) { return !is_late(operation); });
  if (gradients.empty()) return;
  for (size_t i = 0; i < residuals.size(); ++i) {
    inputs.push_back(residuals[i]);
    ports.push_back({ir::PortKind::kValue, str("residual_", i)});
  }
  for (size_t i = first; i < arguments.size(); ++i) {
    inputs.push_back(arguments[i]);
    ports.push_back(function.inputs[i]);
  }
  backward->run = compiled(extract(function, ports, inputs, gradients, is_late), exact);
  backward->joint = extract(function, function.inputs, arguments, gradients,
                            [](const ir::Operation&) { return true; });
  backward_ = std::move(backward);
}

int64_t CompiledGraph::backward_operations() const {
  return backward_ ? backward_->run->function().operation_count() : 0;
}

Tensors CompiledGraph::operator()(const Tensors& inputs, bool is_long) {
  std::vector<Array> given = arrays_of(inputs), results;
  require_threads();
  {
    std::unique_lock lock(mutex_, std::try_to_lock);
    const WithoutLock others(is_long || !lock);
    if (!lock) lock.lock();
    results = run_->run_on_device(given);
  }
  return recorded(inputs, std::move(given), std::move(results));
}

Tensors CompiledGraph::run(const Tensors& inputs) {
  std::vector<Array> given = arrays_of(inputs), results;
  {
    const std::lock_guard lock(mutex_);
    results = run_->run_on_device(given);
  }
  return recorded(inputs, std::move(given), std::move(results));
}

Tensors CompiledGraph::recorded(const Tensors& inputs, std::vector<Array> given,
                                std::vector<Array> results) {
  Tensors out;
  for (size_t i = 0; i < outputs_; ++i) out.emplace_back(results[i]);
  if (!backward_) return out;
  const auto first = results.begin() + static_cast<std::ptrdiff_t>(outputs_);
  std::vector<Array> residuals(first, results.end());
  Tensors operands, of;
  for (const size_t i : backward_->inputs) operands.push_back(inputs[i]);
  for (const size_t i : backward_->outputs) of.push_back(out[i]);
  const auto pull = [backward = backward_, operands, of, given = std::move(given),
                     residuals = std::move(residuals)](const Tensors& cotangents,
                                                       const std::vector<bool>&) {
    return backward->pull(operands, of, given, residuals, cotangents);
  };
  const Tensors with_record = autograd::with_vjp(of, operands, pull);
  for (size_t i = 0; i < with_record.size(); ++i) out[backward_->outputs[i]] = with_record[i];
  return out;
}

Tensors CompiledGraph::Backward::pull(const Tensors& operands, const Tensors& of,
                                      const std::vector<Array>& given,
                                      const std::vector<Array>& residuals, Tensors cotangents) {
  for (size_t i = 0; i < cotangents.size(); ++i)
    if (!cotangents[i].defined())
      cotangents[i] = Tensor(Array::zeros(of[i].dtype(), of[i].array().shape));
  if (autograd::is_recording()) {
    // The gradient of this gradient: all is computed again from the operands, and recorded.
    Tensors all(given.begin(), given.end());
    for (size_t i = 0; i < inputs.size(); ++i) all[inputs[i]] = operands[i];
    all.insert(all.end(), cotangents.begin(), cotangents.end());
    return ir::replay(*joint, all);
  }
  std::vector<Array> arrays = given;
  arrays.insert(arrays.end(), residuals.begin(), residuals.end());
  for (const Tensor& each : cotangents) arrays.push_back(each.array().contiguous());
  const std::lock_guard lock(mutex);
  Tensors out;
  for (Array& each : run->run_on_device(arrays)) out.emplace_back(std::move(each));
  return out;
}

}  // namespace paddle::python
