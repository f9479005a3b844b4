#include <algorithm>
#include <bit>
#include <cstring>

#include "formats/audio.h"

namespace paddle::formats {
namespace {

uint32_t little(std::span<const std::byte> bytes, size_t at, size_t count) {
  uint32_t out = 0;
  for (size_t i = 0; i < count; ++i)
    out |= static_cast<uint32_t>(std::to_integer<uint8_t>(bytes[at + i])) << (8 * i);
  return out;
}

bool has_tag(std::span<const std::byte> bytes, size_t at, const char* tag) {
  return at + 4 <= bytes.size() && std::memcmp(bytes.data() + at, tag, 4) == 0;
}

struct WavFormat {
  uint32_t kind = 0, channels = 0, rate = 0, bits = 0;
};

constexpr uint32_t kPcm = 1, kFloat = 3, kExtensible = 0xFFFE;

double sample(std::span<const std::byte> data, size_t at, const WavFormat& format) {
  const size_t bytes = format.bits / 8;
  if (format.kind == kFloat) {
    if (bytes == 4) return std::bit_cast<float>(little(data, at, 4));
    const uint64_t bits = uint64_t{little(data, at + 4, 4)} << 32 | little(data, at, 4);
    return std::bit_cast<double>(bits);
  }
  if (bytes == 1) return (static_cast<double>(little(data, at, 1)) - 128) / 128;
  const uint32_t shift = 32 - format.bits;
  const auto value = static_cast<int32_t>(little(data, at, bytes) << shift);
  return static_cast<double>(value) / 2147483648.0;
}

}  // namespace

Sound decode_wav(std::span<const std::byte> content, const std::string& name) {
  const auto damaged = [&](const std::string& what) -> void {
    fail(ErrorCode::kData, name, ": ", what);
  };
  if (!has_tag(content, 0, "RIFF") || !has_tag(content, 8, "WAVE")) damaged("not a WAV file");
  WavFormat format;
  size_t at = 12;
  while (at + 8 <= content.size()) {
    const size_t size = little(content, at + 4, 4), begin = at + 8;
    const size_t there = std::min(size, content.size() - begin);
    if (has_tag(content, at, "fmt ")) {
      if (there < 16) damaged("damaged WAV file: its format is cut short");
      format = {little(content, begin, 2), little(content, begin + 2, 2),
                little(content, begin + 4, 4), little(content, begin + 14, 2)};
      if (format.kind == kExtensible && there >= 26) format.kind = little(content, begin + 24, 2);
    } else if (has_tag(content, at, "data")) {
      if (format.channels == 0) damaged("damaged WAV file: no format before the samples");
      const bool known = (format.kind == kPcm && (format.bits == 8 || format.bits == 16 ||
                                                  format.bits == 24 || format.bits == 32)) ||
                         (format.kind == kFloat && (format.bits == 32 || format.bits == 64));
      if (!known)
        damaged(str("a WAV file of kind ", format.kind, " with ", format.bits,
                    " bits, expected PCM of 8, 16, 24 or 32 bits or floats"));
      if (format.rate == 0) damaged("damaged WAV file: 0 samples a second");
      // A recorder that was stopped leaves a size of 0 or of 4 GiB.
      const bool open_end = size == 0 || size >= 0xFFFFFF00u;
      if (size > there && !open_end)
        damaged(str("the file is cut short: ", there, " of ", size, " bytes of samples"));
      const size_t bytes = open_end ? content.size() - begin : there;
      const size_t frame = format.bits / 8 * format.channels, frames = bytes / frame;
      Sound out{format.rate, format.channels, {}};
      out.samples.resize(frames);
      for (size_t i = 0; i < frames; ++i) {
        double sum = 0;
        for (size_t c = 0; c < format.channels; ++c)
          sum += sample(content, begin + i * frame + c * (format.bits / 8), format);
        out.samples[i] = static_cast<float>(sum / format.channels);
      }
      return out;
    }
    if (size > content.size() - begin) break;
    at = begin + size + (size & 1);
  }
  damaged("damaged WAV file: it holds no samples");
  return {};
}

Sound decode_sound(std::span<const std::byte> content, const std::string& name) {
  if (has_tag(content, 0, "RIFF")) return decode_wav(content, name);
  if (has_tag(content, 0, "fLaC")) return decode_flac(content, name);
  fail(ErrorCode::kData, name, ": neither WAV nor FLAC");
}

}  // namespace paddle::formats
