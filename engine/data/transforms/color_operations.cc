#include "data/transforms/color_operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "data/transforms/narrow.h"
#include "data/transforms/resample.h"

namespace paddle::data {
namespace {

uint8_t blended(double other, double own, double factor) {
  return clamped<uint8_t>(std::clamp(other + (own - other) * factor, 0.0, 255.0));
}

bool is_rgb(const Value& image) { return image.shape().size() == 3 && image.shape()[0] == 3; }

/// ITU-R 601, as Pillow rounds it.
uint8_t grey_at(const Value& image, int64_t plane, int64_t i) {
  const auto* p = image.data<uint8_t>();
  return static_cast<uint8_t>(
      (p[i] * 19595u + p[plane + i] * 38470u + p[2 * plane + i] * 7471u + 32768u) >> 16);
}

int64_t plane_of(const Value& image) {
  const Frame frame = frame_of(image);
  return frame.height * frame.width;
}

/// Maps the values of each channel by a table that `make` computes from its histogram.
using Histogram = std::array<int64_t, 256>;
using Table = std::array<uint8_t, 256>;
void map_channels(Value& image, const std::function<Table(const Histogram&)>& make) {
  const int64_t plane = plane_of(image);
  auto* pixels = image.data<uint8_t>();
  for (int64_t begin = 0; begin < image.size(); begin += plane) {
    Histogram histogram{};
    for (int64_t i = 0; i < plane; ++i) ++histogram[pixels[begin + i]];
    const Table table = make(histogram);
    for (int64_t i = 0; i < plane; ++i) pixels[begin + i] = table[pixels[begin + i]];
  }
}

}  // namespace

void adjust_brightness(Value& image, double factor) {
  auto* pixels = image.data<uint8_t>();
  for (int64_t i = 0; i < image.size(); ++i) pixels[i] = blended(0, pixels[i], factor);
}

void adjust_contrast(Value& image, double factor) {
  const int64_t plane = plane_of(image);
  double sum = 0;
  for (int64_t i = 0; i < plane; ++i)
    sum += is_rgb(image) ? grey_at(image, plane, i) : image.data<uint8_t>()[i];
  const double mean = std::floor(sum / static_cast<double>(std::max<int64_t>(plane, 1)) + 0.5);
  auto* pixels = image.data<uint8_t>();
  for (int64_t i = 0; i < image.size(); ++i) pixels[i] = blended(mean, pixels[i], factor);
}

void adjust_saturation(Value& image, double factor) {
  if (!is_rgb(image)) return;
  const int64_t plane = plane_of(image);
  auto* pixels = image.data<uint8_t>();
  for (int64_t i = 0; i < plane; ++i) {
    const double grey = grey_at(image, plane, i);
    for (int64_t c = 0; c < 3; ++c)
      pixels[c * plane + i] = blended(grey, pixels[c * plane + i], factor);
  }
}

void adjust_hue(Value& image, double shift) {
  if (!is_rgb(image)) return;
  const int64_t plane = plane_of(image);
  auto* pixels = image.data<uint8_t>();
  for (int64_t i = 0; i < plane; ++i) {
    const double r = pixels[i] / 255.0, g = pixels[plane + i] / 255.0,
                 b = pixels[2 * plane + i] / 255.0;
    const double high = std::max({r, g, b}), chroma = high - std::min({r, g, b});
    if (chroma == 0) continue;
    double hue = high == r   ? (g - b) / chroma
                 : high == g ? 2 + (b - r) / chroma
                             : 4 + (r - g) / chroma;
    hue = hue / 6 + shift;
    hue = (hue - std::floor(hue)) * 6;
    // The three channels are the same curve at thirds of the circle.
    const auto at = [&](double offset) {
      const double k = std::fmod(offset + hue, 6.0);
      const double value = high - chroma * std::clamp(std::min(k, 4 - k), 0.0, 1.0);
      return clamped<uint8_t>(std::round(value * 255));
    };
    pixels[i] = at(5);
    pixels[plane + i] = at(3);
    pixels[2 * plane + i] = at(1);
  }
}

void adjust_sharpness(Value& image, double factor) {
  const Frame frame = frame_of(image);
  if (frame.height < 3 || frame.width < 3) return;
  const std::vector<uint8_t> before(image.data<uint8_t>(), image.data<uint8_t>() + image.size());
  for (int64_t plane = 0; plane < frame.planes; ++plane)
    for (int64_t y = 1; y + 1 < frame.height; ++y)
      for (int64_t x = 1; x + 1 < frame.width; ++x) {
        const auto at = [&](int64_t dy, int64_t dx) {
          return before[static_cast<size_t>((plane * frame.height + y + dy) * frame.width + x +
                                            dx)];
        };
        int sum = 5 * at(0, 0);
        for (int64_t dy = -1; dy <= 1; ++dy)
          for (int64_t dx = -1; dx <= 1; ++dx)
            if (dy != 0 || dx != 0) sum += at(dy, dx);
        const double smooth = std::floor(sum / 13.0 + 0.5);
        image.data<uint8_t>()[(plane * frame.height + y) * frame.width + x] =
            blended(smooth, at(0, 0), factor);
      }
}

void blur(Value& image, double sigma) {
  const Frame frame = frame_of(image);
  const auto radius = static_cast<int64_t>(std::ceil(3 * sigma));
  std::vector<float> kernel;
  float total = 0;
  for (int64_t k = -radius; k <= radius; ++k) {
    const double z = static_cast<double>(k) / sigma;
    kernel.push_back(static_cast<float>(std::exp(-0.5 * z * z)));
    total += kernel.back();
  }
  for (float& k : kernel) k /= total;
  const int64_t plane = frame.height * frame.width;
  std::vector<float> rows(static_cast<size_t>(plane));
  for (int64_t p = 0; p < frame.planes; ++p) {
    uint8_t* pixels = image.data<uint8_t>() + p * plane;
    for (int64_t y = 0; y < frame.height; ++y)
      for (int64_t x = 0; x < frame.width; ++x) {
        float sum = 0;
        for (int64_t k = -radius; k <= radius; ++k)
          sum += kernel[static_cast<size_t>(k + radius)] *
                 pixels[y * frame.width + std::clamp<int64_t>(x + k, 0, frame.width - 1)];
        rows[static_cast<size_t>(y * frame.width + x)] = sum;
      }
    for (int64_t y = 0; y < frame.height; ++y)
      for (int64_t x = 0; x < frame.width; ++x) {
        float sum = 0;
        for (int64_t k = -radius; k <= radius; ++k)
          sum += kernel[static_cast<size_t>(k + radius)] *
                 rows[static_cast<size_t>(
                     std::clamp<int64_t>(y + k, 0, frame.height - 1) * frame.width + x)];
        pixels[y * frame.width + x] = clamped<uint8_t>(std::round(sum));
      }
  }
}

void solarize(Value& image, int threshold) {
  auto* pixels = image.data<uint8_t>();
  for (int64_t i = 0; i < image.size(); ++i)
    if (pixels[i] >= threshold) pixels[i] = static_cast<uint8_t>(255 - pixels[i]);
}

void posterize(Value& image, int bits) {
  const auto mask = static_cast<uint8_t>(~((1 << (8 - std::clamp(bits, 0, 8))) - 1));
  auto* pixels = image.data<uint8_t>();
  for (int64_t i = 0; i < image.size(); ++i) pixels[i] &= mask;
}

void auto_contrast(Value& image) {
  map_channels(image, [](const Histogram& histogram) {
    Table table;
    int low = 0, high = 255;
    while (low < 255 && histogram[static_cast<size_t>(low)] == 0) ++low;
    while (high > 0 && histogram[static_cast<size_t>(high)] == 0) --high;
    for (int v = 0; v < 256; ++v)
      table[static_cast<size_t>(v)] =
          high <= low ? static_cast<uint8_t>(v)
                      : clamped<uint8_t>(std::clamp(
                            std::trunc(v * (255.0 / (high - low)) - low * (255.0 / (high - low))),
                            0.0, 255.0));
    return table;
  });
}

void equalize(Value& image) {
  map_channels(image, [](const Histogram& histogram) {
    Table table;
    int64_t total = 0, last = 0, used = 0;
    for (const int64_t n : histogram) {
      total += n;
      if (n > 0) last = n, ++used;
    }
    const int64_t step = (total - last) / 255;
    int64_t sum = step / 2;
    for (size_t v = 0; v < 256; ++v) {
      table[v] = used <= 1 || step == 0 ? static_cast<uint8_t>(v)
                                        : static_cast<uint8_t>(std::min<int64_t>(sum / step, 255));
      sum += histogram[v];
    }
    return table;
  });
}

}  // namespace paddle::data
