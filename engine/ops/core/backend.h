#pragma once
// Backends: providers of kernels for a kind of device, and what passes and executors ask them.

#include "ops/core/fused.h"
#include "ops/core/kernel.h"

namespace paddle {

/// Functions may be null: the backend has none of this then.
struct Backend {
  const char* name;         ///< "onednn"
  int16_t device_kind = 0;  ///< whose memory its kernels read and write
  /// Kernels of any operation, besides those that `register_kernel` adds one by one.
  PrepareFn prepare = nullptr;
  bool (*has_kernel)(const Op& op) = nullptr;  ///< whether `prepare` can have one; not null with it
  PrepareFusedFn prepare_fused = nullptr;
  CanFuseEpilogueFn can_fuse_epilogue = nullptr;
  /// True if 8-bit values of type `x` are multiplied by these int8 weights exactly, and faster than
  /// floats.
  bool (*has_int8_kernel)(DType x, const Array& weight) = nullptr;
  /// True if two 8-bit activations are multiplied exactly, whatever their zero points, and faster
  /// than floats.
  bool (*has_int8_matmul)() = nullptr;
};

/// Adds a backend; among those of a device the one that was registered last is asked first. All
/// backends are registered before the first kernel is prepared.
void register_backend(const Backend& backend);
/// The backend of this name; null if there is none.
const Backend* find_backend(std::string_view name);
/// Those of the kind of device, in the order in which they are asked.
const std::vector<const Backend*>& backends_of(Device device);

bool has_int8_kernel(const Target& target, DType x, const Array& weight);
bool has_int8_matmul(const Target& target);

}  // namespace paddle
