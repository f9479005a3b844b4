#pragma once
// The CUDA libraries of the machine, found when a program first asks for them: no program links
// them. Order: the folders in PADDLE_CUDA_LIBRARIES, the dynamic linker's, those of the toolkit,
// and the wheels (site-packages/nvidia) of the `python3` on PATH.

#include <string>
#include <vector>

#include "kernels/cuda/abi/cublaslt.h"
#include "kernels/cuda/abi/cudnn.h"
#include "kernels/cuda/abi/driver.h"
#include "kernels/cuda/abi/nvrtc.h"

namespace paddle::cuda {

struct Library {
  void* handle = nullptr;  ///< stays open
  std::string path;
};

/// Opens the first library that is found under one of the names, the first name first. `handle` is
/// null if there is none; `problem` then says what was looked for and why it failed.
Library open_library(const std::vector<std::string>& names, std::string& problem);
/// The folders that are searched besides the dynamic linker's, in order; those of
/// PADDLE_CUDA_LIBRARIES are the first `first`.
std::vector<std::string> library_folders(size_t& first);

/// The driver: libcuda.so.1. Functions are null, and `problem` is set, if it cannot be used.
struct DriverLibrary {
  Driver functions{};
  std::string path, problem;
  int version = 0;  ///< 13000 for CUDA 13.0
};
const DriverLibrary& driver_library();

/// The compiler of kernels. Its major version is that of the driver if possible.
struct NvrtcLibrary {
  Nvrtc functions{};
  std::string path, problem;
  int major = 0, minor = 0;
};
const NvrtcLibrary& nvrtc_library();

/// Products of matrices: cuBLASLt of the driver's major version. Where it is missing our own
/// kernels compute them.
struct CublasLtLibrary {
  CublasLt functions{};
  std::string path, problem;
  std::string version;  ///< "13.4.1"
};
const CublasLtLibrary& cublaslt_library();

/// Convolutions and attention: cuDNN 9. Where it is missing our own kernels compute them.
struct CudnnLibrary {
  Cudnn functions{};
  std::string path, problem;
  std::string version;  ///< "9.26.0"
};
const CudnnLibrary& cudnn_library();

/// NVRTC as found without asking a driver, newest first.
NvrtcLibrary open_nvrtc(int driver_version);

}  // namespace paddle::cuda
