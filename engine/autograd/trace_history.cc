// In a trace, the function under construction is the record of the computation.

#include "autograd/history.h"

#include <algorithm>

#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/creation.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::autograd {
namespace {

Tensor tensor_of(ir::Function& function, ir::Value* value) {
  auto content = std::make_shared<ir::TracedValue>();
  content->value = value;
  content->function = &function;
  return Tensor(value->type, std::move(content));
}

/// The values from outside that the regions of a control-flow operation read.
std::vector<ir::Value*> region_captures(const ir::Operation& operation) {
  std::vector<ir::Value*> out;
  for (const auto& region : operation.regions)
    for (ir::Value* v : ir::captures(*region))
      if (std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
  return out;
}

class TraceHistory final : public History {
 public:
  explicit TraceHistory(ir::Function& function) : function_(function) {}

  Key key(const Tensor& tensor) override {
    const ir::Value* value = ir::traced_value(tensor);
    if (!value || value->constant) return {};
    if (!value->producer) return {value, 0, true};
    return {value->producer, value->index, false};
  }
  RecordedCall call(const Key& key) override {
    const auto& operation = *static_cast<const ir::Operation*>(key.node);
    RecordedCall out{operation.op, &operation.attrs, {}, {}, operation.location, nullptr};
    for (ir::Value* v : operation.operands)
      out.operands.push_back(v ? tensor_of(function_, v) : Tensor());
    if (operation.op->has(kControlFlow)) {
      out.operation = &operation;
      for (ir::Value* v : region_captures(operation))
        out.operands.push_back(tensor_of(function_, v));
    }
    for (ir::Value* v : operation.results) out.results.push_back(tensor_of(function_, v));
    return out;
  }
  int64_t sequence(const Key& key) override {
    return static_cast<const ir::Operation*>(key.node)->sequence;
  }

 private:
  ir::Function& function_;
};

}  // namespace

std::unique_ptr<History> tape_history();

std::unique_ptr<History> history_of(const Tensor& tensor) {
  if (ir::Function* function = ir::traced_function(tensor))
    return std::make_unique<TraceHistory>(*function);
  return tape_history();
}

namespace {

/// cf.if: the same choice between the gradients of the two regions, each computed again.
Tensors branch_vjp(const RecordedCall& call, const Tensors& cotangents,
                   const std::vector<bool>& needed) {
  const ir::Operation& operation = *call.operation;
  const auto outer = region_captures(operation);
  std::vector<size_t> wanted;  // indices of the call's operands, after the condition
  for (size_t i = 1; i < needed.size(); ++i)
    if (needed[i]) wanted.push_back(i);
  const auto gradients_of = [&](size_t which) {
    return [&, which](const Tensors&) {
      ir::ValueMap values;
      Tensors inputs;
      for (size_t i = 0; i < outer.size(); ++i) {
        // A new value inside the region, so that backward stops at its boundary.
        values[outer[i]] = ops::assign(call.operands[i + 1]);
      }
      for (const size_t i : wanted) inputs.push_back(values[outer[i - 1]]);
      const Tensors results = ir::replay(*operation.regions[which], values);
      Tensors grads = backward(*history_of(call.results[0]), results, cotangents, inputs);
      for (size_t i = 0; i < grads.size(); ++i)
        if (!grads[i].defined()) grads[i] = zeros_like(inputs[i]);
      return grads;
    };
  };
  const Tensors partial =
      current_interpreter().branch(call.operands[0], gradients_of(0), gradients_of(1));
  Tensors out(call.operands.size());
  for (size_t i = 0; i < wanted.size(); ++i) out[wanted[i]] = partial[i];
  return out;
}

/// The gradient of a cf.while. Runs the loop again to stack the carried values of each iteration,
/// then loops over the iterations in reverse with the gradient of the body. With a bound, one stack
/// holds all iterations. Without, iterations are processed in chunks, last chunk first, and each
/// chunk is recomputed from the start of the loop, so memory is that of one chunk.
class LoopGradient {
 public:
  LoopGradient(const RecordedCall& call, const Tensors& cotangents, const std::vector<bool>& needed)
      : call_(call),
        operation_(*call.operation),
        outer_(region_captures(operation_)),
        carried_(operation_.operands.size()) {
    const auto begin = call.operands.begin();
    start_.assign(begin, begin + static_cast<ptrdiff_t>(carried_));
    captured_.assign(begin + static_cast<ptrdiff_t>(carried_), call.operands.end());
    for (size_t i = carried_; i < needed.size(); ++i)
      if (needed[i]) wanted_.push_back(i - carried_);
    for (size_t i = 0; i < carried_; ++i)
      if (is_differentiable(call.operands[i].dtype())) floating_.push_back(i);
    for (const size_t i : floating_)
      back_.push_back(cotangents[i].defined() ? cotangents[i] : zeros_like(call.results[i]));
    for (const size_t i : wanted_) back_.push_back(zeros_like(captured_[i]));
  }

