#pragma once
// Attributes that take one of several words.

#include <string>
#include <string_view>

#include "base/error.h"

namespace paddle {

/// Whether `word` is one of "a|b|c".
bool is_one_of(std::string_view word, std::string_view words);
/// The words, what was found instead, and the nearest one.
std::string wrong_word(const std::string& word, const char* expected);

/// Throws kUsage, with `where` in front, unless `word` is one of "a|b|c".
template <class... Where>
void require_word(const std::string& word, const char* words, const Where&... where) {
  if (!is_one_of(word, words)) fail(ErrorCode::kUsage, where..., wrong_word(word, words));
}

}  // namespace paddle
