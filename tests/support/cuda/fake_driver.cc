// A stand-in for libcuda.so.1 with two GPUs that are emulated on the CPU.
//
// - The host cannot read or write device memory: its pages are accessible only while work runs.
// - Streams run nothing until a caller waits, and then in a random order that events allow.
// - The threads of a block run in a random order between barriers, on stacks of their own.
//
// Variables: PADDLE_FAKE_CUDA_SEED (order), _CAPABILITY (90), _MEMORY (bytes per GPU, 1 GiB),
// _DEVICES (2), _VERSION (13000), _FAIL ("cuMemAlloc_v2:3": the third call fails;
// "cuLaunchKernel:2:700" with this error), _LOG (a file that gets the number of launches by kernel
// when the process ends).

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int kInvalid = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidContext = 201,
              kNoBinary = 209, kInvalidHandle = 400, kNotFound = 500, kNotReady = 600;

long long setting(const char* name, long long otherwise) {
  const char* const text = std::getenv((std::string("PADDLE_FAKE_CUDA_") + name).c_str());
  return text && *text ? std::atoll(text) : otherwise;
}

std::mutex& lock_of_all() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

// --- memory ---

constexpr int kMaxDevices = 8;

struct Memory {
  std::byte* base = nullptr;
  size_t used = 0;  ///< bytes from the base on that were ever handed out
  size_t allocated = 0;
  std::map<uintptr_t, size_t> live;
  std::multimap<size_t, uintptr_t> free;

