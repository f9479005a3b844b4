#pragma once
// The alphabet of byte-level BPE (GPT-2): each of the 256 bytes is written as one printable
// character, so that vocabularies are text files.

#include <optional>
#include <string>
#include <string_view>

namespace paddle::tokenizers {

/// The character, as UTF-8, that stands for a byte.
const std::string& byte_character(unsigned char byte);
/// Each byte of the text as its character.
std::string to_byte_characters(std::string_view bytes);
/// The bytes of such a text; nullopt if it has a character that stands for no byte.
std::optional<std::string> from_byte_characters(std::string_view text);
/// "<0x0A>" for byte 10, as SentencePiece spells it.
std::string byte_token(unsigned char byte);
/// The byte of such a token.
std::optional<unsigned char> byte_of_token(std::string_view token);

}  // namespace paddle::tokenizers
