#pragma once
// The tokenizer of a Hugging Face folder as metadata of a GGUF file.

#include <cstdint>
#include <string>
#include <vector>

#include "formats/gguf/metadata.h"

namespace paddle::tokenizers {

/// Adds the keys `tokenizer.` for BPE of bytes, or of characters with bytes for unknown ones, in
/// tokenizer.json or in vocab.json with merges.txt. `vocab_size` is the number of tokens that the
/// model has, `ends` are those that end its answers. False if the folder has no tokenizer. kModel
/// for a tokenizer that GGUF files cannot describe; small differences are added to `notes`, a line
/// each.
bool add_gguf_tokenizer(const std::string& folder, int64_t vocab_size,
                        const std::vector<int64_t>& ends, formats::gguf::Metadata& metadata,
                        std::vector<std::string>& notes);

}  // namespace paddle::tokenizers
