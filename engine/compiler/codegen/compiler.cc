#include "compiler/codegen/compiler.h"

#include "base/text.h"
#include "compiler/codegen/llvm/interface.h"

namespace paddle::codegen {
namespace {

/// Cache key of a program: it includes the sources of the generator and the vector width.
std::string key_of(const std::string& program, int vector_bytes) {
  return str(PADDLE_GENERATOR " ", vector_bytes, "\n", program);
}

}  // namespace

Compiler::Compiler(std::string cache_folder, std::string module)
    : cache_(std::move(cache_folder)), module_(std::move(module), PADDLE_CODEGEN_VERSION) {}

Compiler& Compiler::of_process() {
  // Never destroyed, since kernels that hold code may outlive it.
  static Compiler& compiler =
      *new Compiler(default_cache_folder(), Module::default_path("codegen"));
  return compiler;
}

std::shared_ptr<const Code> Compiler::compile(const std::string& program, int vector_bytes) {
  const std::lock_guard lock(mutex_);
  const std::string key = key_of(program, vector_bytes);
  if (const auto it = known_.find(key); it != known_.end()) return it->second;
  std::shared_ptr<const Code> code;
  if (const auto image = cache_.find(key)) code = Code::load(*image);
  if (code) {
    ++counts_.from_disk;
  } else {
    code = make(program, vector_bytes);
    ++(code ? counts_.compiled : counts_.rejected);
  }
  return known_[key] = code;
}

std::shared_ptr<const Code> Compiler::make(const std::string& program, int vector_bytes) {
  void* const compile = compile_function();
  if (!compile) return nullptr;
  CodeImage image;
  const auto receive = [](void* context, const void* code, size_t size, size_t entry,
                          const char* functions) {
    CodeImage& to = *static_cast<CodeImage*>(context);
    to.bytes.assign(static_cast<const char*>(code), size);
    to.entry = entry;
    for (const std::string& name : split(functions, '\n'))
      if (!name.empty()) to.functions.push_back(name);
  };
  char message[256] = {};
  const auto function = reinterpret_cast<decltype(&paddle_codegen_compile)>(compile);
  if (function(program.c_str(), vector_bytes, receive, &image, message, sizeof message) != 0)
    return nullptr;  // an operation or a type that the generator does not support
  auto code = Code::load(image);
  if (code) cache_.keep(key_of(program, vector_bytes), image);
  return code;
}

void* Compiler::compile_function() {
#ifdef PADDLE_WITH_LLVM
  return module_.function("paddle_codegen_compile");
#else
  return nullptr;
#endif
}

std::string Compiler::problem() const {
  const std::lock_guard lock(mutex_);
  return module_.problem().empty()
             ? ""
             : "operations are not compiled to machine code: " + module_.problem();
}

Compiler::Counts Compiler::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace paddle::codegen
