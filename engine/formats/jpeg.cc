#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "formats/exif.h"
#include "formats/image_decode.h"

// jpeglib.h needs size_t and FILE declared before it.
#include <jerror.h>
#include <jpeglib.h>

namespace paddle::formats {
namespace {

/// A block of 64 pixels takes at least one bit.
constexpr int64_t kPixelsPerByte = 512;
constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr unsigned kMaxExifBytes = 0xFFFF;

struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
  char warning[JMSG_LENGTH_MAX];
};

[[noreturn]] void on_jpeg_error(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->escape, 1);
}

/// Warnings about damaged data (libjpeg fills truncated files with grey) are errors; warnings that
/// do not affect pixels are recorded.
void on_jpeg_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  const bool harmless =
      code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM;
  if (!harmless) on_jpeg_error(info);
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  if (errors->warning[0] == '\0') info->err->format_message(info, errors->warning);
}

int orientation_of(const jpeg_decompress_struct& info) {
  constexpr std::string_view kHead("Exif\0\0", 6);
  for (const jpeg_marker_struct* m = info.marker_list; m; m = m->next)
    if (m->marker == kExifMarker && m->data_length > kHead.size() &&
        std::memcmp(m->data, kHead.data(), kHead.size()) == 0)
      return exif_orientation(
          std::as_bytes(std::span(m->data, m->data_length)).subspan(kHead.size()));
  return 1;
}

/// libjpeg may leave this function by longjmp, so it owns nothing with a destructor. Returns false,
/// with the reason in `errors`, on failure.
bool decode_unprotected(std::span<const std::byte> content, bool grey, jpeg_decompress_struct& info,
                        JpegErrors& errors, DecodedImage& out, bool& too_large) {
  if (setjmp(errors.escape)) return false;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(content.data()),
               static_cast<unsigned long>(content.size()));
  jpeg_save_markers(&info, kExifMarker, kMaxExifBytes);
  jpeg_read_header(&info, TRUE);
  Image& image = out.image;
  image.height = info.image_height;
  image.width = info.image_width;
  if (image.height > most_pixels(content.size(), kPixelsPerByte) / image.width) {
    too_large = true;
    return false;
  }
  out.orientation = orientation_of(info);
  out.stored_grey = info.num_components == 1;
  const bool four_inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = four_inks ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&info);
  image.channels = info.output_components;
  out.is_cmyk = four_inks;
  image.pixels.resize(static_cast<size_t>(image.height * image.width * image.channels));
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = image.pixels.data() +
                   static_cast<size_t>(info.output_scanline * image.width * image.channels);
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

}  // namespace

DecodedImage decode_jpeg(std::span<const std::byte> content, bool grey, const std::string& name) {
  jpeg_decompress_struct info{};
  JpegErrors errors{};
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = [](j_common_ptr each) { on_jpeg_error(each); };
  errors.base.emit_message = on_jpeg_message;
  DecodedImage out;
  bool too_large = false;
  const bool good = decode_unprotected(content, grey, info, errors, out, too_large);
  jpeg_destroy_decompress(&info);
  if (too_large)
    reject_size(out.image.height, out.image.width, most_pixels(content.size(), kPixelsPerByte),
                name);
  if (!good) fail(ErrorCode::kData, name, ": damaged JPEG: ", errors.message);
  out.image.warning = errors.warning;
  return out;
}

}  // namespace paddle::formats
