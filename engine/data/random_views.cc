// Views of an image at random: a window resized to one size, and a rotation about the center.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "data/image_transforms.h"
#include "data/resample.h"

namespace paddle::data {
namespace {

/// A window of a random share of the area and a random aspect ratio, resized (Szegedy et al.,
/// "Going Deeper with Convolutions", CVPR 2015).
class RandomResizedCrop : public ImageTransform {
 public:
  explicit RandomResizedCrop(const TransformOptions& options) : ImageTransform(options) {
    need_size();
    const auto check = [&](const char* what, const std::vector<double>& range, double most) {
      if (range.size() != 2 || !(range[0] > 0) || !(range[0] <= range[1]) || !(range[1] <= most))
        fail(ErrorCode::kConfig, "random_resized_crop: ", what,
             " is [smallest, largest] above 0 and at most ", most);
    };
    check("area", options.area, 1);
    check("ratio", options.ratio, 1000);
  }
  void infer_size(int64_t& height, int64_t& width) const override {
    height = options_.height, width = options_.width;
  }
  void apply(const Value& in, Value& out, RandomSequence random) const override {
    resize_window(in, choose(frame_of(in), random), options_.height, options_.width,
                  options_.nearest, out);
  }

 private:
  Window choose(const Frame& image, RandomSequence& random) const {
    const double pixels = static_cast<double>(image.height * image.width);
    const double low = std::log(options_.ratio[0]), high = std::log(options_.ratio[1]);
    constexpr int kTries = 6;
    for (int i = 0; i < kTries; ++i) {
      const double area =
          pixels * (options_.area[0] + (options_.area[1] - options_.area[0]) * random.uniform());
      const double ratio = std::exp(low + (high - low) * random.uniform());
      const auto width = std::llround(std::sqrt(area * ratio));
      const auto height = std::llround(std::sqrt(area / ratio));
      if (width < 1 || height < 1 || width > image.width || height > image.height) continue;
      const auto top = random.below(static_cast<uint64_t>(image.height - height + 1));
      const auto left = random.below(static_cast<uint64_t>(image.width - width + 1));
      return {static_cast<int64_t>(top), static_cast<int64_t>(left), height, width};
    }
    // No window of such a shape fits: the largest in the middle that has an allowed ratio.
    const double ratio =
        std::clamp(static_cast<double>(image.width) / static_cast<double>(image.height),
                   options_.ratio[0], options_.ratio[1]);
    int64_t height = image.height, width = image.width;
    if (static_cast<double>(width) > ratio * static_cast<double>(height))
      width = std::max<int64_t>(1, std::llround(static_cast<double>(height) * ratio));
    else
      height = std::clamp<int64_t>(std::llround(static_cast<double>(width) / ratio), 1, height);
    return {(image.height - height) / 2, (image.width - width) / 2, height, width};
  }
};

/// Rotated about its center by up to `degrees` either way, bilinear; outside is `value`.
class RandomRotation : public ImageTransform {
 public:
  explicit RandomRotation(const TransformOptions& options) : ImageTransform(options) {
    if (!(options.degrees >= 0 && options.degrees <= 180))
      fail(ErrorCode::kConfig, "random_rotation: degrees is ", options.degrees,
           ", 0 to 180 is needed");
  }
  void infer_size(int64_t&, int64_t&) const override {}
  void apply(const Value& in, Value& out, RandomSequence random) const override {
    out.reset(in.dtype(), in.shape());
    const Frame image = frame_of(in);
    const double angle = (2 * random.uniform() - 1) * options_.degrees * std::numbers::pi / 180;
    const double c = std::cos(angle), s = std::sin(angle);
    const double cx = static_cast<double>(image.width - 1) / 2,
                 cy = static_cast<double>(image.height - 1) / 2;
    visit_dtype(in.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t plane = 0; plane < image.planes; ++plane) {
        const T* from = in.data<T>() + plane * image.height * image.width;
        T* to = out.data<T>() + plane * image.height * image.width;
        const auto pixel = [&](int64_t y, int64_t x) {
          const bool inside = y >= 0 && x >= 0 && y < image.height && x < image.width;
          return inside ? static_cast<float>(from[y * image.width + x])
                        : static_cast<float>(options_.value);
        };
        for (int64_t y = 0; y < image.height; ++y)
          for (int64_t x = 0; x < image.width; ++x) {
            const double dx = static_cast<double>(x) - cx, dy = static_cast<double>(y) - cy;
            const double sx = cx + c * dx - s * dy, sy = cy + s * dx + c * dy;
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
};

}  // namespace

std::unique_ptr<Transform> make_random_view(const TransformOptions& options) {
  switch (options.kind) {
    case TransformKind::kRandomResizedCrop:
      return std::make_unique<RandomResizedCrop>(options);
    case TransformKind::kRandomRotation:
      return std::make_unique<RandomRotation>(options);
    default:
      fail(ErrorCode::kInternal, "no transform '", name_of(options.kind), "'");
  }
}

}  // namespace paddle::data
