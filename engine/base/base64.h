#pragma once
// Base64 (RFC 4648, the alphabet with + and /): bytes as text in JSON, HTML and files of
// tokenizers.

#include <optional>
#include <string>
#include <string_view>

namespace paddle {

/// With padding.
std::string to_base64(std::string_view bytes);
/// With or without padding; line breaks are skipped. nullopt if another character occurs, or the
/// last group is a single digit.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace paddle
