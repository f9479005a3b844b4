#pragma once
// The values of `tokenizer.ggml.token_type` in GGUF files.

#include <cstdint>

namespace paddle::tokenizers {

enum GgufTokenType : int32_t {
  kGgufNormal = 1,
  kGgufUnknown,
  kGgufControl,
  kGgufUserDefined,
  kGgufUnused,
  kGgufByte
};

}  // namespace paddle::tokenizers
