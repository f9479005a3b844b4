#pragma once
// Backends: providers of kernels for a kind of device, and what passes and executors ask them.

#include <vector>

#include "base/error.h"
#include "ops/core/fused.h"
#include "ops/core/kernel.h"

namespace paddle {

/// Functions may be null: the backend has none of this then.
struct Backend {
  const char* name;         ///< "onednn"
  int16_t device_kind = 0;  ///< whose memory its kernels read and write
  /// Kernels of any operation, besides those that `register_kernel` adds one by one.
  PrepareFn prepare = nullptr;
  /// Whether `prepare` can have one for operands of these dtypes, or of some without any given; not
  /// null with it.
  bool (*has_kernel)(const Op& op, const TargetInfo& target,
                     std::span<const DType> operands) = nullptr;
  PrepareFusedFn prepare_fused = nullptr;
  CanFuseEpilogueFn can_fuse_epilogue = nullptr;
  FusesAroundFn fuses_around = nullptr;
  /// True if 8-bit values of type `x` are multiplied by these int8 weights exactly, and faster than
  /// floats.
  bool (*has_int8_kernel)(const TargetInfo& target, DType x, const Array& weight) = nullptr;
  /// True if 8-bit activations of these types are multiplied exactly, whatever their zero points,
  /// and faster than floats.
  bool (*has_int8_matmul)(const TargetInfo& target, DType x, DType y) = nullptr;
  /// Says what the backend knows about the target's device: its architecture, and the layouts,
  /// limits and sizes that are best there.
  void (*describe)(TargetInfo& target) = nullptr;
};

/// Adds a backend; among those of a device the one that was registered last is asked first. Names
/// stay valid to the end of the process. kUsage for a name that is taken.
void register_backend(const Backend& backend);
/// Adds backends while other threads prepare kernels, such as those of a plug-in's device: all of
/// them, or none, with the error at `where`.
void add_backends(const std::vector<Backend>& backends, const SourceLocation& where);
/// The backend of this name; null if there is none.
const Backend* find_backend(std::string_view name);
/// Those of the kind of device, in the order in which they are asked.
const std::vector<const Backend*>& backends_of(Device device);

bool has_int8_kernel(const TargetInfo& target, DType x, const Array& weight);
bool has_int8_matmul(const TargetInfo& target, DType x = DType::kU8, DType y = DType::kU8);

}  // namespace paddle
