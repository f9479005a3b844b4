#include "ops/core/attr_words.h"

#include "base/text.h"

namespace paddle {

bool is_one_of(std::string_view word, std::string_view words) {
  while (true) {
    const size_t end = words.find('|');
    if (words.substr(0, end) == word) return true;
    if (end == std::string_view::npos) return false;
    words.remove_prefix(end + 1);
  }
}

std::string wrong_word(const std::string& word, const char* expected) {
  const auto words = split(expected, '|');
  return str("expected one of ", join(words, ", "), ", found '", word, "'",
             did_you_mean(word, words));
}

}  // namespace paddle
