// In a trace, the function under construction is the record of the computation.

#include "autograd/history.h"

#include <algorithm>

#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/call.h"
#include "ops/operators.h"

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
  Step step(const Key& key) override {
    const auto& operation = *static_cast<const ir::Operation*>(key.node);
    Step out{operation.op, &operation.attrs, {}, {}, nullptr};
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
Tensors branch_vjp(const Step& step, const Tensors& cotangents, const std::vector<bool>& needed) {
  const ir::Operation& operation = *step.operation;
  const auto outer = region_captures(operation);
  std::vector<size_t> wanted;  // positions among the step's operands, after the condition
  for (size_t i = 1; i < needed.size(); ++i)
    if (needed[i]) wanted.push_back(i);
  const auto gradients_of = [&](size_t which) {
    return [&, which](const Tensors&) {
      ir::ValueMap values;
      Tensors inputs;
      for (size_t i = 0; i < outer.size(); ++i) {
        // A fresh name inside the region, so that only what the region does is walked back.
        values[outer[i]] = ops::assign(step.operands[i + 1]);
      }
      for (const size_t i : wanted) inputs.push_back(values[outer[i - 1]]);
      const Tensors results = ir::replay(*operation.regions[which], values);
      Tensors grads = backward(*history_of(step.results[0]), results, cotangents, inputs);
      for (size_t i = 0; i < grads.size(); ++i)
        if (!grads[i].defined()) grads[i] = zeros_like(inputs[i]);
      return grads;
    };
  };
  const Tensors partial =
      current_interpreter().branch(step.operands[0], gradients_of(0), gradients_of(1));
  Tensors out(step.operands.size());
  for (size_t i = 0; i < wanted.size(); ++i) out[wanted[i]] = partial[i];
  return out;
}

/// cf.while with a bound: the carried values of every turn are stacked by a second run forwards,
/// and a loop over the turns in reverse takes the body's gradient at each.
Tensors loop_vjp(const Step& step, const Tensors& cotangents, const std::vector<bool>& needed) {
  const ir::Operation& operation = *step.operation;
  const int64_t bound = operation.attrs[0].as_int();
  if (bound < 0)
    fail(ErrorCode::kUsage,
         "while: the gradient of a loop on tensors needs a bound on its turns (max_steps=)");
  const auto outer = region_captures(operation);
  const size_t carried = operation.operands.size();
  const auto bind = [&](const ir::Region& region, const Tensors& arguments,
                        const Tensors& captured) {
    ir::ValueMap values;
    for (size_t i = 0; i < outer.size(); ++i) values[outer[i]] = captured[i];
    for (size_t i = 0; i < region.arguments.size(); ++i) values[region.arguments[i]] = arguments[i];
    return values;
  };
  const Tensors captured(step.operands.begin() + static_cast<ptrdiff_t>(carried),
                         step.operands.end());
  const ir::Region &condition = *operation.regions[0], &body = *operation.regions[1];

  // Forwards: carried values, one stack each, and the number of turns.
  Tensors state(step.operands.begin(), step.operands.begin() + static_cast<ptrdiff_t>(carried));
  for (size_t i = 0; i < carried; ++i) {
    Shape shape = state[i].shape();
    shape.insert(shape.begin(), Dim(bound));
    state.push_back(full_of(shape, 0, state[i].dtype()));
  }
  state.push_back(full_of({}, 0, DType::kI64));
  const auto place = [&](const Tensor& turn) {  // one-hot over the stack, as a column
    return ops::equal(ops::arange(AttrValue(bound)), turn);
  };
  const auto spread = [](const Tensor& hot, size_t rank) {
    Shape shape(rank + 1, Dim(1));
    shape[0] = hot.dim(0);
    return ops::reshape(hot, shape);
  };
  const Tensors after = current_interpreter().loop(
      [&](const Tensors& s) {
        auto values = bind(
            condition, Tensors(s.begin(), s.begin() + static_cast<ptrdiff_t>(carried)), captured);
        return ir::replay(condition, values);
      },
      [&](const Tensors& s) {
        const Tensors now(s.begin(), s.begin() + static_cast<ptrdiff_t>(carried));
        auto values = bind(body, now, captured);
        Tensors out = ir::replay(body, values);
        const Tensor hot = place(s.back());
        for (size_t i = 0; i < carried; ++i)
          out.push_back(ops::where(spread(hot, now[i].shape().size()), ops::unsqueeze(now[i], {0}),
                                   s[carried + i]));
        out.push_back(s.back() + Tensor::number(int64_t{1}));
        return out;
      },
      state, bound);

  // Backwards: cotangents of the carried values, sums for the captured ones, turns left.
  std::vector<size_t> wanted_captures;
  for (size_t i = carried; i < needed.size(); ++i)
    if (needed[i]) wanted_captures.push_back(i - carried);
  std::vector<size_t> floating;
  for (size_t i = 0; i < carried; ++i)
    if (is_differentiable(step.operands[i].dtype())) floating.push_back(i);
  Tensors back;
  for (const size_t i : floating)
    back.push_back(cotangents[i].defined() ? cotangents[i] : zeros_like(step.results[i]));
  for (const size_t i : wanted_captures) back.push_back(zeros_like(captured[i]));
  back.push_back(after.back());
  const Tensors result = current_interpreter().loop(
      [&](const Tensors& s) {
        return Tensors{ops::greater_than(s.back(), Tensor::number(int64_t{0}))};
      },
      [&](const Tensors& s) {
        const Tensor turn = s.back() - Tensor::number(int64_t{1});
        const Tensor hot = place(turn);
        Tensors now;
        for (size_t i = 0; i < carried; ++i) {
          const Tensor& stack = after[carried + i];
          const Tensor mask =
              ops::cast(spread(hot, step.operands[i].shape().size()), stack.dtype());
          const Tensor taken = ops::sum(stack * mask, std::vector<int64_t>{0}, stack.dtype());
          now.push_back(taken);
        }
        Tensors own;
        for (const Tensor& c : captured) own.push_back(ops::assign(c));
        auto values = bind(body, now, own);
        const Tensors results = ir::replay(body, values);
        Tensors cot(carried), inputs;
        for (size_t i = 0; i < floating.size(); ++i) cot[floating[i]] = s[i];
        for (const size_t i : floating) inputs.push_back(now[i]);
        for (const size_t i : wanted_captures) inputs.push_back(own[i]);
        Tensors grads = backward(*history_of(results[0]), results, cot, inputs);
        Tensors out;
        for (size_t i = 0; i < inputs.size(); ++i) {
          const Tensor g = grads[i].defined() ? grads[i] : zeros_like(inputs[i]);
          out.push_back(i < floating.size() ? g : s[i] + g);
        }
        out.push_back(turn);
        return out;
      },
      back, bound);
  Tensors out(step.operands.size());
  for (size_t i = 0; i < floating.size(); ++i) out[floating[i]] = result[i];
  for (size_t i = 0; i < wanted_captures.size(); ++i)
    out[carried + wanted_captures[i]] = result[floating.size() + i];
  return out;
}

}  // namespace

Tensors control_flow_vjp(const Step& step, const Tensors& cotangents,
                         const std::vector<bool>& needed) {
  return step.operation->regions[0]->arguments.empty() && step.op->name() == "cf.if"
             ? branch_vjp(step, cotangents, needed)
             : loop_vjp(step, cotangents, needed);
}

}  // namespace paddle::autograd
