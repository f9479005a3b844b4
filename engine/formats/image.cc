#include "formats/image.h"

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

// jpeglib.h needs size_t and FILE declared before it.
#include <jpeglib.h>

namespace paddle::formats {
namespace {

/// The most pixels that a file of so many bytes can hold: JPEG spends at least a bit on a block of
/// 64, PNG packs eight to a byte and deflate shrinks 1032 times. Small pictures are always fine.
int64_t most_pixels(size_t bytes, bool png) {
  const int64_t by_file = static_cast<int64_t>(bytes) * (png ? 8256 : 512) + (int64_t{1} << 20);
  return std::min(kMaxImagePixels, by_file);
}

[[noreturn]] void refuse_size(const Image& image, int64_t most, const std::string& name) {
  fail(ErrorCode::kData, name, ": declares ", image.width, " x ", image.height,
       " pixels; a file of its size may have at most ", most);
}

// ---- JPEG ---------------------------------------------------------------------------------------

struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void on_jpeg_error(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->escape, 1);
}

/// A warning means damaged data (a file cut short is filled with grey): it is an error here.
void on_jpeg_message(j_common_ptr info, int level) {
  if (level < 0) on_jpeg_error(info);
}

/// The part that libjpeg may leave by longjmp: holds nothing with a destructor. Gives false, with
/// the reason in `errors`, on failure.
bool decode_jpeg_unprotected(std::span<const std::byte> content, int channels,
                             jpeg_decompress_struct& info, JpegErrors& errors, Image& image,
                             bool& too_large) {
  if (setjmp(errors.escape)) return false;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(content.data()),
               static_cast<unsigned long>(content.size()));
  jpeg_read_header(&info, TRUE);
  image.height = info.image_height;
  image.width = info.image_width;
  if (image.height > most_pixels(content.size(), false) / image.width) {
    too_large = true;
    return false;
  }
  const bool four_inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = four_inks ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&info);
  image.channels = info.output_components;
  image.pixels.resize(static_cast<size_t>(image.height * image.width * image.channels));
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = image.pixels.data() +
                   static_cast<size_t>(info.output_scanline * image.width * image.channels);
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

uint8_t grey_of(int r, int g, int b) {
  return static_cast<uint8_t>((r * 19595 + g * 38470 + b * 7471 + 32768) >> 16);  // ITU-R 601
}

/// From RGB, grey or CMYK (inverted, as Adobe writes it) to the channels that are wanted.
Image to_channels(Image from, int channels) {
  if (from.channels == channels && channels != 4) return from;
  Image out{from.height, from.width, channels, {}};
  const size_t count = static_cast<size_t>(from.height * from.width);
  out.pixels.resize(count * static_cast<size_t>(channels));
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* p = from.pixels.data() + i * static_cast<size_t>(from.channels);
    int r = p[0], g = p[0], b = p[0];
    if (from.channels == 3) g = p[1], b = p[2];
    if (from.channels == 4) r = p[0] * p[3] / 255, g = p[1] * p[3] / 255, b = p[2] * p[3] / 255;
    uint8_t* q = out.pixels.data() + i * static_cast<size_t>(channels);
    if (channels == 1) {
      q[0] = grey_of(r, g, b);
    } else {
      q[0] = static_cast<uint8_t>(r), q[1] = static_cast<uint8_t>(g);
      q[2] = static_cast<uint8_t>(b);
      if (channels == 4) q[3] = 255;
    }
  }
  return out;
}

Image decode_jpeg(std::span<const std::byte> content, int channels, const std::string& name) {
  jpeg_decompress_struct info{};
  JpegErrors errors{};
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = [](j_common_ptr each) { on_jpeg_error(each); };
  errors.base.emit_message = on_jpeg_message;
  Image image;
  bool too_large = false;
  const bool good = decode_jpeg_unprotected(content, channels, info, errors, image, too_large);
  jpeg_destroy_decompress(&info);
  if (too_large) refuse_size(image, most_pixels(content.size(), false), name);
  if (!good) fail(ErrorCode::kData, name, ": damaged JPEG: ", errors.message);
  return to_channels(std::move(image), channels);
}

