#pragma once
// Programs of groups to code: from memory, from the disk, or from LLVM, which is opened only when
// something is in neither.

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "compiler/codegen/cache.h"
#include "compiler/codegen/code.h"

namespace paddle::codegen {

class Compiler {
 public:
  /// `module` is the path of libpaddle_codegen.so.
  Compiler(std::string cache_folder, std::string module);
  /// The one of this process: where default_cache_folder says; the module lies in `../lib` of the
  /// program, or where PADDLE_CODEGEN_MODULE says.
  static Compiler& of_process();

  /// Null if there is no code for the program. Any thread.
  std::shared_ptr<const Code> compile(const std::string& program, int vector_bytes);
  /// Why the module can't be used, once something asked for it; "" if it can. Without the module
  /// groups run as they do without a compiler.
  std::string problem() const;

  struct Counts {
    int compiled = 0, from_disk = 0, refused = 0;
  };
  Counts counts() const;

 private:
  std::shared_ptr<const Code> make(const std::string& program, int vector_bytes);
  bool open_module();

  CodeCache cache_;
  std::string module_path_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Code>> known_;
  void* module_ = nullptr;
  void* compile_ = nullptr;  ///< paddle_codegen_compile
  std::string problem_;
  Counts counts_;
};

}  // namespace paddle::codegen
