#include "data/resample.h"

#include <algorithm>
#include <cmath>

#include "data/narrow.h"

namespace paddle::data {
namespace {

/// Which inputs an output pixel is made of, along one axis, and their shares.
struct Taps {
  struct Pixel {
    int64_t first;
    size_t begin, count;
  };
  std::vector<Pixel> pixels;
  std::vector<float> weights;
};

/// Bilinear with half-pixel centers; when shrinking the triangle widens by the factor, so that
/// every input pixel counts (as Pillow does it).
Taps taps_of(int64_t from, int64_t to, bool nearest) {
  Taps taps;
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const size_t begin = taps.weights.size();
    if (nearest) {
      const int64_t at = std::min(static_cast<int64_t>(center), from - 1);
      taps.pixels.push_back({at, begin, 1});
      taps.weights.push_back(1);
      continue;
    }
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(center - support + 0.5));
    const int64_t last = std::min<int64_t>(from, static_cast<int64_t>(center + support + 0.5));
    double total = 0;
    for (int64_t j = first; j < last; ++j) {
      const double distance = std::abs((static_cast<double>(j) + 0.5 - center) / support);
      const double weight = std::max(0.0, 1 - distance);
      taps.weights.push_back(static_cast<float>(weight));
      total += weight;
    }
    for (size_t j = begin; j < taps.weights.size(); ++j)
      taps.weights[j] /= static_cast<float>(total);
    taps.pixels.push_back({first, begin, taps.weights.size() - begin});
  }
  return taps;
}

}  // namespace

Frame frame_of(const Value& image) {
  const Dims& shape = image.shape();
  const int64_t height = shape[shape.size() - 2], width = shape.back();
  int64_t planes = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) planes *= shape[i];
  return {planes, height, width};
}

Dims with_size(Dims shape, int64_t height, int64_t width) {
  shape[shape.size() - 2] = height;
  shape.back() = width;
  return shape;
}

void resize_window(const Value& in, const Window& window, int64_t height, int64_t width,
                   bool nearest, Value& out) {
  const Frame from = frame_of(in);
  out.reset(in.dtype(), with_size(in.shape(), height, width));
  if (window.height == 0 || window.width == 0) fail(ErrorCode::kData, "resize: the image is empty");
  const Taps columns = taps_of(window.width, width, nearest);
  const Taps rows = taps_of(window.height, height, nearest);
  std::vector<float> middle(static_cast<size_t>(window.height * width));
  visit_dtype(in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t plane = 0; plane < from.planes; ++plane) {
      const T* source =
          in.data<T>() + (plane * from.height + window.top) * from.width + window.left;
      T* target = out.data<T>() + plane * height * width;
      for (int64_t y = 0; y < window.height; ++y)
        for (int64_t x = 0; x < width; ++x) {
          const Taps::Pixel& pixel = columns.pixels[static_cast<size_t>(x)];
          float sum = 0;
          for (size_t k = 0; k < pixel.count; ++k)
            sum +=
                columns.weights[pixel.begin + k] *
                static_cast<float>(source[y * from.width + pixel.first + static_cast<int64_t>(k)]);
          middle[static_cast<size_t>(y * width + x)] = sum;
        }
      for (int64_t y = 0; y < height; ++y) {
        const Taps::Pixel& pixel = rows.pixels[static_cast<size_t>(y)];
        for (int64_t x = 0; x < width; ++x) {
          float sum = 0;
          for (size_t k = 0; k < pixel.count; ++k)
            sum += rows.weights[pixel.begin + k] *
                   middle[static_cast<size_t>((pixel.first + static_cast<int64_t>(k)) * width + x)];
          if constexpr (std::is_integral_v<T>) sum = std::round(sum);
          // float32 rounds the largest values of wide integers beyond their range.
          if constexpr (std::is_integral_v<T> && sizeof(T) >= 4)
            target[y * width + x] = clamped<T>(sum);
          else
            target[y * width + x] = static_cast<T>(sum);
        }
      }
    }
  });
}

}  // namespace paddle::data
