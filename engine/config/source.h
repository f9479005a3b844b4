#pragma once
// The text of one configuration or model file, and the way from a byte offset in it to the line and
// column that an error shows. Everything read from the file keeps a pointer to its SourceText.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace paddle::config {

/// Where a text came from; it decides whether strings of `params` are expressions when quoted.
enum class SourceKind { kYaml, kJson, kCommandLine, kDefault };

/// Largest accepted file, in bytes, and largest accepted string.
inline constexpr size_t kMaxFileBytes = size_t{16} << 20;
inline constexpr size_t kMaxStringBytes = size_t{1} << 20;
/// Deepest nesting of a document, a body or an expression.
inline constexpr int kMaxNesting = 200;

class SourceText {
 public:
  SourceText(SourceKind kind, std::string name, std::string text);

  SourceKind kind() const { return kind_; }
  const std::string& name() const { return *name_; }
  const std::shared_ptr<const std::string>& shared_name() const { return name_; }
  std::string_view text() const { return text_; }

  /// Line and column of a byte offset, both from 1, the column in characters (code points).
  void locate(size_t offset, int& line, int& column) const;
  /// The place of a byte offset; without line and column for texts that are not files.
  SourceLocation location(size_t offset) const;

 private:
  size_t characters_before(size_t offset) const;
  SourceKind kind_;
  std::shared_ptr<const std::string> name_;
  std::string text_;
  std::vector<uint32_t> line_starts_;
  std::vector<uint32_t> checkpoints_;  ///< characters before every 256th byte
};

/// Reads a whole file. kUsage if it is not there or cannot be read, kConfig if it is over 16 MiB.
std::string read_text_file(const std::string& path);

/// Throws kConfig with a place if the text is not UTF-8 or holds control characters other than
/// tab and line ends.
void check_utf8(const SourceText& source);

/// A compact place for syntax trees.
struct SourcePosition {
  std::shared_ptr<const std::string> file;
  int line = 0;
  int column = 0;
  SourceLocation location() const { return {file ? *file : std::string(), line, column}; }
};

}  // namespace paddle::config
