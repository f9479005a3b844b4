#pragma once
// Running one operation on concrete arrays: what the eager executor does for each call, and the
// compiled runtime for instructions whose sizes are known only while it runs.

#include <memory>
#include <vector>

#include "ops/kernel.h"
#include "tensor/interpreter.h"

namespace paddle::runtime {

/// Makes all built-in kernels known; called by every executor, does its work once.
void register_backends();

/// Symbolic dims inside attributes replaced by their values; throws if one has none.
Attrs bind_attrs(const Attrs& attrs, const SymbolLookup& lookup);
bool has_symbols(const Attrs& attrs);
/// The sizes of these dims, none if one has no value.
std::optional<Dims> bind_shape(const Shape& shape, const SymbolLookup& lookup);
/// Whether all dims in attributes have a value.
bool can_bind(const Attrs& attrs, const SymbolLookup& lookup);

/// Runs `op` on arrays (null where absent). `results` are the inferred types; their dims must be
/// constant except for operations of the trait kRunTimeShape.
std::vector<Array> execute(const Op& op, const Attrs& attrs,
                           const std::vector<const Array*>& operands,
                           const std::vector<TensorType>& results);

/// A contiguous array of its own memory.
Array copied(const Array& array);
/// The array's numbers in another type.
Array cast_array(const Array& array, DType to);

/// The layout that a view of `operand` has, or present = false if the operation is no view here.
Layout view_layout(const Op& op, const Attrs& attrs, const Layout& operand, const Dims& result);

/// While one lives, kernels that this thread prepares to execute a call at once are chosen for a
/// single run (KernelRequest::single_run): for code whose shapes change all the time, such as the
/// body of a loop that appends to a tensor.
class SingleRunScope {
 public:
  explicit SingleRunScope(bool active);
  ~SingleRunScope();
  SingleRunScope(const SingleRunScope&) = delete;
  SingleRunScope& operator=(const SingleRunScope&) = delete;

 private:
  bool before_;
};

/// The interpreter that computes each call at once.
class EagerExecutor final : public Interpreter {
 public:
  EagerExecutor() { register_backends(); }
  Tensors apply(const OpCall& call) override;
};

}  // namespace paddle::runtime
