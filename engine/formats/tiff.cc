#include <tiffio.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

#include "formats/image_decode.h"

namespace paddle::formats {
namespace {

/// State of libtiff's callbacks: the input, and the first message of each kind.
struct TiffState {
  std::span<const std::byte> content;
  size_t at = 0;
  char error[256] = {}, warning[256] = {};
};

TiffState& tiff_state(thandle_t handle) { return *static_cast<TiffState*>(handle); }

tmsize_t read_tiff(thandle_t handle, void* out, tmsize_t count) {
  TiffState& state = tiff_state(handle);
  const size_t rest = state.content.size() - std::min(state.at, state.content.size());
  const size_t bytes = std::min(static_cast<size_t>(std::max<tmsize_t>(count, 0)), rest);
  if (bytes > 0) std::memcpy(out, state.content.data() + state.at, bytes);
  state.at += bytes;
  return static_cast<tmsize_t>(bytes);
}

tmsize_t write_no_tiff(thandle_t, void*, tmsize_t) { return 0; }

toff_t seek_tiff(thandle_t handle, toff_t offset, int whence) {
  TiffState& state = tiff_state(handle);
  if (whence == SEEK_CUR) offset += state.at;
  if (whence == SEEK_END) offset += state.content.size();
  return state.at = static_cast<size_t>(offset);
}

int close_no_tiff(thandle_t) { return 0; }

toff_t tiff_bytes(thandle_t handle) { return tiff_state(handle).content.size(); }

/// The bytes are in memory already. libtiff only reads them, as the file is opened for reading.
int map_tiff(thandle_t handle, void** base, toff_t* size) {
  const TiffState& state = tiff_state(handle);
  *base = const_cast<std::byte*>(state.content.data());
  *size = state.content.size();
  return 1;
}

void unmap_no_tiff(thandle_t, void*, toff_t) {}

/// Keeps the first message. Nonzero: libtiff need not print it.
int keep_message(char (&to)[256], const char* format, va_list values) {
  if (to[0] == '\0') std::vsnprintf(to, sizeof to, format, values);
  return 1;
}

int on_tiff_error(TIFF*, void* state, const char*, const char* format, va_list values) {
  return keep_message(static_cast<TiffState*>(state)->error, format, values);
}

int on_tiff_warning(TIFF*, void* state, const char*, const char* format, va_list values) {
  return keep_message(static_cast<TiffState*>(state)->warning, format, values);
}

/// The most pixels of one bit in a byte. Runs, dictionaries and blank lines of fax have no bound
/// that helps; theirs is that of a blank page.
int64_t tiff_pixels_per_byte(uint16_t compression) {
  switch (compression) {
    case COMPRESSION_NONE:
      return 8;
    case COMPRESSION_PACKBITS:
    case COMPRESSION_JPEG:
      return 512;
    default:
      return 32768;
  }
}

/// How samples are stored: the first `colors` of `samples` are those of a color, and at most one
/// follows them.
struct TiffLayout {
  int64_t height = 0, width = 0;
  int64_t block_height = 0, block_width = 0;  ///< of a strip or tile
  uint16_t bits = 1, samples = 1, photometric = 0, compression = COMPRESSION_NONE;
  bool tiled = false, planar = false;
  size_t colors = 1;
  bool alpha = false, premultiplied = false;

