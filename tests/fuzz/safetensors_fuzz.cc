// Any bytes as a safetensors file: all headers and all tensors are read.

#include "formats/safetensors.h"
#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  fuzz::expect_documented_end([&] {
    const formats::SafetensorsReader reader(fuzz::input_file({data, size}, "x.safetensors"));
    for (const auto& entry : reader.entries()) fuzz::read_all(reader.read(entry));
  });
  return 0;
}
