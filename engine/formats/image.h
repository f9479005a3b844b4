#pragma once
// Images: JPEG and PNG to samples and back to PNG. Sizes are checked before memory is taken.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"

namespace paddle::formats {

/// Rows of pixels of interleaved channels: [height, width, channels].
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels = {};
  std::vector<uint16_t> wide = {};  ///< instead of `pixels` where 16 bits are asked for
  std::string warning = {};         ///< what was wrong with a file that was decoded all the same
};

/// The largest picture that is decoded, in pixels.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 28;

/// What becomes of PNG files with 16 bits a sample, and of the others beside them.
enum class SampleDepth {
  kEight,    ///< 8 bits; a file of 16 bits is refused
  kReduced,  ///< 8 bits; those of 16 bits are divided by 257 and rounded
  kSixteen,  ///< 16 bits; those of 8 bits are multiplied by 257
};

/// Decodes JPEG or PNG, told apart by content, to the values that the file stores: no gamma or
/// colour profile is applied, as in Pillow and OpenCV. An EXIF orientation is applied. `channels`
/// is 1 (grey), 3 (RGB) or 4 (RGBA); an alpha channel that is not asked for is dropped. `name` is
/// used in errors, which are kData.
Image decode_image(std::span<const std::byte> content, int channels, const std::string& name,
                   SampleDepth depth = SampleDepth::kEight);
Image read_image(const std::string& path, int channels, SampleDepth depth = SampleDepth::kEight);
/// Writes 1 (grey), 3 (RGB) or 4 (RGBA) channels of 8 bits, atomically.
void write_png(const std::string& path, const Image& image);

}  // namespace paddle::formats
