#pragma once
// The calls that a thread made eagerly, with their result types and prepared kernels: a program
// that repeats a call on small arrays spends its time on what is computed again for each of them.

#include <array>
#include <memory>

#include "ops/core/kernel.h"
#include "tensor/interpreter.h"

namespace paddle::runtime {

class KnownCalls {
 public:
  static KnownCalls& of_this_thread();

  /// Prepares the kernel of a call on arrays of the host and keeps it in place of an older one;
  /// false if no kernel takes it, if it is not worth keeping, or if an operand must be packed
  /// first.
  bool add(const OpCall& call);
  /// Runs a call that was added with operands of the same types and layouts; false if there was
  /// none.
  bool run(const Op& op, const Tensors& operands, const Attrs& attrs, Tensors& results);

 private:
  struct Known;
  struct Destroy {
    void operator()(Known* known) const;
  };
  static constexpr size_t kSlots = 1024;
  static constexpr size_t kWays = 2;

  std::array<std::unique_ptr<Known, Destroy>, kSlots> slots_;
  uint64_t clock_ = 0;
  int running_ = 0;  ///< kernels that run now, which may call further ones
};

}  // namespace paddle::runtime
