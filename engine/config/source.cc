#include "config/source.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/encryption.h"
#include "base/files.h"
#include "base/utf8.h"

namespace paddle::config {
namespace {

constexpr size_t kCheckpointBytes = 256;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

SourceText::SourceText(SourceKind kind, std::string name, std::string text)
    : kind_(kind),
      name_(std::make_shared<const std::string>(std::move(name))),
      text_(std::move(text)) {
  if (text_.size() > kMaxFileBytes) {
    throw Error(ErrorCode::kConfig, "the text is over 16 MiB", {*name_, 0, 0});
  }
  line_starts_.push_back(0);
  checkpoints_.reserve(text_.size() / kCheckpointBytes + 1);
  uint32_t characters = 0;
  for (size_t i = 0; i < text_.size(); ++i) {
    if (i % kCheckpointBytes == 0) checkpoints_.push_back(characters);
    if (!is_continuation(text_[i])) ++characters;
    const bool lone_return = text_[i] == '\r' && (i + 1 == text_.size() || text_[i + 1] != '\n');
    if (text_[i] == '\n' || lone_return) line_starts_.push_back(static_cast<uint32_t>(i + 1));
  }
  if (text_.size() % kCheckpointBytes == 0) checkpoints_.push_back(characters);
}

size_t SourceText::characters_before(size_t offset) const {
  size_t count = checkpoints_[offset / kCheckpointBytes];
  for (size_t i = offset - offset % kCheckpointBytes; i < offset; ++i) {
    count += !is_continuation(text_[i]);
  }
  return count;
}

void SourceText::locate(size_t offset, int& line, int& column) const {
  offset = std::min(offset, text_.size());
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const size_t start = *(next - 1);
  line = static_cast<int>(next - line_starts_.begin());
  column = static_cast<int>(characters_before(offset) - characters_before(start)) + 1;
}

SourceLocation SourceText::location(size_t offset) const {
  SourceLocation place{*name_, 0, 0};
  if (kind_ == SourceKind::kYaml || kind_ == SourceKind::kJson) {
    locate(offset, place.line, place.column);
  }
  return place;
}

std::string read_text_file(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status)) fail(ErrorCode::kUsage, path, ": no such file");
  if (std::filesystem::is_directory(status)) {
    fail(ErrorCode::kUsage, path, ": a file was expected, this is a folder");
  }
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) fail(ErrorCode::kUsage, path, ": cannot be opened: ", std::strerror(errno));
  std::string text;
  char buffer[65536];
  size_t count = 0;
  while (text.size() <= kMaxFileBytes && (count = std::fread(buffer, 1, sizeof buffer, file)) > 0) {
    text.append(buffer, count);
  }
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) fail(ErrorCode::kUsage, path, ": cannot be read");
  if (text.size() > kMaxFileBytes) {
    throw Error(ErrorCode::kConfig, "the file is over 16 MiB, which no configuration needs",
                {path, 0, 0});
  }
  return is_encrypted(text) ? read_file(path, kMaxFileBytes, ErrorCode::kConfig) : text;
}

void check_utf8(const SourceText& source) {
  const std::string_view text = source.text();
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_character(text, i).length;
    if (length == 0) {
      throw Error(ErrorCode::kConfig, "not UTF-8 text", source.location(i));
    }
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F) {
      throw Error(ErrorCode::kConfig, str("a control character (code ", static_cast<int>(c), ")"),
                  source.location(i));
    }
    i += length;
  }
}

}  // namespace paddle::config
