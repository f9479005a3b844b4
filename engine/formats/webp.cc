#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>
#include <memory>
#include <string_view>

#include "formats/exif.h"
#include "formats/image_decode.h"

namespace paddle::formats {
namespace {

/// A macroblock of 256 lossy pixels takes at least two bits.
constexpr int64_t kLossyPixelsPerByte = 1024;
/// A copy of 4096 lossless pixels takes at least one bit; images of one color take none.
constexpr int64_t kLosslessPixelsPerByte = 32768;
constexpr int kLossless = 2;

const char* reason_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "out of memory";
    case VP8_STATUS_BITSTREAM_ERROR:
      return "bad data";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "an unknown feature";
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "the file is cut short";
    default:
      return "bad parameters";
  }
}

int webp_orientation(std::span<const std::byte> content) {
  const WebPData data{reinterpret_cast<const uint8_t*>(content.data()), content.size()};
  const std::unique_ptr<WebPDemuxer, void (*)(WebPDemuxer*)> demuxer(WebPDemux(&data),
                                                                     WebPDemuxDelete);
  WebPChunkIterator chunk{};
  if (!demuxer || !WebPDemuxGetChunk(demuxer.get(), "EXIF", 1, &chunk)) return 1;
  std::span<const std::byte> exif = std::as_bytes(std::span(chunk.chunk.bytes, chunk.chunk.size));
  // Some programs write the head of a JPEG segment, which WebP does not have.
  constexpr std::string_view kHead("Exif\0\0", 6);
  if (exif.size() >= kHead.size() && std::memcmp(exif.data(), kHead.data(), kHead.size()) == 0)
    exif = exif.subspan(kHead.size());
  const int orientation = exif_orientation(exif);
  WebPDemuxReleaseChunkIterator(&chunk);
  return orientation;
}

}  // namespace

DecodedImage decode_webp(std::span<const std::byte> content, const std::string& name) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(content.data());
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config))
    fail(ErrorCode::kDevice, name, ": libwebp has another version than its headers");
  const auto check = [&](VP8StatusCode status) {
    if (status != VP8_STATUS_OK)
      fail(ErrorCode::kData, name, ": damaged WebP: ", reason_of(status));
  };
  check(WebPGetFeatures(bytes, content.size(), &config.input));
  const WebPBitstreamFeatures& features = config.input;
  if (features.has_animation)
    fail(ErrorCode::kData, name, ": an animated WebP, expected a single image");
  DecodedImage out;
  Image& image = out.image;
  image.height = features.height;
  image.width = features.width;
  image.channels = features.has_alpha ? 4 : 3;
  const int64_t most = most_pixels(
      content.size(), features.format == kLossless ? kLosslessPixelsPerByte : kLossyPixelsPerByte);
  if (image.height < 1 || image.width < 1 || image.height > most / image.width)
    reject_size(image.height, image.width, most, name);
  image.pixels.resize(static_cast<size_t>(image.height * image.width * image.channels));
  config.output.colorspace = features.has_alpha ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = image.pixels.data();
  config.output.u.RGBA.stride = static_cast<int>(image.width * image.channels);
  config.output.u.RGBA.size = image.pixels.size();
  const VP8StatusCode status = WebPDecode(bytes, content.size(), &config);
  WebPFreeDecBuffer(&config.output);
  check(status);
  out.orientation = webp_orientation(content);
  return out;
}

}  // namespace paddle::formats
