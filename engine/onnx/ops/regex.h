#pragma once
// RE2 patterns of string operators, matched by PCRE2's algorithm for the longest match, which does
// not backtrack.

#include <memory>
#include <optional>
#include <string>

namespace paddle::onnx {

class Regex {
 public:
  /// kModel if the pattern is invalid or too long.
  explicit Regex(const std::string& pattern);
  /// Whether the pattern matches the whole string.
  bool matches(const std::string& s) const;

  struct Match {
    size_t begin = 0, end = 0;
  };
  /// The longest of the first matches at or after `from`; none in a string that is not UTF-8.
  std::optional<Match> find(const std::string& s, size_t from) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace paddle::onnx
