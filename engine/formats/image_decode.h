#pragma once
// Shared interface of the decoders of decode_image.

#include <algorithm>

#include "base/error.h"
#include "formats/image.h"

namespace paddle::formats {

/// A decoded file before conversion of channels and orientation.
struct DecodedImage {
  Image image;
  int orientation = 1;       ///< as in EXIF
  bool stored_grey = false;  ///< a JPEG with one component
  bool is_cmyk = false;      ///< four inks, inverted: 0 is full ink
};

/// Grey, RGB or CMYK (inverted, as Adobe writes it), 8 bits.
DecodedImage decode_jpeg(std::span<const std::byte> content, bool grey, const std::string& name);
/// Grey and alpha, or RGBA, with 8 or 16 bits as stored. With `indices` palettes are not looked up,
/// and samples of fewer than 8 bits keep their values: grey, indices, or several channels.
DecodedImage decode_png(std::span<const std::byte> content, const std::string& name,
                        bool indices = false);
/// The first page: grey, RGB or inverted CMYK, with or without alpha, of 8 or 16 bits. With
/// `indices` palettes and grey samples of up to 16 bits keep their values.
DecodedImage decode_tiff(std::span<const std::byte> content, const std::string& name,
                         bool indices = false);
/// RGB or RGBA of 8 bits. Animations are rejected.
DecodedImage decode_webp(std::span<const std::byte> content, const std::string& name);
/// RGB or RGBA of 8 bits, or the indices of a palette.
DecodedImage decode_bmp(std::span<const std::byte> content, const std::string& name,
                        bool indices = false);

/// Upper bound of the pixels that a file of this size can hold, at `per_byte` in the best case,
/// with a minimum for small images.
inline int64_t most_pixels(size_t bytes, int64_t per_byte) {
  const int64_t by_file = static_cast<int64_t>(bytes) * per_byte + (int64_t{1} << 20);
  return std::min(kMaxImagePixels, by_file);
}

[[noreturn]] inline void reject_size(int64_t height, int64_t width, int64_t most,
                                     const std::string& name) {
  fail(ErrorCode::kData, name, ": declares ", width, " x ", height,
       " pixels; a file of its size may have at most ", most);
}

}  // namespace paddle::formats
