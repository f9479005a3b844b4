#pragma once
// Programs of kernels: CUDA C++ that NVRTC compiles for the GPU at hand. Compiled programs are kept
// in this process and on disk. Compilation runs in the background; the first launch waits for it.

#include <memory>
#include <string>
#include <string_view>

#include "base/file_cache.h"
#include "kernels/cuda/stream.h"

namespace paddle::cuda {

/// The texts in device/, without suffix.
std::string_view device_text(std::string_view name);
/// A whole program: the common beginning, the named texts of device/, then `kernels`.
std::string program_text(std::initializer_list<std::string_view> names, std::string_view kernels);

/// A text to compile.
struct CompileRequest {
  std::string text;
  std::string architecture;  ///< "sm_90a"
};
/// Machine code of a program. kDevice if NVRTC is missing or too old, kInternal if it rejects the
/// text. `log`, if not null, gets the assembler's account of registers and spilled bytes.
std::string compile_program(const CompileRequest& request, std::string* log = nullptr);

class Program {
 public:
  /// The program of this text for the GPU; equal texts share one.
  static std::shared_ptr<Program> of(int device, std::string text);
  explicit Program(int device, std::string text);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Begins to compile, unless that has begun.
  void start();
  /// The function of this name, after the program was compiled and loaded. Throws what
  /// `compile_program` does.
  CUfunction function(const std::string& name);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Programs that this process has compiled, and those that it has read from the disk.
struct ProgramCounts {
  int64_t compiled = 0, read = 0;
};
ProgramCounts program_counts();
/// The cache on disk: the folder `cuda` of the user's cache.
FileCache& program_cache();

/// A function of a program, as kernels hold it.
class Entry {
 public:
  Entry() = default;
  Entry(std::shared_ptr<Program> program, std::string name)
      : program_(std::move(program)), name_(std::move(name)) {}

  /// Queues `blocks` blocks of kBlockThreads threads. `arguments` is the structure that the
  /// function takes.
  void launch(paddle_stream stream, int64_t blocks, const void* arguments) const;
  void launch(paddle_stream stream, int64_t blocks_x, int64_t blocks_y,
              const void* arguments) const;

 private:
  std::shared_ptr<Program> program_;
  std::string name_;
};

inline constexpr int64_t kBlockThreads = 256;  ///< as in device/prelude.cuh
/// A kernel takes arguments of this size on all drivers.
inline constexpr size_t kMaxArgumentBytes = 4096;

}  // namespace paddle::cuda
