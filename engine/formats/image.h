#pragma once
// Images: JPEG and PNG to bytes and back to PNG. Sizes are checked before memory is taken.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"

namespace paddle::formats {

/// Rows of pixels of interleaved channels: [height, width, channels].
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;
};

/// The largest picture that is decoded, in pixels.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 28;

/// Decodes JPEG or PNG, told apart by content. `channels` is 1 (grey), 3 (RGB) or 4 (RGBA); an
/// alpha channel that is not asked for is dropped, 16-bit samples are reduced to 8. `name` stands
/// in errors, which are kData.
Image decode_image(std::span<const std::byte> content, int channels, const std::string& name);
Image read_image(const std::string& path, int channels);
/// Writes 1 (grey), 3 (RGB) or 4 (RGBA) channels, atomically.
void write_png(const std::string& path, const Image& image);

}  // namespace paddle::formats
