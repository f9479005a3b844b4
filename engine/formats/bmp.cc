#include <array>
#include <bit>
#include <cstdlib>

#include "formats/image_decode.h"

namespace paddle::formats {
namespace {

/// Two bytes hold up to 255 pixels of one color.
constexpr int64_t kRunPixelsPerByte = 128;
constexpr size_t kFileHeaderBytes = 14;

enum BmpCompression : uint32_t {
  kUncompressed = 0,
  kRuns8 = 1,
  kRuns4 = 2,
  kMasks = 3,
  kMasksWithAlpha = 6,
};

using Color = std::array<uint8_t, 3>;  ///< red, green, blue

/// Little-endian numbers at checked offsets.
class BmpBytes {
 public:
  BmpBytes(std::span<const std::byte> content, const std::string& name)
      : content_(content), name_(name) {}
  uint32_t number(size_t at, size_t bytes) const {
    need(at, bytes);
    uint32_t out = 0;
    for (size_t i = bytes; i-- > 0;) out = out << 8 | std::to_integer<uint32_t>(content_[at + i]);
    return out;
  }
  uint8_t byte(size_t at) const {
    need(at, 1);
    return std::to_integer<uint8_t>(content_[at]);
  }
  void need(size_t at, size_t bytes) const {
    if (at > content_.size() || content_.size() - at < bytes) damaged("the file is cut short");
  }
  [[noreturn]] void damaged(const char* what) const {
    fail(ErrorCode::kData, name_, ": damaged BMP: ", what);
  }
  size_t size() const { return content_.size(); }
  const std::string& name() const { return name_; }

 private:
  std::span<const std::byte> content_;
  const std::string& name_;
};

struct BmpHeader {
  int64_t height = 0, width = 0;
  bool top_down = false;
  uint32_t bits = 0, compression = kUncompressed;
  size_t pixels_at = 0;
  std::array<uint32_t, 4> masks = {};  ///< red, green, blue, alpha; of 16 and 32 bits a pixel
  std::vector<Color> palette = {};     ///< of up to 8 bits a pixel