// ---- PNG ----------------------------------------------------------------------------------------

png_uint_32 png_format(int channels) {
  return channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
}

Image decode_png(std::span<const std::byte> content, int channels, const std::string& name) {
  png_image info{};
  info.version = PNG_IMAGE_VERSION;
  const auto bad = [&] {
    const std::string reason = info.message;
    png_image_free(&info);
    fail(ErrorCode::kData, name, ": damaged PNG: ", reason);
  };
  if (!png_image_begin_read_from_memory(&info, content.data(), content.size())) bad();
  Image image{info.height, info.width, 4, {}};
  const int64_t most = most_pixels(content.size(), true);
  if (image.height > most / std::max<int64_t>(image.width, 1)) {
    png_image_free(&info);
    refuse_size(image, most, name);
  }
  // Decoded with alpha, which is then dropped: libpng would otherwise compose onto a background.
  const bool colour = (info.format & PNG_FORMAT_FLAG_COLOR) != 0;
  info.format = colour ? PNG_FORMAT_RGBA : PNG_FORMAT_GA;
  info.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // 16-bit samples are encoded as 8-bit ones are
  image.channels = colour ? 4 : 2;
  image.pixels.resize(PNG_IMAGE_SIZE(info));
  if (!png_image_finish_read(&info, nullptr, image.pixels.data(), 0, nullptr)) bad();
  if (info.warning_or_error & PNG_IMAGE_ERROR) bad();
  png_image_free(&info);

  Image out{image.height, image.width, channels, {}};
  const size_t count = static_cast<size_t>(image.height * image.width);
  out.pixels.resize(count * static_cast<size_t>(channels));
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* p = image.pixels.data() + i * static_cast<size_t>(image.channels);
    uint8_t* q = out.pixels.data() + i * static_cast<size_t>(channels);
    const uint8_t g = colour ? p[1] : p[0], b = colour ? p[2] : p[0];
    if (channels == 1) {
      q[0] = colour ? grey_of(p[0], g, b) : p[0];
    } else {
      q[0] = p[0], q[1] = g, q[2] = b;
      if (channels == 4) q[3] = colour ? p[3] : p[1];
    }
  }
  return out;
}

}  // namespace

Image decode_image(std::span<const std::byte> content, int channels, const std::string& name) {
  ensure(channels == 1 || channels == 3 || channels == 4, "decode_image: channels");
  const auto starts = [&](std::string_view magic) {
    return content.size() >= magic.size() &&
           std::memcmp(content.data(), magic.data(), magic.size()) == 0;
  };
  if (starts("\xff\xd8\xff")) return decode_jpeg(content, channels, name);
  if (starts("\x89PNG\r\n\x1a\n")) return decode_png(content, channels, name);
  fail(ErrorCode::kData, name, ": neither JPEG nor PNG");
}

Image read_image(const std::string& path, int channels) {
  return decode_image(MappedFile::open(path)->bytes(), channels, path);
}

void write_png(const std::string& path, const Image& image) {
  png_image info{};
  info.version = PNG_IMAGE_VERSION;
  info.width = static_cast<png_uint_32>(image.width);
  info.height = static_cast<png_uint_32>(image.height);
  info.format = png_format(static_cast<int>(image.channels));
  ensure(image.pixels.size() == PNG_IMAGE_SIZE(info), "write_png: size of pixels");
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(info);
  std::string content(bytes, '\0');
  if (!png_image_write_to_memory(&info, content.data(), &bytes, 0, image.pixels.data(), 0, nullptr))
    fail(ErrorCode::kUsage, "cannot encode '", path, "': ", info.message);
  content.resize(bytes);
  write_file_atomically(path, content);
}

}  // namespace paddle::formats
