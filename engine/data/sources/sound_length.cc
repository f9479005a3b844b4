// The length of a sound from the header of its file, for batches of similar lengths.

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "data/sources/cell_values.h"

namespace paddle::data {
namespace {

using Bytes = std::span<const std::byte>;

uint64_t little_endian(Bytes bytes) {
  uint64_t out = 0;
  for (size_t i = bytes.size(); i-- > 0;) out = out << 8 | static_cast<uint64_t>(bytes[i]);
  return out;
}

uint64_t big_endian(Bytes bytes) {
  uint64_t out = 0;
  for (const std::byte byte : bytes) out = out << 8 | static_cast<uint64_t>(byte);
  return out;
}

bool has_tag(Bytes file, size_t at, std::string_view tag) {
  return file.size() >= at + tag.size() &&
         std::equal(tag.begin(), tag.end(), reinterpret_cast<const char*>(file.data()) + at);
}

/// Bytes of `data` over the bytes of one sample of all channels.
int64_t wav_length(Bytes file) {
  uint64_t block = 0;
  constexpr size_t kHeader = 8, kBlockAlign = 12;
  for (size_t at = 12; at + kHeader <= file.size();) {
    const uint64_t left = file.size() - at - kHeader;
    const uint64_t size = std::min(little_endian(file.subspan(at + 4, 4)), left);
    if (has_tag(file, at, "fmt ") && size >= kBlockAlign + 2)
      block = little_endian(file.subspan(at + kHeader + kBlockAlign, 2));
    if (has_tag(file, at, "data")) return block == 0 ? 0 : static_cast<int64_t>(size / block);
    at += kHeader + static_cast<size_t>(size + size % 2);
  }
  return 0;
}

/// The last 36 bits before the checksum of STREAMINFO, which is the first block.
int64_t flac_length(Bytes file) {
  constexpr size_t kNumbers = 4 + 4 + 10;
  if (file.size() < kNumbers + 8) return 0;
  return static_cast<int64_t>(big_endian(file.subspan(kNumbers, 8)) & ((uint64_t{1} << 36) - 1));
}

int64_t length_of_file(Bytes file) {
  if (has_tag(file, 0, "RIFF") && has_tag(file, 8, "WAVE")) return wav_length(file);
  return has_tag(file, 0, "fLaC") ? flac_length(file) : 0;
}

}  // namespace

int64_t sound_length(const CsvField& field, std::string_view cell, bool is_content,
                     const SourceLocation& place) {
  try {
    if (is_content)
      return std::min(length_of_file(std::as_bytes(std::span(cell.data(), cell.size()))),
                      field.max_length);
    const auto file = MappedFile::open(path_in_cell(field, cell, place));
    return std::min(length_of_file(file->bytes()), field.max_length);
  } catch (const Error&) {
    return 0;  // `read` reports it
  }
}

}  // namespace paddle::data
