#pragma once
// The tracer: an interpreter that records each call as an operation of a function instead of
// executing it. The content of a traced tensor is an SSA value.

#include <string>
#include <vector>

#include "ir/module.h"

namespace paddle::ir {

struct TracedValue : Content {
  Value* value = nullptr;
  Function* function = nullptr;
};

/// The SSA value of a tensor, or null if it is not traced.
Value* traced_value(const Tensor& tensor);
/// Names the value of a traced operation that has no name yet. Inputs, parameters and states have
/// those of their ports.
void name_traced(const Tensor& tensor, const std::string& name);
Function* traced_function(const Tensor& tensor);

class Tracer final : public Interpreter {
 public:
  explicit Tracer(Function& function);

  Tensors apply(const OpCall& call) override;
  Tensors branch(const Tensor& condition, const TensorFn& then_fn,
                 const TensorFn& else_fn) override;
  Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
               int64_t max_steps) override;
  bool traces() const override { return true; }
  Device device() const override { return function_.target.device; }

  /// A tensor for an argument of the function.
  Tensor input(Port port, TensorType type);
  void output(Port port, const Tensor& tensor);
  /// The SSA value of a tensor in this function; an array becomes a constant.
  Value* value_of(const Tensor& tensor);
  Tensor tensor_of(Value* value) const;
  Function& function() { return function_; }

  /// Traces `fn` into a new region whose arguments have the given types.
  std::unique_ptr<Region> region(const TensorFn& fn, const std::vector<TensorType>& arguments);

 private:
  Function& function_;
  Region* region_;
  /// Arrays that became constants, so that each becomes a single one.
  std::map<const Content*, std::pair<std::shared_ptr<const Content>, Value*>> constants_;
};

/// Sets the source location of operations that are traced in this scope.
class LocationScope {
 public:
  explicit LocationScope(std::string location);
  ~LocationScope();
  LocationScope(const LocationScope&) = delete;
  LocationScope& operator=(const LocationScope&) = delete;
  static const std::string& current();

 private:
  std::string location_;
  LocationScope* previous_;
};

}  // namespace paddle::ir
