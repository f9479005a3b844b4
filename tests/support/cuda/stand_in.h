#pragma once
// The device `cuda` in tests, on the stand-ins for the driver and NVRTC.

#include <cstdlib>
#include <optional>

#include "base/files.h"
#include "base/text.h"
#include "runtime/execute.h"
#include "tensor/device.h"

namespace paddle {

/// The folder of the stand-ins, which programs then open; "" where they are not built.
inline std::string cuda_stand_ins() {
  const char* const programs = std::getenv("PADDLE_BIN");
  const std::string folder = str(programs ? programs : "", "/../fake_cuda");
  if (!programs || !file_exists(folder + "/libcuda.so.1") ||
      !file_exists(folder + "/libnvrtc.so.13"))
    return "";
  setenv("PADDLE_CUDA_LIBRARIES", folder.c_str(), 1);
  return folder;
}

/// The device; none where the stand-ins are not built.
inline std::optional<Device> cuda_stand_in() {
  if (cuda_stand_ins().empty()) return std::nullopt;
  runtime::register_backends();
  return parse_device("cuda");
}

}  // namespace paddle
