#pragma once
// Patterns of operators on strings, in the form of RE2, matched by the C library: the longest of
// the matches that begin first, of whole characters of UTF-8.

#include <memory>
#include <optional>
#include <string>

namespace paddle::onnx {

class Regex {
 public:
  /// kModel if it cannot be read, or would be too long with its counts written out.
  explicit Regex(const std::string& pattern);
  /// Whether the whole of `s` is what the pattern describes.
  bool matches(const std::string& s) const;

  struct Match {
    size_t begin = 0, end = 0;
  };
  /// The first match from `from` on.
  std::optional<Match> find(const std::string& s, size_t from) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace paddle::onnx
