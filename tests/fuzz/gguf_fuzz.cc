// Any bytes as a GGUF file: its metadata, its tensors and its tokenizer.

#include "formats/gguf/reader.h"
#include "fuzz/fuzz_target.h"
#include "text/load.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paddle;
  fuzz::expect_documented_end([&] {
    const auto file = formats::gguf::Reader::open(fuzz::input_file({data, size}, "x.gguf"));
    for (const auto& tensor : file.tensors())
      fuzz::expect_documented_end([&] { fuzz::read_all(file.read_float(tensor)); });
    const auto tokenizer = tokenizers::read_gguf_tokenizer(file);
    const auto ids = tokenizer.encode("The quick\n brown  fox's 123 é日本 <s>", {.special = true});
    tokenizer.decode(ids, true);
  });
  return 0;
}
