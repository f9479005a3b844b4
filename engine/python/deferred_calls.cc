#include "python/deferred_calls.h"

#include "autograd/autograd.h"
#include "autograd/pending.h"
#include "ops/core/operators.h"
#include "ops/generated/math.h"

namespace paddle::python {

const Array* Deferred::concrete() const {
  if (!is_computed) recording->run();
  ensure(value != nullptr, "a deferred value was not computed");
  return value->concrete();
}

namespace {

/// Sets whether calls are recorded for gradients in a scope.
class RecordingScope {
 public:
  explicit RecordingScope(bool recording) : before_(autograd::is_recording()) {
    autograd::set_recording(recording);
  }
  ~RecordingScope() { autograd::set_recording(before_); }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 private:
  bool before_;
};

/// The value without its record.
Tensor without_record(const Operand& /*operand*/, const Tensor& value) {
  return {value.type(), value.content()};
}

/// The traced value, through which no gradient flows.
Tensor without_gradient(const Tensor& value) {
  return is_differentiable(value.dtype()) ? ops::detach(value) : value;
}

}  // namespace

// --- recording ---

Operand Recording::operand(const Tensor& tensor, bool noted) const {
  Operand out;
  if (!tensor.defined()) return out;
  out.requires_grad = tensor.requires_grad();
  const std::shared_ptr<const Content>& content = tensor.content();
  if (const auto* const deferred = dynamic_cast<const Deferred*>(content.get());
      deferred && !deferred->is_computed && deferred->recording.get() == this) {
    out.kind = Operand::Kind::kResult;
    out.index = deferred->index;
    return out;
  }
  const Array& array = tensor.array();
  if (is_small(array) && !noted && !out.requires_grad && !input_numbers_.count(content.get())) {
    out.kind = Operand::Kind::kConstant;
    out.constant = array.contiguous();
    return out;
  }
  out.kind = Operand::Kind::kInput;
  out.type = tensor.type();
  out.value = tensor;
  return out;
}

void Recording::number(std::vector<Operand>& operands) const {
  std::map<const Content*, size_t> fresh;
  for (Operand& each : operands) {
    if (each.kind != Operand::Kind::kInput) continue;
    const Content* const content = each.value.content().get();
    const auto it = input_numbers_.find(content);
    each.index = it != input_numbers_.end()
                     ? it->second
                     : fresh.try_emplace(content, inputs_.size() + fresh.size()).first->second;
  }
}

Tensors Recording::results_of(const Node& node, std::vector<Operand>& operands) {
  for (Operand& each : operands) {
    if (each.kind != Operand::Kind::kInput) continue;
    // The value as it is now: later writes in place change the tensor.
    Tensor value = each.value.fresh_cell();
    if (input_numbers_.try_emplace(value.content().get(), each.index).second)
      inputs_.push_back(std::move(value));
    each.value = {};
  }
  Tensors out;
  for (size_t i = 0; i < node.results.size(); ++i) {
    auto result = std::make_shared<Deferred>();
    result->recording = shared_from_this();
    result->index = results_.size();
    if (node.requires_grad[i]) result->record = autograd::pending_record();
    Tensor tensor(node.results[i], result);
    if (result->record) tensor.set_record(result->record);
    results_.push_back(std::move(result));
    requires_grad_.push_back(node.requires_grad[i]);
    out.push_back(std::move(tensor));
  }
  ++calls_;
  return out;
}

bool Recording::follow(const Op& op, const Attrs& attrs, std::vector<Operand>& operands,
                       Tensors& results) {
  const std::lock_guard lock(mutex_);
  const std::lock_guard tree(segments_->mutex);
  if (is_over_) return false;
  number(operands);
  for (const auto& next : at_->after) {
    if (!next->is_call(op, attrs, operands, autograd::is_recording())) continue;
    results = results_of(*next, operands);
    at_ = next.get();
    return true;
  }
  return false;
}

Tensors Recording::add(const OpCall& call, std::vector<Operand> operands, std::string location) {
  const std::lock_guard lock(mutex_);
  const std::lock_guard tree(segments_->mutex);
  if (is_over_) return {};
  number(operands);
  auto node = std::make_unique<Node>();
  node->before = at_;
  node->op = &call.op;
  node->attrs = call.attrs;
  node->is_recorded = autograd::is_recording();
  node->location = std::move(location);
  const bool records = node->is_recorded && !call.op.has(kStopGradient) &&
                       std::any_of(call.operands.begin(), call.operands.end(), [](const Tensor& t) {
                         return t.defined() && t.requires_grad() && is_differentiable(t.dtype());
                       });
  for (const TensorType& type : call.results) {
    node->results.push_back(std::make_shared<const TensorType>(type));
    node->requires_grad.push_back(records && is_differentiable(type.dtype));
  }
  Tensors out = results_of(*node, operands);
  node->operands = std::move(operands);
  at_ = at_->after.emplace_back(std::move(node)).get();
  ++segments_->nodes;
  return out;
}

// --- computing ---

std::vector<const Node*> Recording::path() const {
  std::vector<const Node*> out;
  for (const Node* node = at_; node->op; node = node->before) out.push_back(node);
  std::reverse(out.begin(), out.end());
  return out;
}

namespace {

/// The operands of a call, from all inputs and results. `plain(operand, value)`: the value of one
/// through which no gradient flows.
template <class Plain>
Tensors operands_of(const Node& node, const Tensors& inputs, const Tensors& results,
                    Plain&& plain) {
  Tensors out;
  for (const Operand& each : node.operands) {
    switch (each.kind) {
      case Operand::Kind::kAbsent:
        out.emplace_back();
        break;
      case Operand::Kind::kConstant:
        out.emplace_back(each.constant);
        break;
      default: {
        const Tensor& value = (each.kind == Operand::Kind::kInput ? inputs : results)[each.index];
        out.push_back(each.requires_grad ? value : plain(each, value));
      }
    }
  }
  return out;
}

}  // namespace

Tensors Recording::compute_eagerly(const std::vector<const Node*>& path) const {
  const EagerScope eager(0, 0);
  Tensors results;
  for (const Node* const node : path) {
    const RecordingScope scope(node->is_recorded);
    try {
      for (const Tensor& each :
           call(*node->op, operands_of(*node, inputs_, results, without_record), node->attrs))
        results.push_back(each.fresh_cell());
    } catch (Error& error) {
      throw error.note(str("deferred from ", node->location));
    }
  }
  return results;
}

std::unique_ptr<CompiledGraph> Recording::compile(const std::vector<const Node*>& path,
                                                  const std::vector<size_t>& used) const {
  ir::Function function("segment", TargetInfo{});
  ir::Tracer tracer(function);
  const InterpreterScope scope(tracer);
  Tensors inputs, results;
  std::vector<size_t> by, of;
  for (const Tensor& each : inputs_) {
    if (each.requires_grad()) by.push_back(inputs.size());
    inputs.push_back(
        tracer.input({ir::PortKind::kValue, str("input_", inputs.size())}, each.type()));
  }
  const auto plain = [&](const Operand& operand, const Tensor& value) {
    const bool has_gradient = operand.kind == Operand::Kind::kInput
                                  ? inputs_[operand.index].requires_grad()
                                  : requires_grad_[operand.index];
    return has_gradient ? without_gradient(value) : value;
  };
  for (const Node* const node : path) {
    const ir::LocationScope location(node->location);
    const Tensors found = call(*node->op, operands_of(*node, inputs, results, plain), node->attrs);
    for (size_t i = 0; i < found.size(); ++i)
      results.push_back(node->requires_grad[i] || !node->takes_gradients()
                            ? found[i]
                            : without_gradient(found[i]));
  }
  for (const size_t i : used) {
    if (requires_grad_[i]) of.push_back(function.outputs.size());
    tracer.output({ir::PortKind::kValue, str("result_", i)}, results[i]);
  }
  return std::make_unique<CompiledGraph>(tracer, by, of, segments_->exact);
}

Tensors Recording::computed(const std::vector<size_t>& used) {
  CompiledGraph* graph = nullptr;
  const std::vector<const Node*> calls = path();
  {
    const std::lock_guard tree(segments_->mutex);
    const auto [it, is_first] = at_->graphs.try_emplace(used);
    if (!is_first && !it->second && at_->compiles) {
      try {
        it->second = compile(calls, used);
      } catch (const Error&) {
        at_->compiles = false;  // what cannot be compiled is computed call by call
      }
    }
    graph = it->second.get();
  }
  if (graph) {
    const RecordingScope scope(true);
    return graph->run(inputs_);
  }
  const Tensors all = compute_eagerly(calls);
  Tensors out;
  for (const size_t i : used) out.push_back(all[i]);
  return out;
}

void Recording::run() {
  // Given up after the lock is: they may be Python's.
  Tensors inputs;
  std::vector<std::shared_ptr<Deferred>> results;
  const std::lock_guard lock(mutex_);
  if (is_over_) {
    if (error_) std::rethrow_exception(error_);
    return;
  }
  is_over_ = true;
  std::vector<size_t> used;
  for (size_t i = 0; i < results_.size(); ++i)
    if (results_[i].use_count() > 1) used.push_back(i);
  try {
    if (!used.empty()) {
      const Tensors values = computed(used);
      for (size_t i = 0; i < used.size(); ++i) {
        Deferred& result = *results_[used[i]];
        if (result.record) autograd::complete_record(*result.record, values[i]);
        result.value = values[i].content();
        result.is_computed = true;
      }
    }
  } catch (...) {
    error_ = std::current_exception();
  }
  inputs.swap(inputs_);
  results.swap(results_);
  input_numbers_.clear();
  if (error_) std::rethrow_exception(error_);
}

}  // namespace paddle::python
