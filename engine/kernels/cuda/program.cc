#include "kernels/cuda/program.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/context.h"
#include "kernels/generated/box_muller.h"
#include "kernels/generated/cuda_alignment.h"
#include "kernels/generated/cuda_attend.h"
#include "kernels/generated/cuda_attention.h"
#include "kernels/generated/cuda_channels.h"
#include "kernels/generated/cuda_complex.h"
#include "kernels/generated/cuda_convolution.h"
#include "kernels/generated/cuda_copy.h"
#include "kernels/generated/cuda_count.h"
#include "kernels/generated/cuda_create.h"
#include "kernels/generated/cuda_edges.h"
#include "kernels/generated/cuda_gather.h"
#include "kernels/generated/cuda_group.h"
#include "kernels/generated/cuda_index.h"
#include "kernels/generated/cuda_math.h"
#include "kernels/generated/cuda_matmul.h"
#include "kernels/generated/cuda_pool.h"
#include "kernels/generated/cuda_prelude.h"
#include "kernels/generated/cuda_random.h"
#include "kernels/generated/cuda_recurrent.h"
#include "kernels/generated/cuda_rows.h"
#include "kernels/generated/cuda_scalar.h"
#include "kernels/generated/cuda_select.h"
#include "kernels/generated/cuda_sequences.h"
#include "kernels/generated/cuda_sort.h"
#include "kernels/generated/cuda_special.h"
#include "kernels/generated/cuda_update.h"
#include "kernels/generated/special_functions.h"

namespace paddle::cuda {
namespace {

constexpr std::pair<std::string_view, std::string_view> kDeviceTexts[] = {
    // by name
    {"alignment", kernels::kCudaAlignment},
    {"attend", kernels::kCudaAttend},
    {"attention", kernels::kCudaAttention},
    {"box_muller", kernels::kBoxMuller},
    {"channels", kernels::kCudaChannels},
    {"complex", kernels::kCudaComplex},
    {"convolution", kernels::kCudaConvolution},
    {"copy", kernels::kCudaCopy},
    {"count", kernels::kCudaCount},
    {"create", kernels::kCudaCreate},
    {"edges", kernels::kCudaEdges},
    {"gather", kernels::kCudaGather},
    {"group", kernels::kCudaGroup},
    {"index", kernels::kCudaIndex},
    {"math", kernels::kCudaMath},
    {"matmul", kernels::kCudaMatmul},
    {"pool", kernels::kCudaPool},
    {"prelude", kernels::kCudaPrelude},
    {"random", kernels::kCudaRandom},
    {"recurrent", kernels::kCudaRecurrent},
    {"rows", kernels::kCudaRows},
    {"scalar", kernels::kCudaScalar},
    {"select", kernels::kCudaSelect},
    {"sequences", kernels::kCudaSequences},
    {"sort", kernels::kCudaSort},
    {"special", kernels::kCudaSpecial},
    {"special_functions", kernels::kSpecialFunctions},
    {"update", kernels::kCudaUpdate},
};

std::atomic<int64_t> programs_compiled{0}, programs_read{0};

/// Threads that compile programs. Those that have not begun when the process ends are dropped.
class CompileQueue {
 public:
  static CompileQueue& get() {
    static auto& queue = *new CompileQueue;
    return queue;
  }

  void add(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    jobs_.push_back(std::move(job));
    const unsigned most = std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
    if (idle_ == 0 && threads_ < most) {
      if (threads_ == 0) std::atexit([] { get().close(); });
      ++threads_;
      std::thread([this] { work(); }).detach();
    }
    changed_.notify_one();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (!closed_) {
      if (jobs_.empty()) {
        ++idle_;
        changed_.wait(lock);
        --idle_;
        continue;
      }
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      ++busy_;
      lock.unlock();
      job();
      lock.lock();
      --busy_;
      done_.notify_all();
    }
  }
  /// NVRTC must not be unloaded while a thread is in it.
  void close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    jobs_.clear();
    changed_.notify_all();
    done_.wait(lock, [this] { return busy_ == 0; });
  }

