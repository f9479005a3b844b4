#pragma once
// Regular expressions of tokenizers: the syntax of Oniguruma as Hugging Face's files use it,
// matched by PCRE2. Classes such as \s, \d and \w are those of Unicode, and ^ and $ match at every
// line.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace paddle::tokenizers {

class Pattern {
 public:
  /// kModel if the expression is malformed or uses syntax that PCRE2 reads differently.
  explicit Pattern(std::string_view expression);
  /// A pattern that matches this text literally.
  static Pattern literal(std::string_view text);

  /// Calls `callback(begin, end)` for each match of valid UTF-8, from left to right. kData if
  /// matching exceeds its limit of steps.
  void for_each_match(std::string_view text,
                      const std::function<void(size_t begin, size_t end)>& callback) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace paddle::tokenizers
