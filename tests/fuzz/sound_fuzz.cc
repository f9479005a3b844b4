// Any bytes as a WAV or FLAC file.

#include "formats/sound/sound.h"
#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  const auto bytes = std::as_bytes(std::span(data, size));
  fuzz::expect_documented_end([&] { formats::decode_sound(bytes, "x"); });
  return 0;
}
