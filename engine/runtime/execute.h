#pragma once
// Runs one operation on concrete arrays: every call of the eager executor, and those instructions
// of a plan whose sizes are known only at run time.

#include <memory>
#include <vector>

#include "ops/core/kernel.h"
#include "tensor/interpreter.h"

namespace paddle::runtime {

/// Registers all built-in backends with their devices and kernels, once; every executor calls it.
void register_backends();

/// Replaces symbolic dims in attributes by their values; kData if one is unbound.
Attrs bind_attrs(const Attrs& attrs, const SymbolLookup& lookup);
bool has_symbols(const Attrs& attrs);
/// The values of these dims; none if one is unbound.
std::optional<Dims> bind_shape(const Shape& shape, const SymbolLookup& lookup);
/// True if all dims in attributes are bound.
bool can_bind(const Attrs& attrs, const SymbolLookup& lookup);

/// Runs `op` on arrays (null where absent). `results` are the inferred types; their dims must be
/// constant except for operations of the trait kRunTimeShape. Operands that are elsewhere are
/// copied to the target's device, where the results are; on devices with streams they are not
/// computed yet. `collectives`: of the run, for collective operations.
std::vector<Array> execute(const Op& op, const Attrs& attrs,
                           const std::vector<const Array*>& operands,
                           const std::vector<TensorType>& results, const TargetInfo& target = {},
                           const PrepareOptions& prepare = {},
                           comm::Collectives* collectives = nullptr);

/// A contiguous copy that owns its memory, on the device of the array.
Array copied(const Array& array);
/// The array itself if it is contiguous, else a packed copy on its device.
Array packed(const Array& array);
/// Overwrites the contiguous array `target` with one of the same dtype and shape. A copy between
/// arrays of one device is only queued there.
void copy_into(const Array& target, const Array& source);
/// A copy of the array in another dtype.
Array cast_array(const Array& array, DType to);

/// The layout of the result as a view of `operand`; present = false if a copy is needed.
Layout view_layout(const Op& op, const Attrs& attrs, const Layout& operand, const Dims& result);

/// While active, eager calls on this thread choose kernels for a single run
/// (PrepareOptions::single_run): for code whose shapes change all the time, such as the body of a
/// loop that appends to a tensor.
class SingleRunScope {
 public:
  explicit SingleRunScope(bool active);
  ~SingleRunScope();
  SingleRunScope(const SingleRunScope&) = delete;
  SingleRunScope& operator=(const SingleRunScope&) = delete;

 private:
  bool before_;
};

/// The interpreter that executes each call immediately.
class EagerExecutor final : public Interpreter {
 public:
  /// Results are on the target's device; operands that are elsewhere are copied there.
  /// `collectives`: for collective operations; null in a run of one rank.
  explicit EagerExecutor(const TargetInfo& target = {}, const PrepareOptions& prepare = {},
                         comm::Collectives* collectives = nullptr)
      : target_(target), prepare_(prepare), collectives_(collectives) {
    register_backends();
  }
  Device device() const override { return target_.device; }
  Tensors apply(const OpCall& call) override;
  bool apply_known(const Op& op, const Tensors& operands, const Attrs& attrs,
                   Tensors& results) override;

 private:
  TargetInfo target_;
  PrepareOptions prepare_;
  comm::Collectives* collectives_;
};

}  // namespace paddle::runtime
