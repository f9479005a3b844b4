#include "formats/exif.h"

#include <cstdint>
#include <optional>

namespace paddle::formats {
namespace {

/// Unsigned integers at checked offsets, in the byte order of the file.
class TiffReader {
 public:
  TiffReader(std::span<const std::byte> data, bool big_endian)
      : data_(data), big_endian_(big_endian) {}
  std::optional<uint32_t> read(size_t at, size_t bytes) const {
    if (at > data_.size() || data_.size() - at < bytes) return std::nullopt;
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      const size_t from = big_endian_ ? at + i : at + bytes - 1 - i;
      value = value << 8 | static_cast<uint32_t>(data_[from]);
    }
    return value;
  }

 private:
  std::span<const std::byte> data_;
  bool big_endian_;
};

}  // namespace

int exif_orientation(std::span<const std::byte> tiff) {
  constexpr uint32_t kMagic = 42, kOrientation = 0x0112, kShort = 3;
  constexpr size_t kEntryBytes = 12;
  if (tiff.size() < 8 || tiff[0] != tiff[1]) return 1;
  const char order = static_cast<char>(tiff[0]);
  if (order != 'I' && order != 'M') return 1;
  const TiffReader reader(tiff, order == 'M');
  if (reader.read(2, 2) != kMagic) return 1;
  const size_t directory = *reader.read(4, 4);
  const auto entries = reader.read(directory, 2);
  for (size_t i = 0; entries && i < *entries; ++i) {
    const size_t at = directory + 2 + i * kEntryBytes;
    const auto tag = reader.read(at, 2);
    if (!tag) return 1;
    if (tag != kOrientation) continue;
    const auto value = reader.read(at + 8, 2);
    const bool valid = reader.read(at + 2, 2) == kShort && reader.read(at + 4, 4) == 1u && value &&
                       *value >= 1 && *value <= 8;
    return valid ? static_cast<int>(*value) : 1;
  }
  return 1;
}

}  // namespace paddle::formats
