#pragma once
// Traced functions of tensors, compiled, with a gradient. Not for use outside the room.

#include <memory>
#include <mutex>
#include <vector>

#include "ir/tracer.h"
#include "runtime/executable.h"

namespace paddle::python {

class CompiledGraph {
 public:
  /// Compiles the function of a tracer as it is now. `by` and `of`: the inputs and the outputs, by
  /// index, between which gradients flow. With `exact` its results have the bits of eager calls.
  CompiledGraph(ir::Tracer& tracer, const std::vector<size_t>& by, const std::vector<size_t>& of,
                bool exact);

  /// The outputs for one tensor per input, of the types that were traced; those of `of` with a
  /// record, if one of `by` has one. The caller has Python's lock, which is released meanwhile if
  /// `is_long` or if another thread runs the function.
  Tensors operator()(const Tensors& inputs, bool is_long);
  /// The same with or without Python's lock, which stays as it is.
  Tensors run(const Tensors& inputs);

  const ir::Function& function() const { return *function_; }
  /// The number of operations of the gradient.
  int64_t backward_operations() const;

 private:
  /// The gradient. It takes all inputs of the function, values that the function computed, and the
  /// gradients of the outputs.
  struct Backward {
    std::shared_ptr<ir::Function> joint;  ///< (inputs, gradients of outputs) -> gradients
    std::unique_ptr<runtime::Executable> run;
    std::vector<size_t> outputs, inputs;  ///< those with a gradient, by index
    std::mutex mutex;

    /// Gradients of inputs, from those of outputs, which are of the types of `of`.
    Tensors pull(const Tensors& operands, const Tensors& of, const std::vector<Array>& given,
                 const std::vector<Array>& residuals, Tensors cotangents);
  };

  /// The outputs of a run, with a record.
  Tensors recorded(const Tensors& inputs, std::vector<Array> given, std::vector<Array> results);
  void add_backward(ir::Tracer& tracer, const std::vector<size_t>& by,
                    const std::vector<size_t>& of, bool exact);

  std::shared_ptr<ir::Function> function_;  ///< its last outputs are what the gradient reads
  std::unique_ptr<runtime::Executable> run_;
  size_t outputs_ = 0;  ///< those of the traced function
  std::shared_ptr<Backward> backward_;
  std::mutex mutex_;
};

}  // namespace paddle::python
