#pragma once
// RE2 patterns of string operators, matched by the POSIX regex of the C library: leftmost-longest
// matches on UTF-8 characters.

#include <memory>
#include <optional>
#include <string>

namespace paddle::onnx {

class Regex {
 public:
  /// kModel if the pattern is invalid, or too long with repetition counts expanded.
  explicit Regex(const std::string& pattern);
  /// Whether the pattern matches the whole string.
  bool matches(const std::string& s) const;

  struct Match {
    size_t begin = 0, end = 0;
  };
  /// The first match at or after `from`.
  std::optional<Match> find(const std::string& s, size_t from) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace paddle::onnx
