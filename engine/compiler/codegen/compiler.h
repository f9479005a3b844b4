#pragma once
// Compiles programs of fusion groups, with caches in memory and on disk. LLVM is loaded on the
// first miss in both.

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/module.h"
#include "compiler/codegen/cache.h"
#include "compiler/codegen/code.h"

namespace paddle::codegen {

class Compiler {
 public:
  /// `module` is the path of libpaddle_codegen.so.
  Compiler(std::string cache_folder, std::string module);
  /// The compiler of this process, with default_cache_folder and the default module "codegen".
  static Compiler& of_process();

  /// Null if the program cannot be compiled. Thread-safe.
  std::shared_ptr<const Code> compile(const std::string& program, int vector_bytes);
  /// Why the module could not be loaded when it was needed; else "". Without it, fusion groups run
  /// in the interpreter.
  std::string problem() const;

  struct Counts {
    int compiled = 0, from_disk = 0, rejected = 0;
  };
  Counts counts() const;

 private:
  std::shared_ptr<const Code> make(const std::string& program, int vector_bytes);
  /// paddle_codegen_compile of the module; null if there is none.
  void* compile_function();

  CodeCache cache_;
  Module module_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Code>> known_;
  Counts counts_;
};

}  // namespace paddle::codegen
