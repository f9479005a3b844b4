#pragma once
// The one interface through which every operation runs. A function in ops/ checks its arguments,
// infers result types and hands the call to the innermost interpreter of this thread; upper rooms
// install interpreters (eager executor, tape, tracer, mixed precision, …) for a scope.

#include <functional>
#include <memory>
#include <span>

#include "tensor/tensor.h"

namespace paddle {

struct Op;     // ops/op.h
struct Attrs;  // ops/attrs.h

/// A relation between dims that could be neither proved nor refuted; checked when dims are bound.
struct DimConstraint {
  Dim left, right;
  std::string what;  ///< "matmul: inner dimensions differ"
};

/// A checked call. `operands` is flat: list operands take `attrs.list_sizes` places each, absent
/// optional ones are undefined tensors.
struct OpCall {
  const Op& op;
  const Tensors& operands;
  const Attrs& attrs;
  const std::vector<TensorType>& results;
  const std::vector<DimConstraint>& constraints;
};

/// A part of a program as code: a function from tensors to tensors.
using TensorFn = std::function<Tensors(const Tensors&)>;

class Interpreter {
 public:
  virtual ~Interpreter() = default;
  virtual Tensors apply(const OpCall& call) = 0;
  /// Applies a call that needs no checks, since one of the same operation, attributes and types of
  /// operands was applied before; false, with nothing done, if there was none. Only interpreters
  /// that compute at once know calls.
  virtual bool apply_known(const Op& /*op*/, const Tensors& /*operands*/, const Attrs& /*attrs*/,
                           Tensors& /*results*/) {
    return false;
  }
  /// Control flow on tensors: `condition` is a tensor of one element. Both branches return values
  /// of the same number and dtypes. By default the condition's value decides which one is called.
  virtual Tensors branch(const Tensor& condition, const TensorFn& then_fn, const TensorFn& else_fn);
  /// Repeats `body` on the carried tensors while `condition` holds, at most `max_steps` times
  /// (negative: no bound). By default turn by turn, as the condition's values say.
  virtual Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
                       int64_t max_steps);
  /// True if values are symbols, so that code must not ask for numbers.
  virtual bool traces() const { return false; }
  /// Where the calls will run.
  virtual Device device() const { return {}; }

 protected:
  /// The interpreter below this one; calls made in `apply` go there inside an OuterScope.
  Interpreter& next() const { return *next_; }

 private:
  friend class InterpreterScope;
  Interpreter* next_ = nullptr;
};

/// An interpreter that changes some calls and passes the others on; it is in force in the parts of
/// the program that control flow calls, too.
class ForwardingInterpreter : public Interpreter {
 public:
  Tensors branch(const Tensor& condition, const TensorFn& then_fn,
                 const TensorFn& else_fn) override;
  Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
               int64_t max_steps) override;
  bool traces() const override { return next().traces(); }
  Device device() const override { return next().device(); }

 private:
  /// The function with this interpreter on top again.
  TensorFn within(const TensorFn& fn);
};

/// The innermost interpreter of this thread; throws kInternal if none is installed.
Interpreter& current_interpreter();

/// Installs an interpreter for a scope.
class InterpreterScope {
 public:
  explicit InterpreterScope(Interpreter& interpreter);
  ~InterpreterScope();
  InterpreterScope(const InterpreterScope&) = delete;
  InterpreterScope& operator=(const InterpreterScope&) = delete;

 private:
  Interpreter* previous_;
};

/// Makes the interpreter below `inner` the current one for a scope.
class ScopedInterpreter {
 public:
  explicit ScopedInterpreter(Interpreter& below);
  ~ScopedInterpreter();
  ScopedInterpreter(const ScopedInterpreter&) = delete;
  ScopedInterpreter& operator=(const ScopedInterpreter&) = delete;

 private:
  Interpreter* previous_;
};

}  // namespace paddle
