// A stand-in for libcuda.so.1 with two GPUs that are emulated on the CPU.
//
// - The host cannot read or write device memory: its pages are accessible only while work runs.
// - Streams run nothing until a caller waits, and then in a random order that events allow.
// - The threads of a block run in a random order between barriers, on stacks of their own.
// - While a stream is captured, calls that the driver forbids then spoil the capture: to wait, to
//   allocate and to load modules on the capturing thread, and events on the stream.
//
// Variables: PADDLE_FAKE_CUDA_SEED (order), _CAPABILITY (90), _MEMORY (bytes per GPU, 1 GiB),
// _DEVICES (2), _VERSION (13000), _FAIL ("cuMemAlloc_v2:3": the third call fails; ":3+": it and all
// later ones; "cuLaunchKernel:2:700" with this error), _LOG (a file that gets the number of
// launches by kernel when the process ends), _IDLE (1: kernels are counted but do not run, so that
// steps of any size are quick; results are then what memory holds).
//
// Tests in the same process plant errors and count what is alive with the functions of
// fake_driver.h.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "block_runner.h"
#include "fake_driver.h"
#include "fake_memory.h"
#include "fake_streams.h"

namespace {

void write_log() {
  const char* const path = std::getenv("PADDLE_FAKE_CUDA_LOG");
  if (!path) return;
  FILE* const file = std::fopen(path, "w");
  if (!file) return;
  for (const auto& [name, count] : world().launches)
    std::fprintf(file, "launch %s %llu\n", name.c_str(), static_cast<unsigned long long>(count));
  for (const auto& [name, count] : world().calls)
    std::fprintf(file, "call %s %llu\n", name.c_str(), static_cast<unsigned long long>(count));
  for (int d = 0; d < kMaxDevices; ++d)
    for (const auto& [memory, bytes] : context_of(d).memory.live)
      std::fprintf(file, "live %d %zu\n", d, bytes);
  std::fclose(file);
}

/// The error that a call is to fail with, or 0.
int planted(const char* name) {
  World& all = world();
  const uint64_t call = ++all.calls[name];
  if (all.planted_call == name && all.planted_after > 0) {
    --all.planted_after;
  } else if (all.planted_call == name) {
    if (!all.planted_lasts) all.planted_call.clear();
    if (std::strstr(name, "Synchronize")) all.sticky = 999;
    return std::strstr(name, "Alloc") ? kOutOfMemory : 999;
  }
  const char* const wanted = std::getenv("PADDLE_FAKE_CUDA_FAIL");
  if (!wanted) return 0;
  const size_t length = std::strlen(name);
  if (std::strncmp(wanted, name, length) != 0 || wanted[length] != ':') return 0;
  char* rest = nullptr;
  const uint64_t first = std::strtoull(wanted + length + 1, &rest, 10);
  const bool lasts = *rest == '+';
  if (lasts ? call < first : call != first) return 0;
  rest += lasts;
  const int error = *rest == ':' ? std::atoi(rest + 1)
                    : std::strncmp(name, "cuMem", 5) == 0 && std::strstr(name, "Alloc")
                        ? kOutOfMemory
                        : 999;
  // An error that a wait reports has ended the work of the GPU.
  if (std::strstr(name, "Synchronize")) all.sticky = error;
  return error;
}

struct FakeModule {
  void* library = nullptr;
};
struct FakeFunction {
  std::string name;
  void (*kernel)(const void*) = nullptr;
  size_t bytes = 0;
  Emulation* emulation = nullptr;
};

/// Where an address is; -1 if it is not in device memory.
int device_of(unsigned long long at, size_t bytes) {
  for (int d = 0; d < kMaxDevices; ++d)
    if (context_of(d).memory.holds(at, bytes)) return d;
  return -1;
}

int device_count() { return std::clamp(static_cast<int>(setting("DEVICES", 2)), 0, kMaxDevices); }

/// Host memory of the driver.
std::map<void*, size_t>& host_memory() {
  static auto& all = *new std::map<void*, size_t>;
  return all;
}
/// Registered host memory.
std::map<void*, size_t>& pinned() {
  static auto& all = *new std::map<void*, size_t>;
  return all;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))
#define ENTER(name)                                       \
  const std::lock_guard<std::mutex> guard(lock_of_all()); \
  if (const int error = planted(name)) return error
/// A call that is forbidden to a thread that captures.
#define ENTER_UNSAFE(name) \
  ENTER(name);             \
  if (const int error = unsafe_call()) return error

