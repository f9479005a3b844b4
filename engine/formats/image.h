#pragma once
// Image files: decodes JPEG, PNG, TIFF, WebP and BMP, encodes PNG. Sizes are checked before memory
// is allocated.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace paddle::formats {

/// Interleaved pixels [height, width, channels].
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels = {};
  std::vector<uint16_t> wide = {};  ///< replaces `pixels` for 16-bit samples
  std::string warning = {};         ///< a problem of a file that was decoded nevertheless
};

/// The largest image that is decoded, in pixels.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 28;

/// How 8-bit and 16-bit samples are converted.
enum class SampleDepth {
  kEight,    ///< 8 bits; 16-bit files are rejected
  kReduced,  ///< 8 bits; 16-bit samples are divided by 257 and rounded
  kSixteen,  ///< 16 bits; 8-bit samples are multiplied by 257
};

/// Decodes JPEG, PNG, TIFF, WebP or BMP (detected by content) to the stored sample values: no gamma
/// or color profile is applied, as in Pillow and OpenCV. The orientation that EXIF or TIFF tags
/// give is applied. `channels` is 1 (grey), 3 (RGB) or 4 (RGBA); an unrequested alpha channel is
/// dropped. Of a TIFF with several pages the first is decoded. `name` is used in errors, which are
/// kData.
Image decode_image(std::span<const std::byte> content, int channels, const std::string& name,
                   SampleDepth depth = SampleDepth::kEight);
/// One number per pixel as a PNG, TIFF or BMP file stores it, for masks: the index into a palette,
/// or a grey sample of up to 16 bits. Other files are kData. The orientation is applied.
Image decode_indices(std::span<const std::byte> content, const std::string& name);
/// The endings of image files, for messages.
inline constexpr char kImageEndings[] = ".jpg, .jpeg, .png, .tif, .tiff, .webp or .bmp";
/// Whether a file name has one of `kImageEndings`, in upper or lower case.
bool has_image_ending(std::string_view name);
Image read_image(const std::string& path, int channels, SampleDepth depth = SampleDepth::kEight);
/// Writes 1 (grey), 3 (RGB) or 4 (RGBA) channels of 8 bits, atomically.
void write_png(const std::string& path, const Image& image);

}  // namespace paddle::formats
