#include "data/transforms/resample.h"

#include <algorithm>
#include <cmath>

#include "data/transforms/narrow.h"

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

  size_t most() const {
    size_t out = 0;
    for (const Pixel& pixel : pixels) out = std::max(out, pixel.count);
    return out;
  }
  /// Gives every pixel `count` inputs, with zero weights after its own.
  void pad_to(size_t count) {
    std::vector<float> padded(pixels.size() * count);
    for (size_t i = 0; i < pixels.size(); ++i) {
      std::copy_n(weights.begin() + static_cast<ptrdiff_t>(pixels[i].begin), pixels[i].count,
                  padded.begin() + static_cast<ptrdiff_t>(i * count));
      pixels[i].begin = i * count;
      pixels[i].count = count;
    }
    weights = std::move(padded);
  }
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

/// Resizes rows of `from` elements to `to`.
template <class T>
class RowResizer {
 public:
  RowResizer(int64_t from, int64_t to, bool nearest)
      : from_(from), taps_(taps_of(from, to, nearest)), count_(taps_.most()) {
    row_.resize(static_cast<size_t>(from) + count_);
    // Not for floats: a zero weight would spread infinity and NaN.
    if (std::is_integral_v<T>) taps_.pad_to(count_);
  }
  void resize(const T* in, float* out) {
    for (int64_t i = 0; i < from_; ++i) row_[static_cast<size_t>(i)] = static_cast<float>(in[i]);
    if constexpr (std::is_integral_v<T>) {
      switch (count_) {
        case 1:
          return sum_taps<1>(out);
        case 2:
          return sum_taps<2>(out);
        case 3:
          return sum_taps<3>(out);
        case 4:
          return sum_taps<4>(out);
        case 5:
          return sum_taps<5>(out);
        default:
          break;
      }
    }
    sum_taps<0>(out);
  }

 private:
  /// With kCount inputs a pixel; 0: as many as each one has.
  template <size_t kCount>
  void sum_taps(float* out) const {
    for (const Taps::Pixel& pixel : taps_.pixels) {
      const float* in = row_.data() + pixel.first;
      const float* weights = taps_.weights.data() + pixel.begin;
      const size_t count = kCount > 0 ? kCount : pixel.count;
      float sum = 0;
      for (size_t k = 0; k < count; ++k) sum += weights[k] * in[k];
      *out++ = sum;
    }
  }

  int64_t from_;
  Taps taps_;
  size_t count_;  ///< the most inputs of a pixel
  std::vector<float> row_;
};

void add_scaled(const float* row, float weight, std::vector<float>& sums) {
  for (size_t x = 0; x < sums.size(); ++x) sums[x] += weight * row[x];
}

template <class T>
void store_sums(const std::vector<float>& sums, T* out) {
  for (size_t x = 0; x < sums.size(); ++x) {
    const float sum = sums[x];
    if constexpr (std::is_unsigned_v<T> && sizeof(T) <= 2) {
      // std::round of numbers that are not negative, in a form that compilers vectorize.
      const auto whole = static_cast<int32_t>(sum);
      const bool up = sum - static_cast<float>(whole) >= 0.5F;
      out[x] = static_cast<T>(whole + (up ? 1 : 0));
    } else if constexpr (std::is_integral_v<T>) {
      // float32 rounds the largest values of wide integers beyond their range.
      out[x] = clamped<T>(std::round(sum));
    } else {
      out[x] = static_cast<T>(sum);
    }
  }
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
  const Taps rows = taps_of(window.height, height, nearest);
  visit_dtype(in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    RowResizer<T> resizer(window.width, width, nearest);
    // The last rows that were resized along x, by their number modulo `kept`.
    const auto kept = static_cast<int64_t>(rows.most());
    std::vector<float> ring(static_cast<size_t>(kept * width)), sums(static_cast<size_t>(width));
    for (int64_t plane = 0; plane < from.planes; ++plane) {
      const T* source =
          in.data<T>() + (plane * from.height + window.top) * from.width + window.left;
      T* target = out.data<T>() + plane * height * width;
      int64_t next = 0;
      for (const Taps::Pixel& row : rows.pixels) {
        next = std::max(next, row.first);
        const int64_t end = row.first + static_cast<int64_t>(row.count);
        for (; next < end; ++next)
          resizer.resize(source + next * from.width, ring.data() + next % kept * width);
        std::fill(sums.begin(), sums.end(), 0.0F);
        for (size_t k = 0; k < row.count; ++k)
          add_scaled(ring.data() + (row.first + static_cast<int64_t>(k)) % kept * width,
                     rows.weights[row.begin + k], sums);
        store_sums(sums, target);
        target += width;
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
