#pragma once
// The driver's context of each GPU, and its errors as exceptions.

#include <string>

#include "kernels/cuda/libraries.h"
#include "tensor/device.h"

namespace paddle::cuda {

/// GPUs after these are not used.
inline constexpr int kMaxGpus = 64;

/// The driver's functions. kDevice, with the reason, if there is no usable driver or GPU.
const Driver& driver();
/// The number of GPUs; needs a driver.
int gpu_count();

/// Facts about a GPU.
struct Gpu {
  std::string name;
  int capability = 0;  ///< 90 for 9.0
  int multiprocessors = 1;
  size_t memory = 0;  ///< bytes in all
  /// The architecture that kernels are compiled for, such as "sm_90a".
  std::string architecture() const;
  std::string architecture_text = {};  ///< the same, to the end of the process
};
const Gpu& gpu(int device);
/// The name of an architecture of this capability.
std::string architecture_name(int capability);

/// The handles that the driver knows the GPU by.
CUdevice device_handle(int device);
CUcontext context_handle(int device);
/// Makes the GPU's context that of this thread.
void use_gpu(int device);

/// Throws the driver's error of this call; kDevice.
void check(CUresult result, const char* call);

}  // namespace paddle::cuda