  Tensors run() {
    const int64_t bound = operation_.attrs[0].as_int();
    const Tensors result =
        bound >= 0 ? through(
                         start_, bound, [&](const Tensors& s) { return holds(s); }, back_)
                   : in_chunks();
    Tensors out(call_.operands.size());
    for (size_t i = 0; i < floating_.size(); ++i) out[floating_[i]] = result[i];
    for (size_t i = 0; i < wanted_.size(); ++i)
      out[carried_ + wanted_[i]] = result[floating_.size() + i];
    return out;
  }

 private:
  using Test = std::function<Tensor(const Tensors&)>;
  static constexpr int64_t kChunk = 64;  ///< iterations

  static Tensor integer(int64_t value) {
    return full_of({}, static_cast<double>(value), DType::kI64);
  }
  static Tensors loop(const Test& test, const TensorFn& body, const Tensors& start, int64_t bound) {
    return current_interpreter().loop([&](const Tensors& s) { return Tensors{test(s)}; }, body,
                                      start, bound);
  }

  /// The carried values at the start of a list.
  Tensors state(const Tensors& values) const {
    return Tensors(values.begin(), values.begin() + static_cast<ptrdiff_t>(carried_));
  }
  Tensors replayed(const ir::Region& region, const Tensors& arguments, const Tensors& captured) {
    ir::ValueMap values;
    for (size_t i = 0; i < outer_.size(); ++i) values[outer_[i]] = captured[i];
    for (size_t i = 0; i < region.arguments.size(); ++i) values[region.arguments[i]] = arguments[i];
    return ir::replay(region, values);
  }
  Tensor holds(const Tensors& values) {
    return replayed(*operation_.regions[0], state(values), captured_)[0];
  }
  Tensors iterate(const Tensors& values) {
    return replayed(*operation_.regions[1], state(values), captured_);
  }

  /// One-hot over a stack of `size` iterations, shaped to select rows of this rank.
  static Tensor one_hot(const Tensor& iteration, int64_t size, size_t rank) {
    Shape shape(rank + 1, Dim(1));
    shape[0] = Dim(size);
    return ops::reshape(ops::equal(ops::arange(AttrValue(size)), iteration), shape);
  }

