// Any bytes as an image file: its colors, and its indices as a mask.

#include "formats/image.h"
#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const int channels : {1, 4})
    fuzz::expect_documented_end(
        [&] { formats::decode_image(bytes, channels, "x", formats::SampleDepth::kReduced); });
  fuzz::expect_documented_end([&] { formats::decode_indices(bytes, "x"); });
  return 0;
}
