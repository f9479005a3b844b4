#pragma once
// The state of CUDA on this machine, for `paddle doctor`. It opens the libraries, so a
// damaged one can end the process.

#include <string>
#include <vector>

namespace paddle::cuda {

struct Diagnosis {
  std::string driver, nvrtc;      ///< path and version; "" if they cannot be used
  std::string cublaslt, cudnn;    ///< the same, or why our own kernels compute instead
  std::vector<std::string> gpus;  ///< a line about each
  std::string problem;            ///< what keeps `--device cuda` from working; "" if nothing does
  /// Whether the machine has a driver: only then is the problem one to fix.
  bool has_driver = false;
};

Diagnosis diagnose();

}  // namespace paddle::cuda
