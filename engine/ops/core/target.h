#pragma once
// The target of a program: the device that runs it, and how kernels are chosen and prepared there.
// Functions, the eager executor, passes and plans have one.

#include "tensor/device.h"

namespace paddle {

class KernelChoices;

struct Target {
  /// Whose kernels run the operations, and whose memory holds operands and results. Operations
  /// without a kernel there are decomposed.
  Device device = {};
  /// Fusion groups may be compiled to machine code, if the code generator is available.
  bool codegen = true;
  /// Constant 3 × 3 convolutions may use the Winograd transform, which costs some of the last bits.
  bool allow_winograd = false;
  /// Few runs are expected: do not prepack constants, which takes memory and as long as a run.
  bool skip_prepack = false;
  /// The kernel runs once and its shapes may never come again: decline what takes longer to prepare
  /// than another kernel takes to run.
  bool single_run = false;
  /// This backend was asked for (BackendScope): decline only what cannot be computed, not what
  /// another backend computes faster.
  bool backend_pinned = false;
  /// Consulted where several backends or algorithms can compute a request; null: the default order.
  KernelChoices* choices = nullptr;
};

}  // namespace paddle