  size_t channels() const { return colors + (alpha ? 1 : 0); }
  bool is_grey() const {
    return photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE;
  }
};

class TiffDecoder {
 public:
  TiffDecoder(std::span<const std::byte> content, const std::string& name)
      : state_{.content = content}, name_(name) {
    const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(
        TIFFOpenOptionsAlloc(), TIFFOpenOptionsFree);
    if (!options) fail(ErrorCode::kDevice, name, ": out of memory for a TIFF decoder");
    TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_tiff_error, &state_);
    TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_tiff_warning, &state_);
    // The largest block of samples that this file may hold.
    TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(),
                                        most_pixels(content.size(), tiff_pixels_per_byte(0)) * 8);
    tiff_.reset(TIFFClientOpenExt("TIFF", "r", &state_, read_tiff, write_no_tiff, seek_tiff,
                                  close_no_tiff, tiff_bytes, map_tiff, unmap_no_tiff,
                                  options.get()));
    if (!tiff_) damaged();
    // Messages so far are of tags that it does without, such as those of maps and cameras.
    state_.error[0] = state_.warning[0] = '\0';
  }

  DecodedImage decode(bool indices) {
    read_layout();
    DecodedImage out;
    Image& image = out.image;
    image.height = layout_.height;
    image.width = layout_.width;
    image.channels = static_cast<int64_t>(layout_.channels());
    if (layout_.bits == 16)
      read_pixels(image.wide, indices);
    else
      read_pixels(image.pixels, indices);
    if (layout_.photometric == PHOTOMETRIC_PALETTE && !indices) look_up(image);
    out.is_cmyk = layout_.photometric == PHOTOMETRIC_SEPARATED;
    out.orientation = tag<uint16_t>(TIFFTAG_ORIENTATION);
    if (out.orientation < 1 || out.orientation > 8) out.orientation = 1;
    image.warning = state_.warning;
    if (image.warning.empty() && !TIFFLastDirectory(tiff_.get()))
      image.warning = "more than one page; the first is read";
    return out;
  }

 private:
  template <class T>
  T tag(uint32_t number) {
    T value{};
    TIFFGetFieldDefaulted(tiff_.get(), number, &value);
    return value;
  }

  template <class... Parts>
  [[noreturn]] void reject(const Parts&... parts) const {
    fail(ErrorCode::kData, name_, ": ", parts...);
  }
  [[noreturn]] void damaged() const {
    reject("damaged TIFF: ", state_.error[0] != '\0' ? state_.error : "its samples are cut short");
  }

  void read_layout() {
    TiffLayout& l = layout_;
    l.width = tag<uint32_t>(TIFFTAG_IMAGEWIDTH);
    l.height = tag<uint32_t>(TIFFTAG_IMAGELENGTH);
    l.bits = tag<uint16_t>(TIFFTAG_BITSPERSAMPLE);
    l.samples = tag<uint16_t>(TIFFTAG_SAMPLESPERPIXEL);
    l.compression = tag<uint16_t>(TIFFTAG_COMPRESSION);
    l.planar = tag<uint16_t>(TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE && l.samples > 1;
    l.tiled = TIFFIsTiled(tiff_.get()) != 0;
    read_kind_of_samples();
    read_colors();
    read_sizes();
  }

  void read_kind_of_samples() {
    const auto format = tag<uint16_t>(TIFFTAG_SAMPLEFORMAT);
    if (format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID)
      reject("a TIFF of ",
             format == SAMPLEFORMAT_IEEEFP ? "floating-point"
             : format == SAMPLEFORMAT_INT  ? "signed"
                                           : "complex",
             " samples, expected unsigned integers");
    const bool packed = layout_.bits == 1 || layout_.bits == 2 || layout_.bits == 4;
    if (layout_.bits != 8 && layout_.bits != 16 && !(packed && layout_.samples == 1))
      reject("a TIFF of ", layout_.samples, layout_.samples == 1 ? " sample" : " samples",
             " a pixel and ", layout_.bits, " bits a sample, expected 8 or 16 bits");
  }

  void read_colors() {
    TiffLayout& l = layout_;
    if (!TIFFGetField(tiff_.get(), TIFFTAG_PHOTOMETRIC, &l.photometric))
      reject("a TIFF that does not say what its samples are");
    switch (l.photometric) {
      case PHOTOMETRIC_MINISWHITE:
      case PHOTOMETRIC_MINISBLACK:
      case PHOTOMETRIC_PALETTE:
        l.colors = 1;
        break;
      case PHOTOMETRIC_RGB:
        l.colors = 3;
        break;
      case PHOTOMETRIC_SEPARATED:
        l.colors = 4;
        break;
      case PHOTOMETRIC_YCBCR:
        l.colors = 3;
        break;
      default:
        reject("a TIFF of color space ", l.photometric, ", expected grey, RGB or CMYK");
    }
    if (l.photometric == PHOTOMETRIC_YCBCR) {
      if (l.compression != COMPRESSION_JPEG || l.planar)
        reject("a TIFF of YCbCr samples that are not JPEG-compressed or are stored in planes");
      TIFFSetField(tiff_.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    }
    if (l.photometric == PHOTOMETRIC_SEPARATED && tag<uint16_t>(TIFFTAG_INKSET) != INKSET_CMYK)
      reject("a TIFF of other inks than CMYK");
    if (l.photometric == PHOTOMETRIC_PALETTE && (l.bits > 8 || l.samples != 1))
      reject("a TIFF with a palette, ", l.samples, " samples a pixel and ", l.bits,
             " bits a sample, expected one of up to 8 bits");
    if (l.samples < l.colors || l.samples > l.colors + 1)
      reject("a TIFF of ", l.samples, " samples a pixel, expected ", l.colors, " or ",
             l.colors + 1);
    if (l.samples == l.colors) return;
    uint16_t count = 0;
    const uint16_t* kinds = nullptr;
    TIFFGetFieldDefaulted(tiff_.get(), TIFFTAG_EXTRASAMPLES, &count, &kinds);
    const uint16_t kind = count > 0 ? kinds[0] : EXTRASAMPLE_UNASSALPHA;
    // CMYK with alpha is read without.
    l.alpha = kind != EXTRASAMPLE_UNSPECIFIED && l.photometric != PHOTOMETRIC_SEPARATED;
    l.premultiplied = l.alpha && kind == EXTRASAMPLE_ASSOCALPHA;
  }

  void read_sizes() {
    TiffLayout& l = layout_;
    const int64_t most = most_pixels(state_.content.size(), tiff_pixels_per_byte(l.compression));
    if (l.height < 1 || l.width < 1 || l.height > most / l.width)
      reject_size(l.height, l.width, most, name_);
    l.block_width = l.tiled ? tag<uint32_t>(TIFFTAG_TILEWIDTH) : l.width;
    l.block_height = tag<uint32_t>(l.tiled ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP);
    if (!l.tiled) l.block_height = std::min(l.block_height, l.height);
    if (l.block_height < 1 || l.block_width < 1 || l.block_height > most / l.block_width)
      reject_size(l.block_height, l.block_width, most, name_);
  }

  /// Fills in pixels of `channels()` samples: as stored with `indices`, otherwise with black as 0
  /// and white as the largest T. T is 16 bits wide for samples of 16 bits.
  template <class T>
  void read_pixels(std::vector<T>& pixels, bool indices) {
    const TiffLayout& l = layout_;
    pixels.resize(static_cast<size_t>(l.height * l.width) * l.channels());
    const size_t in_block = l.planar ? 1 : l.samples;
    const size_t row_bytes = (static_cast<size_t>(l.block_width) * in_block * l.bits + 7) / 8;
    std::vector<T> block(row_bytes / sizeof(T) * static_cast<size_t>(l.block_height));
    for (uint16_t plane = 0; plane < (l.planar ? l.channels() : 1); ++plane)
      for (int64_t y = 0; y < l.height; y += l.block_height)
        for (int64_t x = 0; x < l.width; x += l.block_width) {
          const int64_t rows = std::min(l.block_height, l.height - y);
          read_block(block.data(), x, y, plane,
                     row_bytes * static_cast<size_t>(l.tiled ? l.block_height : rows));
          for (int64_t row = 0; row < rows; ++row)
            place(block.data() + static_cast<size_t>(row) * (row_bytes / sizeof(T)), in_block,
                  static_cast<size_t>(std::min(l.block_width, l.width - x)),
                  pixels.data() + static_cast<size_t>((y + row) * l.width + x) * l.channels() +
                      plane);
        }
    if (!indices) normalize(pixels);
  }

  void read_block(void* to, int64_t x, int64_t y, uint16_t plane, size_t bytes) {
    TIFF* const tiff = tiff_.get();
    const auto column = static_cast<uint32_t>(x), row = static_cast<uint32_t>(y);
    const auto size = static_cast<tmsize_t>(bytes);
    const tmsize_t got =
        layout_.tiled
            ? TIFFReadEncodedTile(tiff, TIFFComputeTile(tiff, column, row, 0, plane), to, size)
            : TIFFReadEncodedStrip(tiff, TIFFComputeStrip(tiff, row, plane), to, size);
    if (got != size) damaged();
  }

  /// One row of a block, which has `in_block` samples a pixel, to every `channels()`-th sample.
  template <class T>
  void place(const T* row, size_t in_block, size_t width, T* to) const {
    const size_t bits = layout_.bits, channels = layout_.channels();
    if (bits >= 8 && in_block == channels) {
      std::copy_n(row, width * channels, to);
      return;
    }
    const size_t kept = std::min(in_block, channels);
    for (size_t x = 0; x < width; ++x, to += channels)
      for (size_t s = 0; s < kept; ++s)
        if (bits >= 8)
          to[s] = row[x * in_block + s];
        else
          to[s] =
              static_cast<T>(row[x * bits / 8] >> (8 - bits - x * bits % 8) & ((1u << bits) - 1));
  }

  template <class T>
  void normalize(std::vector<T>& pixels) const {
    const TiffLayout& l = layout_;
    const uint32_t most = (1u << l.bits) - 1;
    const size_t channels = l.channels();
    const bool inverted =
        l.photometric == PHOTOMETRIC_MINISWHITE || l.photometric == PHOTOMETRIC_SEPARATED;
    const bool scaled = l.is_grey() && l.bits < 8;
    if (!inverted && !scaled && !l.premultiplied) return;
    for (size_t i = 0; i < pixels.size(); i += channels)
      for (size_t c = 0; c < l.colors; ++c) {
        uint32_t value = pixels[i + c];
        if (inverted) value = most - value;
        if (scaled) value = value * 255 / most;
        if (l.premultiplied) {
          const uint32_t alpha = pixels[i + l.colors];
          value = alpha == 0 ? 0 : std::min(value * most / alpha, most);
        }
        pixels[i + c] = static_cast<T>(value);
      }
  }

  /// Replaces indices by the colors of the palette.
  void look_up(Image& image) {
    const uint16_t *red = nullptr, *green = nullptr, *blue = nullptr;
    if (!TIFFGetField(tiff_.get(), TIFFTAG_COLORMAP, &red, &green, &blue))
      reject("damaged TIFF: it has no palette");
    const size_t count = size_t{1} << layout_.bits;
    // Colors have 16 bits, but some programs write 8.
    const auto is_small = [&](const uint16_t* part) {
      return std::all_of(part, part + count, [](uint16_t value) { return value < 256; });
    };
    const int shift = is_small(red) && is_small(green) && is_small(blue) ? 0 : 8;
    std::vector<uint8_t> colors(image.pixels.size() * 3);
    for (size_t i = 0; i < image.pixels.size(); ++i) {
      const size_t index = image.pixels[i];
      colors[i * 3] = static_cast<uint8_t>(red[index] >> shift);
      colors[i * 3 + 1] = static_cast<uint8_t>(green[index] >> shift);
      colors[i * 3 + 2] = static_cast<uint8_t>(blue[index] >> shift);
    }
    image.pixels = std::move(colors);
    image.channels = 3;
  }

  TiffState state_;
  const std::string& name_;
  std::unique_ptr<TIFF, void (*)(TIFF*)> tiff_{nullptr, TIFFClose};
  TiffLayout layout_;
};

}  // namespace

DecodedImage decode_tiff(std::span<const std::byte> content, const std::string& name,
                         bool indices) {
  return TiffDecoder(content, name).decode(indices);
}

}  // namespace paddle::formats
