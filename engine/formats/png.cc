#include <png.h>

#include <bit>
#include <csetjmp>
#include <cstring>

#include "formats/exif.h"
#include "formats/image_decode.h"

namespace paddle::formats {
namespace {

/// Eight pixels fit into a byte, and deflate compresses by at most 1032.
constexpr int64_t kPixelsPerByte = 8256;

/// State of libpng's callbacks: the input, and the error.
struct PngState {
  std::span<const std::byte> content;
  size_t at = 0;
  char message[256] = {};
};

void on_png_error(png_structp png, png_const_charp message) {
  auto* state = static_cast<PngState*>(png_get_error_ptr(png));
  std::strncpy(state->message, message, sizeof state->message - 1);
  png_longjmp(png, 1);
}

void on_png_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep out, size_t count) {
  auto* state = static_cast<PngState*>(png_get_io_ptr(png));
  if (count > state->content.size() - state->at) png_error(png, "the file is cut short");
  std::memcpy(out, state->content.data() + state->at, count);
  state->at += count;
}

/// Requests samples as stored (palettes and sub-byte samples expanded), with alpha.
void request_stored_samples(png_structp png, png_infop info) {
  png_set_expand(png);
  png_set_add_alpha(png, 0xFFFF, PNG_FILLER_AFTER);
  if constexpr (std::endian::native == std::endian::little) png_set_swap(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

/// Requests palette indices and grey samples as stored, one a byte (or two).
void request_indices(png_structp png, png_infop info) {
  png_set_packing(png);
  if constexpr (std::endian::native == std::endian::little) png_set_swap(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

/// libpng may leave this function by longjmp, so it owns nothing with a destructor. Returns false,
/// with the reason in `state`, on failure.
bool decode_unprotected(png_structp png, png_infop info, PngState& state, DecodedImage& out,
                        std::vector<png_bytep>& rows, bool& too_large, bool indices) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_read_fn(png, &state, read_bytes);
  png_read_info(png, info);
  Image& image = out.image;
  image.height = png_get_image_height(png, info);
  image.width = png_get_image_width(png, info);
  if (image.height > most_pixels(state.content.size(), kPixelsPerByte) / image.width) {
    too_large = true;
    return false;
  }
  if (indices)
    request_indices(png, info);
  else
    request_stored_samples(png, info);
  image.channels = png_get_channels(png, info);
  const size_t row_bytes = png_get_rowbytes(png, info);
  const auto height = static_cast<size_t>(image.height);
  png_bytep data;
  if (png_get_bit_depth(png, info) == 16) {
    image.wide.resize(row_bytes / 2 * height);
    data = reinterpret_cast<png_bytep>(image.wide.data());
  } else {
    image.pixels.resize(row_bytes * height);
    data = image.pixels.data();
  }
  rows.resize(height);
  for (size_t y = 0; y < height; ++y) rows[y] = data + y * row_bytes;
  png_read_image(png, rows.data());
  png_read_end(png, info);
  png_bytep exif = nullptr;
  png_uint_32 exif_bytes = 0;
  if (png_get_eXIf_1(png, info, &exif_bytes, &exif))
    out.orientation = exif_orientation(std::as_bytes(std::span(exif, exif_bytes)));
  return true;
}

}  // namespace

DecodedImage decode_png(std::span<const std::byte> content, const std::string& name, bool indices) {
  PngState state{.content = content};
  png_structp png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, &state, on_png_error, on_png_warning);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  if (!info) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    fail(ErrorCode::kDevice, name, ": out of memory for a PNG decoder");
  }
  DecodedImage out;
  std::vector<png_bytep> rows;
  bool too_large = false, good = false;
  try {
    good = decode_unprotected(png, info, state, out, rows, too_large, indices);
  } catch (...) {  // out of memory
    png_destroy_read_struct(&png, &info, nullptr);
    throw;
  }
  png_destroy_read_struct(&png, &info, nullptr);
  if (too_large)
    reject_size(out.image.height, out.image.width, most_pixels(content.size(), kPixelsPerByte),
                name);
  if (!good) fail(ErrorCode::kData, name, ": damaged PNG: ", state.message);
  return out;
}

void write_png(const std::string& path, const Image& image) {
  png_image info{};
  info.version = PNG_IMAGE_VERSION;
  info.width = static_cast<png_uint_32>(image.width);
  info.height = static_cast<png_uint_32>(image.height);
  info.format = image.channels == 1   ? PNG_FORMAT_GRAY
                : image.channels == 3 ? PNG_FORMAT_RGB
                                      : PNG_FORMAT_RGBA;
  ensure(image.pixels.size() == PNG_IMAGE_SIZE(info), "write_png: size of pixels");
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(info);
  std::string content(bytes, '\0');
  if (!png_image_write_to_memory(&info, content.data(), &bytes, 0, image.pixels.data(), 0, nullptr))
    fail(ErrorCode::kUsage, "cannot encode '", path, "': ", info.message);
  content.resize(bytes);
  write_file_atomically(path, content);
}

}  // namespace paddle::formats