  /// Propagates gradients `back` through at most `bound` iterations from `start`, while `more` (of
  /// the carried values, the stacks and the number of iterations) holds.
  Tensors through(const Tensors& start, int64_t bound, const Test& more, Tensors back) {
    Tensors forward = start;
    for (size_t i = 0; i < carried_; ++i) {
      Shape shape = start[i].shape();
      shape.insert(shape.begin(), Dim(bound));
      forward.push_back(full_of(shape, 0, start[i].dtype()));
    }
    forward.push_back(integer(0));
    const Tensors after = loop(
        more,
        [&](const Tensors& s) {
          Tensors out = iterate(s);
          for (size_t i = 0; i < carried_; ++i)
            out.push_back(ops::where(one_hot(s.back(), bound, s[i].shape().size()),
                                     ops::unsqueeze(s[i], {0}), s[carried_ + i]));
          out.push_back(s.back() + Tensor::number(int64_t{1}));
          return out;
        },
        forward, bound);
    back.push_back(after.back());
    Tensors result = loop(
        [](const Tensors& s) { return ops::greater_than(s.back(), Tensor::number(int64_t{0})); },
        [&](const Tensors& s) {
          const Tensor iteration = s.back() - Tensor::number(int64_t{1});
          Tensors now;
          for (size_t i = 0; i < carried_; ++i) {
            const Tensor& stack = after[carried_ + i];
            const Tensor mask =
                ops::cast(one_hot(iteration, bound, start[i].shape().size()), stack.dtype());
            now.push_back(ops::sum(stack * mask, std::vector<int64_t>{0}, stack.dtype()));
          }
          Tensors out = iteration_gradient(now, s);
          out.push_back(iteration);
          return out;
        },
        back, bound);
    result.pop_back();
    return result;
  }

  /// The gradient of one iteration at the carried values `now`; `back` are the gradients from later
  /// iterations.
  Tensors iteration_gradient(const Tensors& now, const Tensors& back) {
    Tensors own;
    for (const Tensor& c : captured_) own.push_back(ops::assign(c));
    const Tensors results = replayed(*operation_.regions[1], now, own);
    Tensors cotangents(carried_), inputs;
    for (size_t i = 0; i < floating_.size(); ++i) cotangents[floating_[i]] = back[i];
    for (const size_t i : floating_) inputs.push_back(now[i]);
    for (const size_t i : wanted_) inputs.push_back(own[i]);
    const Tensors grads = backward(*history_of(results[0]), results, cotangents, inputs);
    Tensors out;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor g = grads[i].defined() ? grads[i] : zeros_like(inputs[i]);
      out.push_back(i < floating_.size() ? g : back[i] + g);
    }
    return out;
  }

  Tensors in_chunks() {
    const Tensor one = Tensor::number(int64_t{1});
    const auto count_iteration = [&](const Tensors& s) {
      Tensors out = iterate(s);
      out.push_back(s.back() + one);
      return out;
    };
    Tensors counting = start_;
    counting.push_back(integer(0));
    const Tensors counted =
        loop([&](const Tensors& s) { return holds(s); }, count_iteration, counting, -1);
    Tensors back = back_;
    back.push_back(counted.back());
    Tensors result = loop(
        [](const Tensors& s) { return ops::greater_than(s.back(), Tensor::number(int64_t{0})); },
        [&](const Tensors& s) {
          const Tensor size = Tensor::number(kChunk);
          const Tensor first = ops::floor_divide(s.back() - one, size) * size;
          const Tensor iterations = s.back() - first;
          const Tensors reached =
              loop([&](const Tensors& r) { return ops::less_than(r.back(), first); },
                   count_iteration, counting, -1);
          Tensors gradients(s.begin(), s.end() - 1);
          Tensors out = through(
              state(reached), kChunk,
              [&](const Tensors& r) { return ops::less_than(r.back(), iterations); }, gradients);
          out.push_back(first);
          return out;
        },
        back, -1);
    result.pop_back();
    return result;
  }

  const RecordedCall& call_;
  const ir::Operation& operation_;
  const std::vector<ir::Value*> outer_;
  const size_t carried_;
  Tensors start_, captured_;
  std::vector<size_t> wanted_;    ///< captured values whose gradient is asked for
  std::vector<size_t> floating_;  ///< carried values that have a gradient
  Tensors back_;                  ///< cotangents of the carried values, sums for the captured ones
};

}  // namespace

Tensors control_flow_vjp(const RecordedCall& call, const Tensors& cotangents,
                         const std::vector<bool>& needed) {
  return ir::is_loop(*call.operation) ? LoopGradient(call, cotangents, needed).run()
                                      : branch_vjp(call, cotangents, needed);
}

}  // namespace paddle::autograd
