#include "formats/tar.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

namespace paddle::formats {
namespace {

constexpr size_t kBlock = 512;
constexpr uint64_t kMaxNameLength = 1 << 16;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A field of a header up to its first zero.
std::string_view field(std::string_view header, size_t at, size_t length) {
  const std::string_view whole = header.substr(at, length);
  return whole.substr(0, whole.find('\0'));
}

/// An octal number, or a binary one where the first bit is set; nullopt for anything else.
std::optional<uint64_t> number(std::string_view header, size_t at, size_t length) {
  const std::string_view digits = header.substr(at, length);
  uint64_t out = 0;
  if (static_cast<unsigned char>(digits[0]) & 0x80) {
    for (size_t i = 0; i < digits.size(); ++i) {
      const auto byte = static_cast<unsigned char>(i == 0 ? digits[i] & 0x7f : digits[i]);
      if (out >> 55) return std::nullopt;
      out = out << 8 | byte;
    }
    return out;
  }
  size_t i = 0;
  while (i < digits.size() && digits[i] == ' ') ++i;
  const size_t first = i;
  for (; i < digits.size() && digits[i] >= '0' && digits[i] <= '7'; ++i) {
    if (out >> 60) return std::nullopt;
    out = out << 3 | static_cast<uint64_t>(digits[i] - '0');
  }
  if (i < digits.size() && digits[i] != ' ' && digits[i] != '\0') return std::nullopt;
  return i == first && digits[first] != '\0' && digits[first] != ' ' ? std::nullopt
                                                                     : std::optional(out);
}

bool checksum_fits(std::string_view header) {
  constexpr size_t kAt = 148, kLength = 8;
  const auto stated = number(header, kAt, kLength);
  uint64_t sum = 0;
  int64_t signed_sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const char c = i >= kAt && i < kAt + kLength ? ' ' : header[i];
    sum += static_cast<unsigned char>(c);
    signed_sum += static_cast<signed char>(c);
  }
  return stated && (*stated == sum || static_cast<int64_t>(*stated) == signed_sum);
}

/// The value of a key in a pax header, whose records read "LENGTH key=value\n".
std::optional<std::string> pax_value(std::string_view records, std::string_view key) {
  std::optional<std::string> out;
  while (!records.empty()) {
    size_t length = 0, at = 0;
    while (at < records.size() && records[at] >= '0' && records[at] <= '9' &&
           length < kMaxNameLength)
      length = length * 10 + static_cast<size_t>(records[at++] - '0');
    if (at == 0 || at >= records.size() || records[at] != ' ' || length <= at + 1 ||
        length > records.size())
      return std::nullopt;
    const std::string_view record = records.substr(at + 1, length - at - 2);  // without '\n'
    const size_t equals = record.find('=');
    if (equals != std::string_view::npos && record.substr(0, equals) == key)
      out = std::string(record.substr(equals + 1));
    records.remove_prefix(length);
  }
  return out;
}

}  // namespace

std::vector<TarMember> read_tar_index(std::span<const std::byte> content, const std::string& name) {
  const std::string_view text = text_of(content);
  std::vector<TarMember> out;
  std::optional<std::string> long_name, pax_size;
  size_t at = 0;
  const auto damaged = [&](const char* what) {
    fail(ErrorCode::kData, name, ": ", what, " at byte ", at);
  };
  while (at + kBlock <= text.size()) {
    const std::string_view header = text.substr(at, kBlock);
    if (header.find_first_not_of('\0') == std::string_view::npos) break;  // the end
    if (!checksum_fits(header))
      damaged(at == 0 ? "not a tar archive: no header" : "damaged tar header");
    auto size = number(header, 124, 12);
    if (pax_size) {
      uint64_t given = 0;
      for (const char c : *pax_size) {
        if (c < '0' || c > '9' || given >> 58) damaged("damaged size in a pax header");
        given = given * 10 + static_cast<uint64_t>(c - '0');
      }
      size = given;
      pax_size.reset();
    }
    if (!size) damaged("damaged size in a tar header");
    const size_t begin = at + kBlock;
    if (*size > text.size() - begin) damaged("the archive is cut short in the member");
    const std::string_view data = text.substr(begin, *size);
    const char type = header[156];
    if (type == 'L' || type == 'x' || type == 'K' || type == 'g') {
      if (*size > kMaxNameLength) damaged("an extended header of more than 64 KiB");
      if (type == 'L') {
        long_name = std::string(data.substr(0, data.find('\0')));
      } else if (type == 'x') {
        if (auto path = pax_value(data, "path")) long_name = std::move(path);
        pax_size = pax_value(data, "size");
      }
    } else {
      std::string member(field(header, 0, 100));
      if (header.substr(257, 5) == "ustar" && header[262] == '\0')
        if (const std::string_view prefix = field(header, 345, 155); !prefix.empty())
          member = std::string(prefix) + "/" + member;
      if (long_name) member = std::move(*long_name);
      long_name.reset();
      if (type == '0' || type == '\0' || type == '7') out.push_back({member, begin, *size});
    }
    at = begin + (*size + kBlock - 1) / kBlock * kBlock;
  }
  if (text.size() < kBlock) damaged("not a tar archive");
  if (at > text.size() || (text.size() - at < kBlock && at != text.size()))
    damaged("the archive is cut short");
  return out;
}

}  // namespace paddle::formats
