// Follows a scalar's decoded text through the file's indentation, folding, quotes and escapes, so
// that an error inside a body points to the right line and column.
#include "config/document.h"

namespace paddle::config {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

size_t utf8_length(uint32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

uint32_t hex_at(std::string_view text, size_t begin, size_t count) {
  uint32_t code = 0;
  for (size_t i = begin; i < begin + count && i < text.size(); ++i) {
    const char c = text[i];
    code = code * 16 + static_cast<uint32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return code;
}

struct Escape {
  size_t source_bytes = 2;
  size_t text_bytes = 1;
};

/// The extent of the escape at `text[i]` (a backslash) and of what it stands for.
Escape escape_at(std::string_view text, size_t i) {
  switch (i + 1 < text.size() ? text[i + 1] : '\0') {
    case 'x':
      return {4, utf8_length(hex_at(text, i + 2, 2))};
    case 'U':
      return {10, utf8_length(hex_at(text, i + 2, 8))};
    case 'N':
    case '_':
      return {2, 2};
    case 'L':
    case 'P':
      return {2, 3};
    case 'u': {
      const uint32_t code = hex_at(text, i + 2, 4);
      const bool pair = code >= 0xD800 && code < 0xDC00 && text.substr(i + 6).starts_with("\\u");
      return pair ? Escape{12, 4} : Escape{6, utf8_length(code)};
    }
    default:
      return {};
  }
}

}  // namespace

ScalarLocations::ScalarLocations(const Node& scalar) : source_(scalar.source) {
  const std::string_view from = source_ ? source_->text() : std::string_view();
  const std::string_view text = scalar.text;
  offsets_.reserve(text.size() + 1);
  const bool is_double = scalar.quote == Node::Quote::kDouble;
  const bool is_single = scalar.quote == Node::Quote::kSingle;
  size_t s = scalar.offset;
  if (scalar.quote == Node::Quote::kLiteral || scalar.quote == Node::Quote::kFolded) {
    s = std::min(from.find('\n', s), from.size());
  } else if (is_double || is_single) {
    ++s;
  }
  for (size_t i = 0; i < text.size();) {
    // A line break escaped inside double quotes stands for nothing.
    while (is_double && s + 1 < from.size() && from[s] == '\\' &&
           (from[s + 1] == '\n' || from[s + 1] == '\r')) {
      s = std::min(from.find_first_not_of(" \t\r\n", s + 1), from.size());
    }
    if (!is_space(text[i])) {
      while (s < from.size() && from[s] != text[i] && is_space(from[s])) ++s;
    }
    if (is_double && s < from.size() && from[s] == '\\') {
      const Escape escape = escape_at(from, s);
      for (size_t k = 0; k < escape.text_bytes && i < text.size(); ++k, ++i) {
        offsets_.push_back(static_cast<uint32_t>(s));
      }
      s += escape.source_bytes;
      continue;
    }
    offsets_.push_back(static_cast<uint32_t>(std::min(s, from.size())));
    if (s < from.size() && from[s] == text[i]) ++s;
    if (is_single && text[i] == '\'' && s < from.size() && from[s] == '\'') ++s;
    ++i;
  }
  offsets_.push_back(static_cast<uint32_t>(std::min(s, from.size())));
}

SourcePosition ScalarLocations::at(size_t text_offset) const {
  SourcePosition where;
  if (!source_) return where;
  where.file = source_->shared_name();
  const SourceLocation place =
      source_->location(offsets_[std::min(text_offset, offsets_.size() - 1)]);
  where.line = place.line;
  where.column = place.column;
  return where;
}

}  // namespace paddle::config
