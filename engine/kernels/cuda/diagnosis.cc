#include "kernels/cuda/diagnosis.h"

#include "base/error.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/cuda.h"
#include "paddle/plugin/device.h"

namespace paddle::cuda {

Diagnosis diagnose() {
  Diagnosis out;
  const DriverLibrary& found = driver_library();
  out.has_driver = !found.path.empty();
  if (!found.problem.empty()) {
    out.problem = found.problem;
    return out;
  }
  out.driver = str(found.path, ", CUDA ", found.version / 1000, ".", found.version % 1000 / 10);
  try {
    for (int i = 0; i < gpu_count(); ++i) {
      gpu(i);  // throws what is wrong with it
      out.gpus.emplace_back(device_functions().describe(i));
    }
    if (out.gpus.empty()) out.problem = "the driver finds no GPU";
  } catch (const Error& error) {
    out.problem = error.message();
  }
  const NvrtcLibrary& compiler = nvrtc_library();
  if (compiler.problem.empty())
    out.nvrtc = str(compiler.path, ", ", compiler.major, ".", compiler.minor);
  else if (out.problem.empty())
    out.problem = "kernels cannot be compiled: " + compiler.problem;
  const auto describe = [](const auto& library, const char* what) {
    return library.problem.empty()
               ? str(library.path, ", ", library.version)
               : str("not used, own kernels compute ", what, ": ", library.problem);
  };
  out.cublaslt = describe(cublaslt_library(), "products");
  out.cudnn = describe(cudnn_library(), "convolutions");
  return out;
}

}  // namespace paddle::cuda
