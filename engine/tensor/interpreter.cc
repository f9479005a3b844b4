#include "tensor/interpreter.h"

namespace paddle {
namespace {
thread_local Interpreter* current = nullptr;
}

Tensors Interpreter::branch(const Tensor& condition, const TensorFn& then_fn,
                            const TensorFn& else_fn) {
  return condition.array().on_host().number() != 0 ? then_fn({}) : else_fn({});
}

Tensors Interpreter::loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
                          int64_t max_steps) {
  Tensors values = carried;
  for (int64_t i = 0; max_steps < 0 || i < max_steps; ++i) {
    if (condition(values)[0].array().on_host().number() == 0) break;
    values = body(values);
  }
  return values;
}

TensorFn ForwardingInterpreter::within(const TensorFn& fn) {
  return [this, fn](const Tensors& tensors) {
    const InterpreterScope again(*this);
    return fn(tensors);
  };
}

Tensors ForwardingInterpreter::branch(const Tensor& condition, const TensorFn& then_fn,
                                      const TensorFn& else_fn) {
  const ScopedInterpreter below(next());
  return next().branch(condition, within(then_fn), within(else_fn));
}

Tensors ForwardingInterpreter::loop(const TensorFn& condition, const TensorFn& body,
                                    const Tensors& carried, int64_t max_steps) {
  const ScopedInterpreter below(next());
  return next().loop(within(condition), within(body), carried, max_steps);
}

Interpreter& current_interpreter() {
  ensure(current != nullptr, "no interpreter is installed on this thread");
  return *current;
}

InterpreterScope::InterpreterScope(Interpreter& interpreter) : previous_(current) {
  interpreter.next_ = current;
  current = &interpreter;
}

InterpreterScope::~InterpreterScope() { current = previous_; }

ScopedInterpreter::ScopedInterpreter(Interpreter& below) : previous_(current) { current = &below; }

ScopedInterpreter::~ScopedInterpreter() { current = previous_; }

}  // namespace paddle