  /// The row of the image for a row of the file.
  int64_t image_row(int64_t y) const { return top_down ? y : height - 1 - y; }
};

bool is_known_depth(uint32_t bits, uint32_t compression) {
  switch (compression) {
    case kUncompressed:
      return bits == 1 || bits == 4 || bits == 8 || bits == 16 || bits == 24 || bits == 32;
    case kRuns8:
      return bits == 8;
    case kRuns4:
      return bits == 4;
    case kMasks:
    case kMasksWithAlpha:
      return bits == 16 || bits == 32;
    default:
      return false;
  }
}

/// Headers of OS/2 (12 and 64 bytes) and Windows (40 to 124 bytes).
BmpHeader read_bmp_header(const BmpBytes& file) {
  constexpr size_t kCore = 12, kInfo = 40, kWithMasks = 52, kWithAlpha = 56, kOs2 = 64;
  BmpHeader out;
  const size_t at = kFileHeaderBytes, bytes = file.number(at, 4);
  const bool core = bytes == kCore;
  if (!core && bytes != kInfo && bytes != kWithMasks && bytes != kWithAlpha && bytes != kOs2 &&
      bytes != 108 && bytes != 124)
    fail(ErrorCode::kData, file.name(), ": a BMP with a header of ", bytes,
         " bytes, expected one of OS/2 or Windows");
  file.need(at, bytes);
  out.pixels_at = file.number(10, 4);
  if (core) {
    out.width = file.number(at + 4, 2);
    out.height = file.number(at + 6, 2);
    out.bits = file.number(at + 10, 2);
  } else {
    const auto height = static_cast<int32_t>(file.number(at + 8, 4));
    out.width = static_cast<int32_t>(file.number(at + 4, 4));
    out.height = std::abs(int64_t{height});
    out.top_down = height < 0;
    out.bits = file.number(at + 14, 2);
    out.compression = file.number(at + 16, 4);
  }
  if (!is_known_depth(out.bits, out.compression) || (bytes == kOs2 && out.compression >= kMasks))
    fail(ErrorCode::kData, file.name(), ": a BMP with ", out.bits, " bits a pixel and compression ",
         out.compression, ", which is not supported");
  if (out.pixels_at < at + bytes) file.damaged("its pixels begin inside its header");
  if (out.compression == kMasks || out.compression == kMasksWithAlpha) {
    // After the short header, and in the same place of the longer ones.
    const size_t count = bytes >= kWithAlpha || out.compression == kMasksWithAlpha ? 4 : 3;
    for (size_t i = 0; i < count; ++i) out.masks[i] = file.number(at + kInfo + 4 * i, 4);
  } else if (out.bits == 16) {
    out.masks = {0x7C00, 0x03E0, 0x001F, 0};
  } else if (out.bits == 32) {
    out.masks = {0xFF0000, 0x00FF00, 0x0000FF, 0};
  }
  if (out.bits <= 8) {
    const size_t entry = core ? 3 : 4, all = size_t{1} << out.bits;
    const size_t declared = core ? 0 : file.number(at + 32, 4);
    size_t count = declared == 0 ? all : std::min(declared, all);
    count = std::min(count, (out.pixels_at - at - bytes) / entry);
    for (size_t i = 0; i < count; ++i) {
      const size_t from = at + bytes + i * entry;
      out.palette.push_back({file.byte(from + 2), file.byte(from + 1), file.byte(from)});
    }
  }
  return out;
}

/// Indices of 1, 4 or 8 bits, most significant first.
void unpack_indices(const BmpBytes& file, const BmpHeader& header, size_t stride,
                    std::vector<uint8_t>& out) {
  const size_t bits = header.bits, width = static_cast<size_t>(header.width);
  for (int64_t y = 0; y < header.height; ++y) {
    const size_t row = header.pixels_at + static_cast<size_t>(y) * stride;
    uint8_t* to = out.data() + static_cast<size_t>(header.image_row(y)) * width;
    for (size_t x = 0; x < width; ++x) {
      const size_t bit = x * bits;
      to[x] = static_cast<uint8_t>(file.byte(row + bit / 8) >> (8 - bits - bit % 8) &
                                   ((1u << bits) - 1));
    }
  }
}

/// Runs of indices of 4 or 8 bits. Pixels that no run reaches keep index 0, and what runs beyond
/// the end of a row is dropped.
void unpack_runs(const BmpBytes& file, const BmpHeader& header, std::vector<uint8_t>& out) {
  const bool wide = header.bits == 8;
  size_t at = header.pixels_at;
  int64_t x = 0, y = 0;
  const auto put = [&](uint8_t index) {
    if (x < header.width) out[static_cast<size_t>(header.image_row(y) * header.width + x)] = index;
    ++x;
  };
  const auto half = [](uint8_t pair, size_t i) {
    return static_cast<uint8_t>(i % 2 == 0 ? pair >> 4 : pair & 15);
  };
  while (y < header.height) {
    const size_t count = file.byte(at);
    const uint8_t value = file.byte(at + 1);
    at += 2;
    if (count > 0) {
      for (size_t i = 0; i < count; ++i) put(wide ? value : half(value, i));
    } else if (value == 0) {  // end of the row
      x = 0;
      ++y;
    } else if (value == 1) {  // end of the image
      return;
    } else if (value == 2) {  // a move
      x += file.byte(at);
      y += file.byte(at + 1);
      at += 2;
    } else {  // as many pixels as they are, padded to 16 bits
      for (size_t i = 0; i < value; ++i)
        put(wide ? file.byte(at + i) : half(file.byte(at + i / 2), i));
      const size_t bytes = wide ? value : (value + 1u) / 2;
      at += (bytes + 1) / 2 * 2;
    }
  }
}

/// A part of a pixel of 16 or 32 bits, scaled to 8 bits as Pillow does.
uint8_t masked(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  return static_cast<uint8_t>(uint64_t{(pixel & mask) >> shift} * 255 / (mask >> shift));
}

/// Pixels of 16, 24 or 32 bits.
void unpack_colors(const BmpBytes& file, const BmpHeader& header, size_t stride, Image& image) {
  const size_t bytes = header.bits / 8;
  for (int64_t y = 0; y < header.height; ++y) {
    const size_t row = header.pixels_at + static_cast<size_t>(y) * stride;
    uint8_t* to = image.pixels.data() + header.image_row(y) * header.width * image.channels;
    for (size_t x = 0; x < static_cast<size_t>(header.width); ++x) {
      const uint32_t pixel = file.number(row + x * bytes, bytes);
      for (size_t c = 0; c < static_cast<size_t>(image.channels); ++c)
        *to++ = bytes == 3 ? static_cast<uint8_t>(pixel >> (16 - 8 * c))
                           : masked(pixel, header.masks[c]);
    }
  }
}

}  // namespace

DecodedImage decode_bmp(std::span<const std::byte> content, const std::string& name, bool indices) {
  const BmpBytes file(content, name);
  const BmpHeader header = read_bmp_header(file);
  const bool runs = header.compression == kRuns8 || header.compression == kRuns4;
  const int64_t most = most_pixels(content.size(), runs ? kRunPixelsPerByte : 8);
  if (header.width < 1 || header.height < 1 || header.height > most / header.width)
    reject_size(header.height, header.width, most, name);
  const auto width = static_cast<size_t>(header.width), height = static_cast<size_t>(header.height);
  // Rows are padded to 32 bits; some programs leave that out after the last one.
  const size_t row_bytes = (width * header.bits + 7) / 8, stride = (row_bytes + 3) / 4 * 4;
  if (!runs) file.need(header.pixels_at, stride * (height - 1) + row_bytes);
  DecodedImage out;
  Image& image = out.image;
  image.height = header.height;
  image.width = header.width;
  if (header.bits > 8) {
    image.channels = header.masks[3] != 0 ? 4 : 3;
    image.pixels.resize(width * height * static_cast<size_t>(image.channels));
    unpack_colors(file, header, stride, image);
    return out;
  }
  std::vector<uint8_t> stored(width * height);
  if (runs)
    unpack_runs(file, header, stored);
  else
    unpack_indices(file, header, stride, stored);
  if (indices) {
    image.channels = 1;
    image.pixels = std::move(stored);
    return out;
  }
  image.channels = 3;
  image.pixels.resize(stored.size() * 3);
  for (size_t i = 0; i < stored.size(); ++i) {
    if (stored[i] >= header.palette.size()) file.damaged("a pixel has a color beyond the palette");
    std::copy_n(header.palette[stored[i]].data(), 3, image.pixels.data() + i * 3);
  }
  return out;
}

}  // namespace paddle::formats