EXPORT int cuInit(unsigned) {
  ENTER("cuInit");
  static const bool registered = [] {
    std::atexit(write_log);
    return true;
  }();
  (void)registered;
  return device_count() == 0 ? kNoDevice : 0;
}
EXPORT int cuDriverGetVersion(int* version) {
  ENTER("cuDriverGetVersion");
  *version = static_cast<int>(setting("VERSION", 13000));
  return 0;
}
EXPORT int cuGetErrorName(int error, const char** name) {
  *name = error == kOutOfMemory          ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == 700                 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == kInvalid            ? "CUDA_ERROR_INVALID_VALUE"
          : error == kNotFound           ? "CUDA_ERROR_NOT_FOUND"
          : error == kNoBinary           ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
          : error == kCaptureUnsupported ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
          : error == kCaptureInvalidated ? "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
                                         : "CUDA_ERROR_UNKNOWN";
  return 0;
}
EXPORT int cuGetErrorString(int error, const char** text) {
  *text = error == kOutOfMemory ? "out of memory"
          : error == 700        ? "an illegal memory access was encountered"
                                : "unknown error";
  return 0;
}
EXPORT int cuDeviceGetCount(int* count) {
  ENTER("cuDeviceGetCount");
  *count = device_count();
  return 0;
}
EXPORT int cuDeviceGet(int* device, int ordinal) {
  ENTER("cuDeviceGet");
  if (ordinal < 0 || ordinal >= device_count()) return kInvalid;
  *device = ordinal;
  return 0;
}
EXPORT int cuDeviceGetName(char* name, int size, int) {
  ENTER("cuDeviceGetName");
  std::snprintf(name, static_cast<size_t>(size), "Emulated GPU");
  return 0;
}
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
  ENTER("cuDeviceGetAttribute");
  const auto capability = static_cast<int>(setting("CAPABILITY", 90));
  switch (attribute) {
    case 75:
      *value = capability / 10;
      return 0;
    case 76:
      *value = capability % 10;
      return 0;
    case 16:
      *value = 4;
      return 0;
    default:
      return kInvalid;
  }
}
EXPORT int cuDevicePrimaryCtxRetain(FakeContext** context, int device) {
  ENTER("cuDevicePrimaryCtxRetain");
  *context = &context_of(device);
  return 0;
}
EXPORT int cuCtxSetCurrent(FakeContext* context) {
  current = context;
  return 0;
}
EXPORT int cuMemGetInfo_v2(size_t* available, size_t* total) {
  ENTER("cuMemGetInfo_v2");
  if (!current) return kInvalidContext;
  *total = current->memory.limit();
  *available = *total - std::min(*total, current->memory.allocated);
  return 0;
}
EXPORT int cuMemAlloc_v2(unsigned long long* memory, size_t bytes) {
  ENTER_UNSAFE("cuMemAlloc_v2");
  if (!current) return kInvalidContext;
  *memory = current->memory.allocate(bytes);
  return *memory ? 0 : kOutOfMemory;
}
EXPORT int cuMemFree_v2(unsigned long long memory) {
  ENTER_UNSAFE("cuMemFree_v2");
  if (!current) return kInvalidContext;
  return current->memory.release(memory) ? 0 : kInvalid;
}
EXPORT int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  ENTER_UNSAFE("cuMemHostAlloc");
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*memory) host_memory().emplace(*memory, bytes);
  return *memory ? 0 : kOutOfMemory;
}
EXPORT int cuMemFreeHost(void* memory) {
  ENTER_UNSAFE("cuMemFreeHost");
  if (host_memory().erase(memory) == 0) return kInvalid;
  std::free(memory);
  return 0;
}
EXPORT int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes,
                                FakeStream* stream) {
  ENTER("cuMemcpyHtoDAsync_v2");
  if (!stream || device_of(to, bytes) != stream->device || device_of((uintptr_t)from, 1) >= 0)
    return kInvalid;
  return push(stream, [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
}
EXPORT int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes,
                                FakeStream* stream) {
  ENTER("cuMemcpyDtoHAsync_v2");
  if (!stream || device_of(from, bytes) != stream->device || device_of((uintptr_t)to, 1) >= 0)
    return kInvalid;
  return push(stream, [=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
}
EXPORT int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes,
                                FakeStream* stream) {
  ENTER("cuMemcpyDtoDAsync_v2");
  if (!stream || device_of(to, bytes) != stream->device || device_of(from, bytes) < 0)
    return kInvalid;
  return push(stream, [=] {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  });
}
EXPORT int cuMemsetD8Async(unsigned long long to, unsigned char byte, size_t bytes,
                           FakeStream* stream) {
  ENTER("cuMemsetD8Async");
  if (!stream || device_of(to, bytes) != stream->device) return kInvalid;
  return push(stream, [=] { std::memset(reinterpret_cast<void*>(to), byte, bytes); });
}
EXPORT int cuStreamCreate(FakeStream** stream, unsigned) {
  ENTER("cuStreamCreate");
  if (!current) return kInvalidContext;
  *stream = new FakeStream;
  (*stream)->device = current->device;
  world().streams.push_back(*stream);
  return 0;
}
EXPORT int cuStreamDestroy_v2(FakeStream* stream) {
  ENTER("cuStreamDestroy_v2");
  run_until(stream, stream->pushed);
  std::erase(world().streams, stream);
  world().destroyed.push_back(stream);
  return 0;
}
EXPORT int cuStreamSynchronize(FakeStream* stream) {
  ENTER_UNSAFE("cuStreamSynchronize");
  if (const int error = unsafe_on(stream)) return error;
  return run_until(stream, stream->pushed);
}
EXPORT int cuStreamWaitEvent(FakeStream* stream, FakeEvent* event, unsigned) {
  ENTER("cuStreamWaitEvent");
  if (stream->capture) {
    stream->is_spoiled = true;
    return kCaptureIsolation;
  }
  if (!event->stream || event->stream == stream) return 0;
  return push(stream, nullptr, *event);
}
EXPORT int cuEventCreate(FakeEvent** event, unsigned flags) {
  ENTER("cuEventCreate");
  *event = new FakeEvent;
  ++world().live.events;
  (*event)->timed = (flags & 2) == 0;
  return 0;
}
EXPORT int cuEventDestroy_v2(FakeEvent* event) {
  ENTER("cuEventDestroy_v2");
  delete event;
  --world().live.events;
  return 0;
}
EXPORT int cuEventRecord(FakeEvent* event, FakeStream* stream) {
  ENTER("cuEventRecord");
  if (const int error = unsafe_on(stream)) return error;
  if (event->timed) {
    event->time = std::make_shared<uint64_t>(0);
    push(stream, [time = event->time] { *time = world().clock; });
  }
  event->stream = stream;
  event->count = stream->pushed;
  return 0;
}
EXPORT int cuEventQuery(FakeEvent* event) {
  ENTER_UNSAFE("cuEventQuery");
  return reached(*event) ? world().sticky : kNotReady;
}
EXPORT int cuEventSynchronize(FakeEvent* event) {
  ENTER_UNSAFE("cuEventSynchronize");
  return event->stream ? run_until(event->stream, event->count) : 0;
}
/// A piece of work takes a millisecond.
EXPORT int cuEventElapsedTime(float* milliseconds, FakeEvent* begin, FakeEvent* end) {
  ENTER("cuEventElapsedTime");
  if (!begin->time || !end->time) return kInvalidHandle;
  if (!reached(*begin) || !reached(*end)) return kNotReady;
  *milliseconds = static_cast<float>(*end->time - *begin->time);
  return 0;
}
EXPORT int cuDeviceCanAccessPeer(int* can_access, int device, int peer) {
  ENTER("cuDeviceCanAccessPeer");
  *can_access = device != peer ? 1 : 0;
  return 0;
}
EXPORT int cuCtxEnablePeerAccess(FakeContext* peer, unsigned) {
  ENTER("cuCtxEnablePeerAccess");
  static auto& enabled = *new std::map<std::pair<FakeContext*, FakeContext*>, bool>;
  if (!current || current == peer) return kInvalidContext;
  bool& is_enabled = enabled[{current, peer}];
  if (is_enabled) return kAlreadyEnabled;
  is_enabled = true;
  return 0;
}
EXPORT int cuMemcpyPeerAsync(unsigned long long to, FakeContext* to_context,
                             unsigned long long from, FakeContext* from_context, size_t bytes,
                             FakeStream* stream) {
  ENTER("cuMemcpyPeerAsync");
  if (!to_context->memory.holds(to, bytes) || !from_context->memory.holds(from, bytes))
    return kInvalid;
  return push(stream, [=] {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  });
}
EXPORT int cuMemAllocAsync(unsigned long long* memory, size_t bytes, FakeStream* stream) {
  ENTER("cuMemAllocAsync");
  if (const int error = unsafe_on(stream)) return error;  // we never let it become a node
  *memory = context_of(stream->device).memory.allocate(bytes);
  return *memory ? 0 : kOutOfMemory;
}
EXPORT int cuMemFreeAsync(unsigned long long memory, FakeStream* stream) {
  ENTER("cuMemFreeAsync");
  Memory& all = context_of(stream->device).memory;
  if (!all.live.contains(memory)) return kInvalid;
  return push(stream, [&all, memory] { all.release(memory); });
}
EXPORT int cuDeviceGetDefaultMemPool(FakeContext** pool, int device) {
  ENTER("cuDeviceGetDefaultMemPool");
  *pool = &context_of(device);
  return 0;
}
EXPORT int cuMemPoolSetAttribute(FakeContext* pool, int attribute, void* value) {
  ENTER("cuMemPoolSetAttribute");
  return pool && value && attribute == 4 ? 0 : kInvalid;
}
EXPORT int cuMemPoolTrimTo(FakeContext* pool, size_t) {
  ENTER("cuMemPoolTrimTo");
  return pool ? 0 : kInvalid;
}
EXPORT int cuMemHostRegister_v2(void* memory, size_t bytes, unsigned) {
  ENTER_UNSAFE("cuMemHostRegister_v2");
  return memory && bytes > 0 && pinned().emplace(memory, bytes).second ? 0 : kInvalid;
}
EXPORT int cuMemHostUnregister(void* memory) {
  ENTER_UNSAFE("cuMemHostUnregister");
  return pinned().erase(memory) == 1 ? 0 : kInvalid;
}
EXPORT int cuStreamBeginCapture_v2(FakeStream* stream, int mode) {
  ENTER("cuStreamBeginCapture_v2");
  if (!stream || stream->capture || captured || mode != 1) return kInvalid;
  stream->capture = std::make_shared<FakeGraph>();
  stream->is_spoiled = false;
  captured = stream;
  return 0;
}
EXPORT int cuStreamEndCapture(FakeStream* stream, FakeGraph** graph) {
  const std::lock_guard<std::mutex> guard(lock_of_all());
  const int error = planted("cuStreamEndCapture");
  if (!stream->capture || captured != stream) return kInvalid;
  captured = nullptr;
  const std::shared_ptr<FakeGraph> made = std::move(stream->capture);
  stream->capture = nullptr;
  *graph = nullptr;
  if (error != 0) return error;  // the capture has ended all the same
  if (stream->is_spoiled) return kCaptureInvalidated;
  *graph = new FakeGraph(*made);
  ++world().live.graphs;
  return 0;
}
EXPORT int cuThreadExchangeStreamCaptureMode(int* mode) {
  ENTER("cuThreadExchangeStreamCaptureMode");
  const int before = is_relaxed ? 2 : 1;
  is_relaxed = *mode == 2;
  *mode = before;
  return 0;
}
EXPORT int cuGraphInstantiateWithFlags(FakeGraph** instance, FakeGraph* graph, unsigned long long) {
  ENTER("cuGraphInstantiateWithFlags");
  *instance = new FakeGraph(*graph);
  ++world().live.graphs;
  return 0;
}
EXPORT int cuGraphLaunch(FakeGraph* graph, FakeStream* stream) {
  ENTER("cuGraphLaunch");
  for (const std::string& name : graph->kernels) ++world().launches[name];
  // The work outlives the graph, which may be destroyed once its last launch is waited for.
  for (const auto& work : graph->work)
    if (const int error = push(stream, work)) return error;
  return 0;
}
EXPORT int cuGraphExecDestroy(FakeGraph* graph) {
  ENTER("cuGraphExecDestroy");
  --world().live.graphs;
  delete graph;
  return 0;
}
EXPORT int cuGraphDestroy(FakeGraph* graph) {
  ENTER("cuGraphDestroy");
  --world().live.graphs;
  delete graph;
  return 0;
}
EXPORT int cuModuleLoadData(FakeModule** module, const void* image) {
  ENTER_UNSAFE("cuModuleLoadData");
  const auto capability = static_cast<int>(setting("CAPABILITY", 90));
  const std::string wanted = "PADDLE-FAKE-CUDA sm_" + std::to_string(capability);
  const char* const text = static_cast<const char*>(image);
  if (std::strncmp(text, wanted.c_str(), wanted.size()) != 0) return kNoBinary;
  const char* const library = std::strchr(text, '\n') + 1;
  // The size of an ELF file: its section headers are the last part.
  uint64_t sections = 0;
  uint16_t each = 0, count = 0;
  std::memcpy(&sections, library + 40, sizeof sections);
  std::memcpy(&each, library + 58, sizeof each);
  std::memcpy(&count, library + 60, sizeof count);
  const size_t bytes = sections + size_t{each} * count;
  const int file = memfd_create("paddle-fake-cuda", MFD_CLOEXEC);
  if (file < 0 || write(file, library, bytes) != static_cast<ssize_t>(bytes)) return kInvalid;
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    std::fprintf(stderr, "fake driver: %s\n", dlerror());
    close(file);
    return kInvalid;
  }
  // The file stays open: a later library must not get its name while this one is loaded.
  *module = new FakeModule{handle};
  ++world().live.modules;
  return 0;
}
EXPORT int cuModuleUnload(FakeModule* module) {
  ENTER("cuModuleUnload");
  --world().live.modules;
  delete module;
  return 0;
}
EXPORT int cuModuleGetFunction(FakeFunction** function, FakeModule* module, const char* name) {
  ENTER("cuModuleGetFunction");
  auto made = std::make_unique<FakeFunction>();
  made->name = name;
  made->kernel = reinterpret_cast<void (*)(const void*)>(dlsym(module->library, name));
  const auto* const bytes = static_cast<const unsigned long*>(
      dlsym(module->library, (std::string(name) + "_bytes").c_str()));
  const auto state =
      reinterpret_cast<Emulation* (*)()>(dlsym(module->library, "paddle_emulation_state"));
  if (!made->kernel || !bytes || !state) return kNotFound;
  made->bytes = *bytes;
  made->emulation = state();
  *function = made.release();
  return 0;
}
EXPORT int cuLaunchKernel(FakeFunction* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned,
                          FakeStream* stream, void** parameters, void**) {
  ENTER("cuLaunchKernel");
  const uint64_t threads = uint64_t{block_x} * block_y * block_z;
  if (grid_x == 0 || grid_y == 0 || grid_z == 0 || grid_x > 0x7fffffffu || grid_y > 65535 ||
      grid_z > 65535 || threads == 0 || threads > kMaxThreads || function->bytes > 4096 || !stream)
    return kInvalid;
  if (stream->capture)
    stream->capture->kernels.push_back(function->name);
  else
    ++world().launches[function->name];
  if (is_idle()) return push(stream, [] {});
  std::vector<uint64_t> arguments((function->bytes + 7) / 8);
  std::memcpy(arguments.data(), parameters[0], function->bytes);
  return push(stream, [=, arguments = std::move(arguments)] {
    BlockRunner::get().run(function->kernel, arguments.data(), *function->emulation,
                           {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, world().random);
  });
}

EXPORT void fake_cuda_plant(const char* call, uint64_t after, bool lasts) {
  const std::lock_guard<std::mutex> guard(lock_of_all());
  world().planted_call = call;
  world().planted_after = after;
  world().planted_lasts = lasts;
  world().sticky = 0;
}
EXPORT uint64_t fake_cuda_calls(const char* call) {
  const std::lock_guard<std::mutex> guard(lock_of_all());
  return world().calls[call];
}
EXPORT uint64_t fake_cuda_launches(const char* kernel) {
  const std::lock_guard<std::mutex> guard(lock_of_all());
  return world().launches[kernel];
}
EXPORT void fake_cuda_objects(FakeCudaObjects* objects) {
  const std::lock_guard<std::mutex> guard(lock_of_all());
  *objects = world().live;
  objects->streams = static_cast<int64_t>(world().streams.size());
  objects->host_blocks = static_cast<int64_t>(host_memory().size() + pinned().size());
  for (int d = 0; d < kMaxDevices; ++d)
    objects->blocks += static_cast<int64_t>(context_of(d).memory.live.size());
}
EXPORT int fake_cuda_queue(void* at, const char* name, void (*run)(const void*), const void* data,
                           uint64_t bytes) {
  ENTER(name);
  auto* const stream = static_cast<FakeStream*>(at);
  if (!stream) return kInvalidHandle;
  if (stream->capture)
    stream->capture->kernels.emplace_back(name);
  else
    ++world().launches[name];
  if (is_idle()) return push(stream, [] {});
  std::vector<uint64_t> copy((bytes + 7) / 8);
  std::memcpy(copy.data(), data, bytes);
  return push(stream, [run, copy = std::move(copy)] { run(copy.data()); });
}
EXPORT int fake_cuda_device_of(const void* at, uint64_t bytes) {
  const std::lock_guard<std::mutex> guard(lock_of_all());
  return device_of(reinterpret_cast<uintptr_t>(at), bytes);
}