  std::mutex mutex_;
  std::condition_variable changed_, done_;
  std::deque<std::function<void()>> jobs_;
  unsigned threads_ = 0, idle_ = 0, busy_ = 0;
  bool closed_ = false;
};

/// Whether NVRTC knows the architecture; if not, throws which version would.
void check_architecture(const NvrtcLibrary& nvrtc, const std::string& architecture) {
  int count = 0;
  if (nvrtc.functions.nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0) return;
  std::vector<int> known(static_cast<size_t>(count));
  if (nvrtc.functions.nvrtcGetSupportedArchs(known.data()) != NVRTC_SUCCESS) return;
  const int wanted = std::atoi(architecture.c_str() + 3);
  for (const int each : known)
    if (each == wanted) return;
  fail(ErrorCode::kDevice, "cuda: NVRTC ", nvrtc.major, ".", nvrtc.minor, " (", nvrtc.path,
       ") cannot compile for ", architecture, "; ",
       wanted >= 100 ? "NVRTC 12.9 or newer is needed" : "a newer NVRTC is needed");
}

std::string program_log(const Nvrtc& api, nvrtcProgram program) {
  size_t bytes = 0;
  if (api.nvrtcGetProgramLogSize(program, &bytes) != NVRTC_SUCCESS || bytes <= 1) return {};
  std::string log(bytes, '\0');
  if (api.nvrtcGetProgramLog(program, log.data()) != NVRTC_SUCCESS) return {};
  log.resize(bytes - 1);
  return log;
}

/// Everything that compiled code depends on besides the compiler.
std::string cache_key(const CompileRequest& request) {
  return str("cuda 1\n", request.architecture, "\n", request.text);
}

std::string compiler_version(const NvrtcLibrary& nvrtc) {
  return str("nvrtc ", nvrtc.major, ".", nvrtc.minor, "\n");
}

/// Machine code from the disk, else from NVRTC. Without NVRTC, code of any of its versions is used.
std::string find_or_compile(const CompileRequest& request) {
  const NvrtcLibrary& nvrtc = nvrtc_library();
  const std::string key = cache_key(request);
  if (auto kept = program_cache().find(key)) {
    const size_t line = kept->find('\n');
    if (line != std::string::npos &&
        (!nvrtc.problem.empty() || kept->substr(0, line + 1) == compiler_version(nvrtc))) {
      ++programs_read;
      return kept->substr(line + 1);
    }
  }
  std::string image = compile_program(request);
  program_cache().keep(key, compiler_version(nvrtc) + image);
  ++programs_compiled;
  return image;
}

}  // namespace

std::string_view device_text(std::string_view name) {
  for (const auto& [known, text] : kDeviceTexts)
    if (known == name) return text;
  fail(ErrorCode::kInternal, "cuda: there is no text '", name, "'");
}

std::string program_text(std::initializer_list<std::string_view> names, std::string_view kernels) {
  std::string text(device_text("prelude"));
  for (const std::string_view name : names) text += device_text(name);
  return text.append(kernels);
}

std::string compile_program(const CompileRequest& request, std::string* log) {
  const NvrtcLibrary& nvrtc = nvrtc_library();
  if (!nvrtc.problem.empty())
    fail(ErrorCode::kDevice, "cuda: kernels cannot be compiled: ", nvrtc.problem);
  check_architecture(nvrtc, request.architecture);
  const Nvrtc& api = nvrtc.functions;
  const auto checked = [&](nvrtcResult result, const char* call) {
    if (result != NVRTC_SUCCESS)
      fail(ErrorCode::kDevice, "cuda: ", call, ": ", api.nvrtcGetErrorString(result));
  };
  nvrtcProgram program = nullptr;
  checked(api.nvrtcCreateProgram(&program, request.text.c_str(), "kernel.cu", 0, nullptr, nullptr),
          "nvrtcCreateProgram");
  struct Destroy {
    const Nvrtc& api;
    nvrtcProgram& program;
    ~Destroy() { api.nvrtcDestroyProgram(&program); }
  } const destroy{api, program};
  // Single operations are rounded as on the CPU: a product is not joined with an addition.
  const std::string target = "--gpu-architecture=" + request.architecture;
  std::vector<const char*> options = {target.c_str(), "--std=c++17", "--fmad=false",
                                      "--prec-div=true", "--prec-sqrt=true"};
  if (log) options.push_back("--ptxas-options=-v");
  const nvrtcResult result =
      api.nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
  const std::string text = program_log(api, program);
  if (log) *log = text;
  if (result == NVRTC_ERROR_COMPILATION)
    fail(ErrorCode::kInternal, "cuda: NVRTC ", nvrtc.major, ".", nvrtc.minor,
         " rejects a program: ", text.substr(0, text.find('\n')));
  checked(result, "nvrtcCompileProgram");
  size_t bytes = 0;
  checked(api.nvrtcGetCUBINSize(program, &bytes), "nvrtcGetCUBINSize");
  std::string image(bytes, '\0');
  checked(api.nvrtcGetCUBIN(program, image.data()), "nvrtcGetCUBIN");
  return image;
}

