#pragma once
// The target of a program, and how its kernels are prepared. Functions, the eager executor,
// passes and plans have a TargetInfo; PrepareOptions are given to those who prepare kernels and are
// not a property of the program.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/device.h"

namespace paddle {

class KernelChoices;

/// Which convolutions prefer images with channels last, by their number of channels.
struct ImageLayout {
  int64_t channels_last = 32;  ///< with at least this number; 0: none
  /// The number in functions that have a convolution of `channels_last`, and for volumes.
  int64_t also_channels_last = 8;
  bool operator==(const ImageLayout&) const = default;
};

/// The most that a fusion group of elementwise operations may hold.
struct FusionLimits {
  int64_t operations = 48, operands = 24, reductions = 4;
  bool operator==(const FusionLimits&) const = default;
};

/// The machine that a program is compiled for. It is printed and parsed with the function
/// (ir/target_text.h).
struct TargetInfo {
  /// Whose kernels run the operations, and whose memory holds operands and results. Operations
  /// without a kernel there are decomposed.
  Device device = {};
  /// Of its processor, such as "x86-64" or "sm_90"; "" until `resolved` asks the device's backends.
  std::string architecture = {};
  std::vector<std::string> features = {};  ///< that kernels use, such as "avx2"; ascending
  ImageLayout images = {};
  FusionLimits fusion = {};
  int64_t tile_bytes = 0;  ///< working set of batch tiling (runtime/batch_tiling.h); 0: no tiling
  int64_t alignment = 64;  ///< of buffers in an arena, in bytes; a power of two
  int64_t memory = 0;      ///< bytes that a plan may need; 0: what the device gives

  bool operator==(const TargetInfo&) const = default;
};

/// The target with what its backends say about the device, if its architecture is not stated.
TargetInfo resolved(const TargetInfo& target);

/// How kernels are chosen and prepared.
struct PrepareOptions {
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
