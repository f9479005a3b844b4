#include "compiler/codegen/compiler.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/files.h"
#include "base/text.h"
#include "compiler/codegen/llvm/interface.h"

namespace paddle::codegen {
namespace {

/// The file that this code is in: the program, or a shared library that a program has loaded.
std::string own_path() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<const void*>(&own_path), &found) != 0 && found.dli_fname) {
    const std::string file = found.dli_fname;
    const size_t name = file.rfind('/') + 1;
    if (file.compare(name, 3, "lib") == 0) return file;
  }
  return program_path();
}

/// Beside the shared library that this is part of, or in the library folder beside the programs'.
std::string default_module() {
  if (const char* const path = std::getenv("PADDLE_CODEGEN_MODULE")) return path;
  std::string folder = own_path();
  if (folder.empty()) return {};
  folder.resize(folder.rfind('/') + 1);
  constexpr const char* kName = "libpaddle_codegen.so";
  for (const char* place : {"", "../" PADDLE_LIBDIR "/"})
    if (file_exists(folder + place + kName)) return folder + place + kName;
  return folder + "../lib/" + kName;
}

/// Cache key of a program: it includes the sources of the generator and the vector width.
std::string key_of(const std::string& program, int vector_bytes) {
  return str(PADDLE_GENERATOR " ", vector_bytes, "\n", program);
}

}  // namespace

Compiler::Compiler(std::string cache_folder, std::string module)
    : cache_(std::move(cache_folder)), module_path_(std::move(module)) {}

Compiler& Compiler::of_process() {
  // Never destroyed, since kernels that hold code may outlive it.
  static Compiler& compiler = *new Compiler(default_cache_folder(), default_module());
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
    ++(code ? counts_.compiled : counts_.refused);
  }
  return known_[key] = code;
}

std::shared_ptr<const Code> Compiler::make(const std::string& program, int vector_bytes) {
  if (!open_module()) return nullptr;
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
  const auto function = reinterpret_cast<decltype(&paddle_codegen_compile)>(compile_);
  if (function(program.c_str(), vector_bytes, receive, &image, message, sizeof message) != 0)
    return nullptr;  // an operation or a type that the generator does not support
  auto code = Code::load(image);
  if (code) cache_.keep(key_of(program, vector_bytes), image);
  return code;
}

bool Compiler::open_module() {
  if (compile_) return true;
#ifdef PADDLE_WITH_LLVM
  if (!problem_.empty()) return false;
  module_ = dlopen(module_path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module_) compile_ = dlsym(module_, "paddle_codegen_compile");
  if (!compile_) {
    const char* const reason = dlerror();
    problem_ = str("operations are not compiled to machine code: ",
                   reason ? reason : module_path_ + " can't be opened");
  }
#endif
  return compile_ != nullptr;
}

std::string Compiler::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

Compiler::Counts Compiler::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace paddle::codegen
