// Any bytes as the text form of a module: read, verified, printed and read again.

#include <string>

#include "fuzz/fuzz_target.h"
#include "ir/module.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  if (size > 1 << 16) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  fuzz::expect_documented_end([&] {
    const ir::Module module = ir::parse(text, "module.txt");
    ir::verify(module);
    ir::parse(ir::print(module), "printed.txt");
  });
  return 0;
}
