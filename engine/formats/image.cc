#include "formats/image.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include "formats/image_decode.h"

namespace paddle::formats {
namespace {

/// ITU-R 601, in fixed point as Pillow computes it.
template <class T>
T grey_of(uint32_t r, uint32_t g, uint32_t b) {
  return static_cast<T>((r * 19595u + g * 38470u + b * 7471u + 32768u) >> 16);
}

/// Grey, grey and alpha, RGB, RGBA or inverted CMYK to 1, 3 or 4 channels.
template <class T>
std::vector<T> with_channels(std::vector<T> from, size_t given, size_t wanted, bool cmyk) {
  constexpr uint32_t kMax = std::numeric_limits<T>::max();
  if (given == wanted && !cmyk) return from;
  const auto inked = [](uint32_t color, uint32_t black) {
    return (color * black + kMax / 2) / kMax;  // rounded, as in Pillow
  };
  const size_t count = from.size() / given;
  std::vector<T> out(count * wanted);
  for (size_t i = 0; i < count; ++i) {
    const T* p = from.data() + i * given;
    T* q = out.data() + i * wanted;
    uint32_t r = p[0], g = p[0], b = p[0], alpha = kMax;
    if (given >= 3) g = p[1], b = p[2];
    if (cmyk)
      r = inked(r, p[3]), g = inked(g, p[3]), b = inked(b, p[3]);
    else if (given == 2 || given == 4)
      alpha = p[given - 1];
    if (wanted == 1) {
      q[0] = given < 3 ? p[0] : grey_of<T>(r, g, b);
    } else {
      q[0] = static_cast<T>(r), q[1] = static_cast<T>(g), q[2] = static_cast<T>(b);
      if (wanted == 4) q[3] = static_cast<T>(alpha);
    }
  }
  return out;
}

/// Applies EXIF orientations 2 to 8.
template <class T>
void apply_orientation(int orientation, Image& image, std::vector<T>& pixels) {
  if (orientation == 1 || pixels.empty()) return;
  const bool transposed = orientation >= 5;
  const bool flip_rows =
      orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  const bool flip_columns =
      orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const int64_t height = transposed ? image.width : image.height;
  const int64_t width = transposed ? image.height : image.width;
  std::vector<T> out(pixels.size());
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      const int64_t v = flip_rows ? height - 1 - y : y, u = flip_columns ? width - 1 - x : x;
      const int64_t source = transposed ? u * image.width + v : v * image.width + u;
      std::copy_n(pixels.data() + source * image.channels, image.channels,
                  out.data() + (y * width + x) * image.channels);
    }
  pixels = std::move(out);
  image.height = height;
  image.width = width;
}

void apply_depth(Image& image, SampleDepth depth, const std::string& name) {
  if (depth == SampleDepth::kSixteen) {
    if (!image.wide.empty()) return;
    image.wide.resize(image.pixels.size());
    for (size_t i = 0; i < image.wide.size(); ++i)
      image.wide[i] = static_cast<uint16_t>(image.pixels[i] * 257);
    image.pixels.clear();
    return;
  }
  if (image.wide.empty()) return;
  if (depth == SampleDepth::kEight)
    fail(ErrorCode::kData, name,
         ": 16 bits a sample, expected 8; set `dtype: uint16` to keep them or "
         "`reduce_16_bit: true` to divide by 257");
  image.pixels.resize(image.wide.size());
  for (size_t i = 0; i < image.wide.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>((image.wide[i] + 128u) / 257u);
  image.wide.clear();
}

enum class ImageFormat { kJpeg, kPng, kTiff, kWebp, kBmp, kUnknown };

ImageFormat format_of(std::span<const std::byte> content) {
  const auto has = [&](size_t at, std::string_view magic) {
    return content.size() >= at + magic.size() &&
           std::memcmp(content.data() + at, magic.data(), magic.size()) == 0;
  };
  using namespace std::string_view_literals;
  if (has(0, "\xff\xd8\xff")) return ImageFormat::kJpeg;
  if (has(0, "\x89PNG\r\n\x1a\n")) return ImageFormat::kPng;
  // 42, and 43 for files of 64-bit offsets.
  for (const std::string_view magic : {"II\x2a\0"sv, "MM\0\x2a"sv, "II\x2b\0"sv, "MM\0\x2b"sv})
    if (has(0, magic)) return ImageFormat::kTiff;
  if (has(0, "RIFF") && has(8, "WEBP")) return ImageFormat::kWebp;
  return has(0, "BM") ? ImageFormat::kBmp : ImageFormat::kUnknown;
}

}  // namespace

Image decode_image(std::span<const std::byte> content, int channels, const std::string& name,
                   SampleDepth depth) {
  ensure(channels == 1 || channels == 3 || channels == 4, "decode_image: channels");
  DecodedImage decoded;
  switch (format_of(content)) {
    case ImageFormat::kJpeg:
      decoded = decode_jpeg(content, channels == 1, name);
      break;
    case ImageFormat::kPng:
      decoded = decode_png(content, name);
      break;
    case ImageFormat::kTiff:
      decoded = decode_tiff(content, name);
      break;
    case ImageFormat::kWebp:
      decoded = decode_webp(content, name);
      break;
    case ImageFormat::kBmp:
      decoded = decode_bmp(content, name);
      break;
    case ImageFormat::kUnknown:
      fail(ErrorCode::kData, name, ": neither JPEG, PNG, TIFF, WebP nor BMP");
  }
  Image& image = decoded.image;
  apply_depth(image, depth, name);
  const auto given = static_cast<size_t>(image.channels), wanted = static_cast<size_t>(channels);
  if (!image.pixels.empty())
    image.pixels = with_channels(std::move(image.pixels), given, wanted, decoded.is_cmyk);
  if (!image.wide.empty())
    image.wide = with_channels(std::move(image.wide), given, wanted, decoded.is_cmyk);
  image.channels = channels;
  apply_orientation(decoded.orientation, image, image.pixels);
  apply_orientation(decoded.orientation, image, image.wide);
  return std::move(image);
}

Image decode_indices(std::span<const std::byte> content, const std::string& name) {
  DecodedImage decoded;
  switch (format_of(content)) {
    case ImageFormat::kPng:
      decoded = decode_png(content, name, true);
      break;
    case ImageFormat::kTiff:
      decoded = decode_tiff(content, name, true);
      break;
    case ImageFormat::kBmp:
      decoded = decode_bmp(content, name, true);
      break;
    default:
      fail(ErrorCode::kData, name,
           ": not a PNG, TIFF or BMP file; masks are such files with one number per pixel");
  }
  Image& image = decoded.image;
  if (image.channels != 1)
    fail(ErrorCode::kData, name, ": has ", image.channels,
         " channels, expected a palette or grey: one number per pixel");
  apply_orientation(decoded.orientation, image, image.pixels);
  apply_orientation(decoded.orientation, image, image.wide);
  return std::move(image);
}

bool has_image_ending(std::string_view name) {
  const auto same = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b;
  };
  for (const std::string_view ending : {".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp", ".bmp"})
    if (name.size() >= ending.size() &&
        std::equal(name.end() - static_cast<ptrdiff_t>(ending.size()), name.end(), ending.begin(),
                   same))
      return true;
  return false;
}

Image read_image(const std::string& path, int channels, SampleDepth depth) {
  return decode_image(MappedFile::open(path)->bytes(), channels, path, depth);
}

}  // namespace paddle::formats
