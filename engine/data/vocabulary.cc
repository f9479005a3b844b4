#include "data/vocabulary.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "base/utf8.h"

namespace paddle::data {

std::optional<size_t> invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_character(text, at).length;
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::string printable(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_character(text, at).length;
    if (length > 0) {
      out += text.substr(at, length);
    } else {
      const auto byte = static_cast<unsigned char>(text[at]);
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
    at += std::max<size_t>(length, 1);
  }
  return out;
}

size_t character_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  const size_t length = first < 0x80             ? 1
                        : (first & 0xe0) == 0xc0 ? 2
                        : (first & 0xf0) == 0xe0 ? 3
                        : (first & 0xf8) == 0xf0 ? 4
                                                 : 1;
  if (at + length > text.size()) return 1;
  for (size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 1;
  return length;
}

Vocabulary::Vocabulary(std::vector<std::string> tokens) : Vocabulary(std::move(tokens), false) {
  for (const std::string& token : tokens_)
    if (invalid_utf8(token))
      fail(ErrorCode::kData, "vocabulary: token '", printable(token), "' is not UTF-8");
}

Vocabulary::Vocabulary(std::vector<std::string> tokens, bool is_bytes)
    : tokens_(std::move(tokens)), is_bytes_(is_bytes) {
  for (size_t i = 0; i < tokens_.size(); ++i)
    if (!index_.emplace(tokens_[i], static_cast<int64_t>(i)).second)
      fail(ErrorCode::kData, "vocabulary: token '", printable(tokens_[i]), "' appears twice");
}

Vocabulary Vocabulary::characters_of(std::string_view text, const std::string& name) {
  std::set<std::string, std::less<>> seen;  // UTF-8 sorts as its code points do
  int line = 1, column = 1;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_character(text, at).length;
    if (length == 0)
      throw Error(ErrorCode::kData,
                  str("byte ", printable(text.substr(at, 1)),
                      " is not UTF-8; convert the file (iconv -t UTF-8) or use `level: bytes`"),
                  {name, line, column});
    const std::string_view character = text.substr(at, length);
    if (!seen.contains(character)) seen.emplace(character);
    ++column;
    if (character == "\n") ++line, column = 1;
    at += length;
  }
  return Vocabulary({seen.begin(), seen.end()});
}

Vocabulary Vocabulary::bytes() {
  std::vector<std::string> tokens;
  for (int i = 0; i < 256; ++i) tokens.emplace_back(1, static_cast<char>(i));
  return Vocabulary(std::move(tokens), true);
}

Vocabulary Vocabulary::read(const std::string& path) {
  std::string text = read_file(path, uint64_t{1} << 28);
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  std::vector<std::string> tokens;
  const bool json = text.starts_with('[');
  if (json) {
    const auto list = nlohmann::json::parse(text, nullptr, false);
    if (!list.is_array()) fail(ErrorCode::kData, path, ": no valid JSON list");
    for (const auto& item : list) {
      if (!item.is_string()) fail(ErrorCode::kData, path, ": a list of strings is needed");
      tokens.push_back(item.get<std::string>());
    }
  } else {
    tokens = split(text, '\n');
    for (std::string& token : tokens)
      if (token.ends_with('\r')) token.pop_back();
    if (!tokens.empty() && tokens.back().empty()) tokens.pop_back();
  }
  if (tokens.empty()) fail(ErrorCode::kData, path, ": the vocabulary is empty");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const SourceLocation place{path, json ? 0 : static_cast<int>(i + 1)};
    if (invalid_utf8(tokens[i]))
      throw Error(ErrorCode::kData, str("token '", printable(tokens[i]), "' is not UTF-8"), place);
    if (!seen.insert(tokens[i]).second)
      throw Error(ErrorCode::kData, str("token '", tokens[i], "' appears twice"), place);
  }
  return Vocabulary(std::move(tokens));
}

std::string Vocabulary::json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const std::string& token : tokens_) {
    if (token.size() == 1 && static_cast<unsigned char>(token[0]) >= 0x80) {
      const unsigned value = static_cast<unsigned char>(token[0]);
      list.push_back(std::string{static_cast<char>(0xc0 | value >> 6),
                                 static_cast<char>(0x80 | (value & 0x3f))});
    } else {
      list.push_back(token);
    }
  }
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<int64_t> Vocabulary::find(std::string_view token) const {
  const auto found = index_.find(token);
  return found == index_.end() ? std::nullopt : std::optional<int64_t>(found->second);
}

std::vector<int64_t> Vocabulary::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  ids.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = is_bytes_ ? 1 : character_length(text, at);
    const auto id = find(text.substr(at, length));
    if (!id)
      fail(ErrorCode::kData, "character '", text.substr(at, length), "' at byte ", at,
           " is not in the vocabulary of ", size(), " characters");
    ids.push_back(*id);
    at += length;
  }
  return ids;
}

std::string Vocabulary::decode(const std::vector<int64_t>& ids) const {
  std::string out;
  for (const int64_t id : ids) {
    if (id < 0 || id >= size())
      fail(ErrorCode::kData, "token ", id, " is outside the vocabulary of ", size());
    out += token(id);
  }
  return out;
}

}  // namespace paddle::data
