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

void warp(const Value& in, const Map& map, bool nearest, double outside, Value& out) {
  out.reset(in.dtype(), in.shape());
  const Frame image = frame_of(in);
  const double cx = static_cast<double>(image.width - 1) / 2,
               cy = static_cast<double>(image.height - 1) / 2;
  visit_dtype(in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto none = clamped<T>(outside);
    for (int64_t plane = 0; plane < image.planes; ++plane) {
      const T* from = in.data<T>() + plane * image.height * image.width;
      T* to = out.data<T>() + plane * image.height * image.width;
      const auto is_inside = [&](int64_t y, int64_t x) {
        return y >= 0 && x >= 0 && y < image.height && x < image.width;
      };
      const auto pixel = [&](int64_t y, int64_t x) {
        return static_cast<float>(is_inside(y, x) ? from[y * image.width + x] : none);
      };
      for (int64_t y = 0; y < image.height; ++y)
        for (int64_t x = 0; x < image.width; ++x) {
          const double dx = static_cast<double>(x) - cx, dy = static_cast<double>(y) - cy;
          // Far outside is outside; it need not fit an integer.
          const double sx = std::clamp(cx + map.xx * dx + map.xy * dy + map.x0, -1e9, 1e9),
                       sy = std::clamp(cy + map.yx * dx + map.yy * dy + map.y0, -1e9, 1e9);
          if (nearest) {
            const auto u = static_cast<int64_t>(std::floor(sx + 0.5)),
                       v = static_cast<int64_t>(std::floor(sy + 0.5));
            to[y * image.width + x] = is_inside(v, u) ? from[v * image.width + u] : none;
            continue;
          }
          const double left = std::floor(sx), top = std::floor(sy);
          const auto u = static_cast<float>(sx - left), v = static_cast<float>(sy - top);
          const auto l = static_cast<int64_t>(left), t = static_cast<int64_t>(top);
          float sum = (1 - v) * ((1 - u) * pixel(t, l) + u * pixel(t, l + 1)) +
                      v * ((1 - u) * pixel(t + 1, l) + u * pixel(t + 1, l + 1));
          if constexpr (std::is_integral_v<T>) sum = std::round(sum);
          to[y * image.width + x] = clamped<T>(sum);
        }
    }
  });
}

Placement placement_of(const Window& window, int64_t height, int64_t width) {
  const double x = static_cast<double>(width) / static_cast<double>(window.width),
               y = static_cast<double>(height) / static_cast<double>(window.height);
  return {.xx = x,
          .x0 = -x * static_cast<double>(window.left),
          .yy = y,
          .y0 = -y * static_cast<double>(window.top),
          .height = height,
          .width = width};
}

Placement placement_of(const Map& map, int64_t height, int64_t width) {
  const double determinant = map.xx * map.yy - map.xy * map.yx;
  Placement out{.height = height, .width = width};
  out.xx = map.yy / determinant, out.xy = -map.xy / determinant;
  out.yx = -map.yx / determinant, out.yy = map.xx / determinant;
  const double cx = static_cast<double>(width) / 2, cy = static_cast<double>(height) / 2;
  out.x0 = cx - out.xx * (cx + map.x0) - out.xy * (cy + map.y0);
  out.y0 = cy - out.yx * (cx + map.x0) - out.yy * (cy + map.y0);
  return out;
}

}  // namespace paddle::data
