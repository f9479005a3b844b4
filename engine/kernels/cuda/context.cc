#include "kernels/cuda/context.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "base/error.h"

namespace paddle::cuda {
namespace {

struct Context {
  std::once_flag once;
  CUdevice handle = 0;
  CUcontext context = nullptr;
  Gpu gpu;
};

Context& context_of(int device) {
  static auto& contexts = *new std::array<Context, kMaxGpus>;
  Context& out = contexts.at(static_cast<size_t>(device));
  std::call_once(out.once, [&] {
    const Driver& api = driver();
    CUdevice& handle = out.handle;
    check(api.cuDeviceGet(&handle, device), "cuDeviceGet");
    char name[256] = {};
    check(api.cuDeviceGetName(name, sizeof name, handle), "cuDeviceGetName");
    out.gpu.name = name;
    int major = 0, minor = 0;
    const auto attribute = [&](int which, int& value) {
      check(api.cuDeviceGetAttribute(&value, which, handle), "cuDeviceGetAttribute");
    };
    attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major);
    attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor);
    attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, out.gpu.multiprocessors);
    out.gpu.capability = major * 10 + minor;
    constexpr int kOldest = 80;
    if (out.gpu.capability < kOldest)
      fail(ErrorCode::kDevice, "cuda:", device, " (", name, ") has capability ", major, ".", minor,
           "; 8.0 or newer is needed");
    out.gpu.architecture_text = out.gpu.architecture();
    check(api.cuDevicePrimaryCtxRetain(&out.context, handle), "cuDevicePrimaryCtxRetain");
    check(api.cuCtxSetCurrent(out.context), "cuCtxSetCurrent");
    size_t available = 0;
    check(api.cuMemGetInfo(&available, &out.gpu.memory), "cuMemGetInfo");
  });
  return out;
}

}  // namespace

const Driver& driver() {
  const DriverLibrary& library = driver_library();
  if (!library.problem.empty()) fail(ErrorCode::kDevice, "cuda: ", library.problem);
  return library.functions;
}

int gpu_count() {
  static const int count = [] {
    int found = 0;
    check(driver().cuDeviceGetCount(&found), "cuDeviceGetCount");
    return std::min(found, kMaxGpus);
  }();
  return count;
}

std::string architecture_name(int capability) {
  // The suffix names the features of this one architecture, which later ones lack.
  return str("sm_", capability, capability == 90 ? "a" : "");
}

std::string Gpu::architecture() const { return architecture_name(capability); }

const Gpu& gpu(int device) { return context_of(device).gpu; }

CUdevice device_handle(int device) { return context_of(device).handle; }
CUcontext context_handle(int device) { return context_of(device).context; }

void use_gpu(int device) {
  thread_local CUcontext current = nullptr;
  const CUcontext wanted = context_of(device).context;
  if (current == wanted) return;
  check(driver().cuCtxSetCurrent(wanted), "cuCtxSetCurrent");
  current = wanted;
}

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const Driver& api = driver_library().functions;
  const char *name = nullptr, *text = nullptr;
  if (api.cuGetErrorName) api.cuGetErrorName(result, &name);
  if (api.cuGetErrorString) api.cuGetErrorString(result, &text);
  fail(ErrorCode::kDevice, "cuda: ", call, ": ", text ? text : "unknown error", " (",
       name ? std::string(name) : str(result), ")");
}

}  // namespace paddle::cuda