FileCache& program_cache() {
  static auto& cache = *new FileCache(cache_folder("cuda"), ".cubin", uint64_t{256} << 20);
  return cache;
}

ProgramCounts program_counts() { return {programs_compiled, programs_read}; }

struct Program::State {
  int device = 0;
  std::string text;
  std::mutex mutex;
  std::condition_variable changed;
  bool started = false, done = false;
  std::string image;
  std::optional<Error> error;
  CUmodule module = nullptr;
  std::map<std::string, CUfunction> functions;

  void compile() {
    std::optional<Error> problem;
    std::string made;
    try {
      made = find_or_compile({text, gpu(device).architecture()});
    } catch (const Error& e) {
      problem = e;
    } catch (const std::exception& e) {
      problem = Error(ErrorCode::kInternal, e.what());
    }
    const std::lock_guard lock(mutex);
    image = std::move(made);
    error = std::move(problem);
    done = true;
    changed.notify_all();
  }
};

Program::Program(int device, std::string text) : state_(std::make_shared<State>()) {
  state_->device = device;
  state_->text = std::move(text);
}

Program::~Program() {
  if (!state_->module) return;
  try {  // at the end of the process the driver may be gone
    use_gpu(state_->device);
    driver().cuModuleUnload(state_->module);
  } catch (const Error&) {
  }
}

std::shared_ptr<Program> Program::of(int device, std::string text) {
  static auto& mutex = *new std::mutex;
  static auto& programs = *new std::map<std::pair<int, std::string>, std::shared_ptr<Program>>;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Program>& out = programs[{device, text}];
  // Programs stay: queued launches refer to them.
  if (!out) out = std::make_shared<Program>(device, std::move(text));
  return out;
}

void Program::start() {
  const std::lock_guard lock(state_->mutex);
  if (state_->started) return;
  state_->started = true;
  CompileQueue::get().add([state = state_] { state->compile(); });
}

CUfunction Program::function(const std::string& name) {
  start();
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->done; });
  if (state_->error) throw Error(*state_->error);
  if (!state_->module) {
    check(driver().cuModuleLoadData(&state_->module, state_->image.data()), "cuModuleLoadData");
    state_->image.clear();
  }
  CUfunction& function = state_->functions[name];
  if (!function)
    check(driver().cuModuleGetFunction(&function, state_->module, name.c_str()),
          "cuModuleGetFunction");
  return function;
}

void Entry::launch(paddle_stream stream, int64_t blocks, const void* arguments) const {
  launch(stream, blocks, 1, arguments);
}

void Entry::launch(paddle_stream stream, int64_t blocks_x, int64_t blocks_y,
                   const void* arguments) const {
  ensure(stream != nullptr, "cuda: a kernel without a stream");
  use_gpu(stream->device);
  const CUfunction function = program_->function(name_);
  void* parameters[] = {const_cast<void*>(arguments)};
  check(driver().cuLaunchKernel(function, static_cast<unsigned>(blocks_x),
                                static_cast<unsigned>(blocks_y), 1, kBlockThreads, 1, 1, 0,
                                stream->handle, parameters, nullptr),
        "cuLaunchKernel");
  if (!stream->is_recording) ++counts_of(stream->device).launches;
}

}  // namespace paddle::cuda