  size_t limit() const { return static_cast<size_t>(setting("MEMORY", 1ll << 30)); }
  /// Addresses; blocks are used again for their own size only.
  size_t reserved() const { return 2 * limit(); }
  uintptr_t allocate(size_t bytes) {
    bytes = (bytes + 511) / 512 * 512;
    if (bytes == 0 || allocated + bytes > limit()) return 0;
    if (!base) {
      void* const pages =
          mmap(nullptr, reserved(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (pages == MAP_FAILED) return 0;
      base = static_cast<std::byte*>(pages);
    }
    uintptr_t out = 0;
    if (const auto it = free.lower_bound(bytes); it != free.end() && it->first == bytes) {
      out = it->second;
      free.erase(it);
    } else {
      if (used + bytes > reserved()) return 0;
      out = reinterpret_cast<uintptr_t>(base + used);
      used += bytes;
    }
    live[out] = bytes;
    allocated += bytes;
    return out;
  }
  bool release(uintptr_t memory) {
    const auto it = live.find(memory);
    if (it == live.end()) return false;
    allocated -= it->second;
    free.emplace(it->second, memory);
    live.erase(it);
    return true;
  }
  /// Whether these bytes are within one allocation.
  bool holds(uintptr_t at, size_t bytes) const {
    auto it = live.upper_bound(at);
    if (it == live.begin()) return false;
    --it;
    return at + bytes <= it->first + it->second;
  }
  void protect(int flags) const {
    if (base) mprotect(base, (used + 4095) / 4096 * 4096, flags);
  }
};

struct FakeContext {
  int device = 0;
  Memory memory;
};
FakeContext& context_of(int device) {
  static auto& all = *new std::vector<FakeContext>(kMaxDevices);
  all[static_cast<size_t>(device)].device = device;
  return all[static_cast<size_t>(device)];
}
thread_local FakeContext* current = nullptr;

// --- threads of a block ---

constexpr size_t kStack = 64 * 1024;
constexpr unsigned kMaxThreads = 1024;

struct EmulatedIndex {
  unsigned x, y, z;
};
struct Emulation {
  EmulatedIndex thread, block, block_size, grid_size;
  void (*barrier)();
};

#if defined(__x86_64__)
extern "C" void paddle_switch_stack(void** save, void* load);
asm(R"(
.text
.globl paddle_switch_stack
.hidden paddle_switch_stack
.type paddle_switch_stack, @function
paddle_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size paddle_switch_stack, .-paddle_switch_stack
)");
#endif

class BlockRunner {
 public:
  static BlockRunner& get() {
    static auto& runner = *new BlockRunner;
    return runner;
  }

  void run(void (*kernel)(const void*), const void* arguments, Emulation& emulation,
           EmulatedIndex grid, EmulatedIndex block, std::mt19937_64& random) {
    kernel_ = kernel;
    arguments_ = arguments;
    emulation_ = &emulation;
    emulation.barrier = [] { get().suspend(); };
    emulation.block_size = block;
    emulation.grid_size = grid;
    const unsigned threads = block.x * block.y * block.z;
    const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
    const bool backwards = random() & 1;
    for (uint64_t i = 0; i < blocks; ++i) {
      const uint64_t which = backwards ? blocks - 1 - i : i;
      emulation.block = {static_cast<unsigned>(which % grid.x),
                         static_cast<unsigned>(which / grid.x % grid.y),
                         static_cast<unsigned>(which / grid.x / grid.y)};
      run_block(block, threads, random);
    }
  }

 private:
  BlockRunner() {
    stacks_ = static_cast<std::byte*>(mmap(nullptr, kStack * kMaxThreads, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  }

  void run_block(EmulatedIndex block, unsigned threads, std::mt19937_64& random) {
    for (unsigned t = 0; t < threads; ++t) prepare(t);
    unsigned left = threads;
    while (left > 0) {
      const uint64_t order = random();
      const unsigned first = static_cast<unsigned>(order % threads);
      const bool backwards = order >> 63;
      for (unsigned i = 0; i < threads; ++i) {
        const unsigned t = (first + (backwards ? threads - i : i)) % threads;
        if (done_[t]) continue;
        current_ = t;
        emulation_->thread = {t % block.x, t / block.x % block.y, t / block.x / block.y};
        resume(t);
        if (done_[t]) --left;
      }
    }
  }

  static void begin() {
    BlockRunner& runner = get();
    runner.kernel_(runner.arguments_);
    runner.done_[runner.current_] = true;
    runner.suspend();
    std::abort();  // a thread that is done is not resumed
  }

#if defined(__x86_64__)
  void prepare(unsigned t) {
    done_[t] = false;
    auto* const top = reinterpret_cast<uint64_t*>(stacks_ + kStack * (t + 1));
    uint64_t* at = top;
    *--at = 0;  // where begin would return to
    *--at = reinterpret_cast<uint64_t>(&begin);
    for (int i = 0; i < 6; ++i) *--at = 0;
    places_[t] = at;
  }
  void resume(unsigned t) { paddle_switch_stack(&caller_, places_[t]); }
  void suspend() { paddle_switch_stack(&places_[current_], caller_); }
  void* caller_ = nullptr;
  void* places_[kMaxThreads] = {};
#else
  void prepare(unsigned t) {
    done_[t] = false;
    getcontext(&places_[t]);
    places_[t].uc_stack.ss_sp = stacks_ + kStack * t;
    places_[t].uc_stack.ss_size = kStack;
    places_[t].uc_link = nullptr;
    makecontext(&places_[t], &begin, 0);
  }
  void resume(unsigned t) { swapcontext(&caller_, &places_[t]); }
  void suspend() { swapcontext(&places_[current_], &caller_); }
  ucontext_t caller_;
  ucontext_t places_[kMaxThreads];
#endif

  std::byte* stacks_;
  bool done_[kMaxThreads] = {};
  unsigned current_ = 0;
  void (*kernel_)(const void*) = nullptr;
  const void* arguments_ = nullptr;
  Emulation* emulation_ = nullptr;
};

// --- streams ---

struct FakeStream;
struct FakeEvent {
  FakeStream* stream = nullptr;
  uint64_t count = 0;
};
struct Work {
  std::function<void()> run;  ///< null: only waits
  FakeEvent after;
};
struct FakeStream {
  int device = 0;
  uint64_t pushed = 0, done = 0;
  std::deque<Work> queue;
};

struct World {
  std::vector<FakeStream*> streams;
  std::vector<FakeStream*> destroyed;  ///< events may name them
  std::mt19937_64 random{static_cast<uint64_t>(setting("SEED", 1))};
  std::map<std::string, uint64_t> launches;
  std::map<std::string, uint64_t> calls;
  int sticky = 0;  ///< an error of work that ran
};
World& world() {
  static auto& one = *new World;
  return one;
}

bool reached(const FakeEvent& event) { return !event.stream || event.stream->done >= event.count; }

/// Runs work in a random legal order until the stream has done `count` pieces.
int run_until(FakeStream* stream, uint64_t count) {
  World& all = world();
  if (stream->done < count) {
    for (int d = 0; d < kMaxDevices; ++d) context_of(d).memory.protect(PROT_READ | PROT_WRITE);
    while (stream->done < count) {
      std::vector<FakeStream*> ready;
      for (FakeStream* each : all.streams)
        if (!each->queue.empty() && reached(each->queue.front().after)) ready.push_back(each);
      if (ready.empty()) std::abort();  // streams wait for each other
      FakeStream* const next = ready[all.random() % ready.size()];
      const Work work = std::move(next->queue.front());
      next->queue.pop_front();
      if (work.run && all.sticky == 0) work.run();
      ++next->done;
    }
    for (int d = 0; d < kMaxDevices; ++d) context_of(d).memory.protect(PROT_NONE);
  }
  return all.sticky;
}

int push(FakeStream* stream, std::function<void()> run, FakeEvent after = {}) {
  if (!stream) return kInvalidHandle;
  stream->queue.push_back({std::move(run), after});
  ++stream->pushed;
  return 0;
}

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
  const char* const wanted = std::getenv("PADDLE_FAKE_CUDA_FAIL");
  if (!wanted) return 0;
  const size_t length = std::strlen(name);
  if (std::strncmp(wanted, name, length) != 0 || wanted[length] != ':') return 0;
  char* rest = nullptr;
  if (std::strtoull(wanted + length + 1, &rest, 10) != call) return 0;
  if (*rest == ':') return std::atoi(rest + 1);
  return std::strncmp(name, "cuMemAlloc", 10) == 0 ? kOutOfMemory : 999;
}

// --- modules ---

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

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))
#define ENTER(name)                                       \
  const std::lock_guard<std::mutex> guard(lock_of_all()); \
  if (const int error = planted(name)) return error

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
  *name = error == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == 700        ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == kInvalid   ? "CUDA_ERROR_INVALID_VALUE"
          : error == kNotFound  ? "CUDA_ERROR_NOT_FOUND"
          : error == kNoBinary  ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
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
  ENTER("cuMemAlloc_v2");
  if (!current) return kInvalidContext;
  *memory = current->memory.allocate(bytes);
  return *memory ? 0 : kOutOfMemory;
}
EXPORT int cuMemFree_v2(unsigned long long memory) {
  ENTER("cuMemFree_v2");
  if (!current) return kInvalidContext;
  return current->memory.release(memory) ? 0 : kInvalid;
}
EXPORT int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  ENTER("cuMemHostAlloc");
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *memory ? 0 : kOutOfMemory;
}
EXPORT int cuMemFreeHost(void* memory) {
  ENTER("cuMemFreeHost");
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
  ENTER("cuStreamSynchronize");
  return run_until(stream, stream->pushed);
}
EXPORT int cuStreamWaitEvent(FakeStream* stream, FakeEvent* event, unsigned) {
  ENTER("cuStreamWaitEvent");
  if (!event->stream || event->stream == stream) return 0;
  return push(stream, nullptr, *event);
}
EXPORT int cuEventCreate(FakeEvent** event, unsigned) {
  ENTER("cuEventCreate");
  *event = new FakeEvent;
  return 0;
}
EXPORT int cuEventDestroy_v2(FakeEvent* event) {
  ENTER("cuEventDestroy_v2");
  delete event;
  return 0;
}
EXPORT int cuEventRecord(FakeEvent* event, FakeStream* stream) {
  ENTER("cuEventRecord");
  event->stream = stream;
  event->count = stream->pushed;
  return 0;
}
EXPORT int cuEventQuery(FakeEvent* event) {
  ENTER("cuEventQuery");
  return reached(*event) ? world().sticky : kNotReady;
}
EXPORT int cuEventSynchronize(FakeEvent* event) {
  ENTER("cuEventSynchronize");
  return event->stream ? run_until(event->stream, event->count) : 0;
}
EXPORT int cuModuleLoadData(FakeModule** module, const void* image) {
  ENTER("cuModuleLoadData");
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
  return 0;
}
EXPORT int cuModuleUnload(FakeModule* module) {
  ENTER("cuModuleUnload");
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
  ++world().launches[function->name];
  std::vector<uint64_t> arguments((function->bytes + 7) / 8);
  std::memcpy(arguments.data(), parameters[0], function->bytes);
  return push(stream, [=, arguments = std::move(arguments)] {
    BlockRunner::get().run(function->kernel, arguments.data(), *function->emulation,
                           {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, world().random);
  });
}
