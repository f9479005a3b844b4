// Any bytes as a tokenizer.json, a tekken.json or a SentencePiece model, which then reads a text.

#include "fuzz/fuzz_target.h"
#include "text/load.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  for (const char* name : {"tokenizer.json", "tokenizer.model"})
    fuzz::expect_documented_end([&] {
      const auto tokenizer = tokenizers::load_tokenizer(fuzz::input_file({data, size}, name));
      const auto ids =
          tokenizer.encode("The quick\n brown  fox's 123 é日本 <s>", {.special = true});
      tokenizer.decode(ids, true);
    });
  return 0;
}
