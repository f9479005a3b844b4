#include "compiler/codegen/code.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstring>

#include "compiler/codegen/llvm/interface.h"

namespace paddle::codegen {

std::shared_ptr<const Code> Code::load(const CodeImage& image) {
  if (image.entry >= image.bytes.size()) return nullptr;
  const std::shared_ptr<Code> code(new Code);
  for (const std::string& name : image.functions) {
    // Functions of libmvec, which the kernels are linked to.
    void* const address = dlsym(RTLD_DEFAULT, name.c_str());
    if (!address) return nullptr;
    code->functions_.push_back(address);
  }
  void* const memory =
      mmap(nullptr, image.bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  code->memory_ = memory;
  code->size_ = image.bytes.size();
  std::memcpy(memory, image.bytes.data(), image.bytes.size());
  if (mprotect(memory, code->size_, PROT_READ | PROT_EXEC) != 0) return nullptr;
  code->entry_ = static_cast<const std::byte*>(memory) + image.entry;
  return code;
}

Code::~Code() {
  if (memory_) munmap(memory_, size_);
}

#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
void Code::run(void* const* pointers, const int64_t* strides, int64_t rows, int64_t n) const {
  reinterpret_cast<paddle_codegen_function>(reinterpret_cast<uintptr_t>(entry_))(
      pointers, strides, rows, n, functions_.data());
}

}  // namespace paddle::codegen
