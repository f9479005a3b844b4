// ImageDecoder. It uses the decoders of formats/; binary PNM is read here.

#include <algorithm>
#include <cctype>
#include <cstring>

#include "formats/image.h"
#include "onnx/ops/helpers.h"

namespace paddle::onnx {
namespace {

using formats::Image;
using Bytes = std::span<const std::byte>;

/// Binary PPM and PGM of 8 bits.
Image decode_pixmap(Bytes bytes) {
  const bool grey = std::to_integer<char>(bytes[1]) == '5';
  size_t at = 2;
  const auto number = [&] {
    const auto byte = [&] { return at < bytes.size() ? std::to_integer<char>(bytes[at]) : '\0'; };
    while (std::isspace(static_cast<unsigned char>(byte())) || byte() == '#') {
      if (byte() == '#')
        while (at < bytes.size() && byte() != '\n') ++at;
      ++at;
    }
    int64_t value = 0;
    while (std::isdigit(static_cast<unsigned char>(byte())) && value < 1 << 30) {
      value = value * 10 + (byte() - '0');
      ++at;
    }
    return value;
  };
  const int64_t width = number(), height = number(), most = number();
  if (height < 1 || width < 1 || height > formats::kMaxImagePixels / width)
    fail(ErrorCode::kData, "the image declares ", width, " x ", height, " pixels");
  Image image{height, width, 3, {}};
  const auto count = static_cast<size_t>(height * width) * (grey ? 1 : 3);
  ++at;
  if (most != 255 || at > bytes.size() || count > bytes.size() - at)
    fail(ErrorCode::kData, "the pixmap is cut short or not of 8 bits");
  for (size_t i = 0; i < count; ++i)
    for (int k = 0; k < (grey ? 3 : 1); ++k)
      image.pixels.push_back(std::to_integer<uint8_t>(bytes[at + i]));
  return image;
}

/// Luma of ITU-R 601-2.
uint8_t grey_of(const uint8_t* p) {
  return static_cast<uint8_t>((19595 * p[0] + 38470 * p[1] + 7471 * p[2] + 0x8000) >> 16);
}

Values image_decoder(NodeCall& c) {
  const std::string format = c.string_attr("pixel_format", "RGB");
  c.check(format == "RGB" || format == "BGR" || format == "Grayscale", "unknown pixel_format '",
          format, "'");
  const Array encoded = c.constant_array(0);
  c.check(encoded.dtype == DType::kU8 && encoded.size() > 4, "expected encoded bytes");
  const Bytes bytes(static_cast<const std::byte*>(encoded.raw()),
                    static_cast<size_t>(encoded.size()));
  const auto begins = [&](const char* magic) {
    return std::memcmp(bytes.data(), magic, std::strlen(magic)) == 0;
  };
  const bool grey = format == "Grayscale";
  Image image = begins("P6") || begins("P5") ? decode_pixmap(bytes)
                                             : formats::decode_image(bytes, 3, "the encoded image");
  if (grey && image.channels == 3) {
    std::vector<uint8_t> one;
    for (size_t i = 0; i < image.pixels.size(); i += 3) one.push_back(grey_of(&image.pixels[i]));
    image.pixels = std::move(one);
    image.channels = 1;
  }
  if (format == "BGR")
    for (size_t i = 0; i < image.pixels.size(); i += 3)
      std::swap(image.pixels[i], image.pixels[i + 2]);
  return {Tensor(Array::from(image.pixels, {image.height, image.width, image.channels}))};
}

}  // namespace

OperatorTable image_decoder_operators() {
  static constexpr Operator operators[] = {{"ImageDecoder", 1, image_decoder}};
  return operators;
}

}  // namespace paddle::onnx
