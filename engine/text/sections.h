#pragma once
// Long texts in sections: files are encoded, and tokenizers trained, without a copy of the whole.

#include <functional>
#include <span>
#include <string_view>

#include "text/tokenizer.h"

namespace paddle::tokenizers {

inline constexpr size_t kSectionBytes = size_t{1} << 20;

/// Bytes of the first section of a text, at most `limit`. It ends between a letter or digit and
/// white space, where the patterns of byte-level tokenizers cut as well; without such a place, at
/// white space or between two characters.
size_t section_length(std::string_view text, size_t limit = kSectionBytes);

/// Encodes a text of any length section by section and calls `add` with the ids of each. For
/// byte-level tokenizers they are those of the whole text; SentencePiece's begin each section as
/// they begin a text.
void encode_sections(const Tokenizer& tokenizer, std::string_view text,
                     const EncodeOptions& options,
                     const std::function<void(std::span<const TokenId>)>& add);

}  // namespace paddle::tokenizers
