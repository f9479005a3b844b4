#include "train/records/report_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/base64.h"
#include "base/error.h"
#include "base/files.h"

namespace paddle::train {
namespace {

constexpr int64_t kMaxPixels = 64;  ///< of a side

/// Interleaved pixels [height, width, channels], 1 or 3 channels.
struct Pixels {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> values;
};

void append_number(std::string& out, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8)
    out += static_cast<char>(static_cast<uint8_t>(number >> shift));
}

void append_chunk(std::string& out, std::string_view type, std::string_view content) {
  const std::string body = str(type, content);
  append_number(out, static_cast<uint32_t>(content.size()));
  out += body;
  append_number(out, crc32(std::as_bytes(std::span(body.data(), body.size()))));
}

/// A zlib stream of stored blocks.
std::string stored(std::string_view bytes) {
  constexpr size_t kBlock = 65535;
  std::string out = "\x78\x01";
  uint32_t a = 1, b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  for (size_t at = 0; at < bytes.size(); at += kBlock) {
    const std::string_view part = bytes.substr(at, kBlock);
    const auto size = static_cast<uint16_t>(part.size());
    out += at + kBlock >= bytes.size() ? '\1' : '\0';
    for (const uint16_t each : {size, static_cast<uint16_t>(~size)}) {
      out += static_cast<char>(each & 0xff);
      out += static_cast<char>(each >> 8);
    }
    out += part;
  }
  append_number(out, b << 16 | a);
  return out;
}

std::string png(const Pixels& pixels) {
  std::string header, rows;
  append_number(header, static_cast<uint32_t>(pixels.width));
  append_number(header, static_cast<uint32_t>(pixels.height));
  header += '\x08';                              // bits
  header += pixels.channels == 3 ? '\2' : '\0';  // RGB or grey
  header += std::string(3, '\0');                // deflate, no filters, not interlaced
  const auto row = static_cast<size_t>(pixels.width * pixels.channels);
  for (size_t y = 0; y < static_cast<size_t>(pixels.height); ++y) {
    rows += '\0';
    rows.append(reinterpret_cast<const char*>(pixels.values.data()) + y * row, row);
  }
  std::string out = "\x89PNG\r\n\x1a\n";
  append_chunk(out, "IHDR", header);
  append_chunk(out, "IDAT", stored(rows));
  append_chunk(out, "IEND", "");
  return out;
}

/// Means over squares of pixels, from [channels, height, width]. Bytes as they are; other numbers
/// from their least to their largest.
Pixels reduced(const data::Value& image) {
  const int64_t height = image.shape()[1], width = image.shape()[2], plane = height * width;
  const int64_t side = (std::max(height, width) + kMaxPixels - 1) / kMaxPixels;
  Pixels out;
  out.channels = image.shape()[0] >= 3 ? 3 : 1;
  out.height = std::max<int64_t>(1, height / side);
  out.width = std::max<int64_t>(1, width / side);
  std::vector<double> means;
  for (int64_t y = 0; y < out.height; ++y)
    for (int64_t x = 0; x < out.width; ++x)
      for (int64_t c = 0; c < out.channels; ++c) {
        const int64_t bottom = std::min(height, (y + 1) * side),
                      right = std::min(width, (x + 1) * side);
        double sum = 0;
        for (int64_t v = y * side; v < bottom; ++v)
          for (int64_t u = x * side; u < right; ++u) sum += image.number(c * plane + v * width + u);
        means.push_back(sum / static_cast<double>((bottom - y * side) * (right - x * side)));
      }
  double low = 0, high = 255;
  if (image.dtype() != DType::kU8) {
    const auto [least, largest] = std::minmax_element(means.begin(), means.end());
    low = *least;
    high = *largest;
  }
  for (const double mean : means) {
    const double share = high > low ? (mean - low) / (high - low) : 0;
    const double level = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) * 255 : 0;
    out.values.push_back(static_cast<uint8_t>(level + 0.5));
  }
  return out;
}

}  // namespace

std::string picture_of(const data::Dataset& dataset, int64_t sample) {
  const std::vector<data::Field>& fields = dataset.fields();
  const auto field = std::find_if(fields.begin(), fields.end(), [](const data::Field& f) {
    const bool has_channels = f.shape.size() == 3 && (f.shape[0] == 1 || f.shape[0] == 3);
    return f.kind == data::FieldKind::kImage || (f.dtype == DType::kU8 && has_channels);
  });
  if (field == fields.end()) return "";
  data::Sample values;
  try {
    dataset.read(sample, {}, values);
  } catch (const Error&) {
    return "";  // the evaluation has said what is wrong with it
  }
  const data::Value& image = values.at(static_cast<size_t>(field - fields.begin()));
  if (image.shape().size() != 3 || image.size() == 0) return "";
  return "data:image/png;base64," + to_base64(png(reduced(image)));
}

}  // namespace paddle::train
