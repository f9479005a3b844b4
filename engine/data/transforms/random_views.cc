// Views of an image at random: a window resized to one size, and a rotation about the center.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "data/transforms/image_transforms.h"
#include "data/transforms/resample.h"

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
  bool moves() const override { return true; }
  std::optional<Placement> placement(int64_t height, int64_t width,
                                     RandomSequence random) const override {
    return placement_of(choose({1, height, width}, random), options_.height, options_.width);
  }
  void apply(const Value& in, Value& out, FieldKind kind, RandomSequence random) const override {
    resize_window(in, choose(frame_of(in), random), options_.height, options_.width,
                  options_.nearest || kind == FieldKind::kMask, out);
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
  void apply(const Value& in, Value& out, FieldKind kind, RandomSequence random) const override {
    warp(in, map(random), kind == FieldKind::kMask, outside(options_, kind), out);
  }
  bool moves() const override { return true; }
  std::optional<Placement> placement(int64_t height, int64_t width,
                                     RandomSequence random) const override {
    return placement_of(map(random), height, width);
  }

 private:
  Map map(RandomSequence random) const {
    const double angle = (2 * random.uniform() - 1) * options_.degrees * std::numbers::pi / 180;
    const double c = std::cos(angle), s = std::sin(angle);
    return {c, -s, 0, s, c, 0};
  }
};

/// Rotated, sheared and scaled about the center and moved, all at random; outside is `value`.
class RandomAffine : public ImageTransform {
 public:
  explicit RandomAffine(const TransformOptions& options) : ImageTransform(options) {
    const auto check = [](bool good, const char* what) {
      if (!good) fail(ErrorCode::kConfig, "random_affine: ", what);
    };
    check(options.degrees >= 0 && options.degrees <= 180, "degrees is from 0 to 180");
    check(options.shear >= 0 && options.shear < 90, "shear is from 0 to below 90");
    check(options.zoom[0] > 0 && options.zoom[0] <= options.zoom[1],
          "zoom is [smallest, largest] above 0");
    for (const double share : options.translate)
      check(share >= 0 && share <= 1, "translate has shares from 0 to 1");
  }
  void infer_size(int64_t&, int64_t&) const override {}
  void apply(const Value& in, Value& out, FieldKind kind, RandomSequence random) const override {
    const Frame image = frame_of(in);
    warp(in, map(image.height, image.width, random), kind == FieldKind::kMask,
         outside(options_, kind), out);
  }
  bool moves() const override { return true; }
  std::optional<Placement> placement(int64_t height, int64_t width,
                                     RandomSequence random) const override {
    return placement_of(map(height, width, random), height, width);
  }

 private:
  Map map(int64_t height, int64_t width, RandomSequence random) const {
    constexpr double kRadians = std::numbers::pi / 180;
    const auto either_way = [&](double most) { return (2 * random.uniform() - 1) * most; };
    const double angle = either_way(options_.degrees) * kRadians;
    const double shift_x = either_way(options_.translate[0]) * static_cast<double>(width),
                 shift_y = either_way(options_.translate[1]) * static_cast<double>(height);
    const double low = std::log(options_.zoom[0]), high = std::log(options_.zoom[1]);
    const double zoom = std::exp(low + (high - low) * random.uniform());
    const double shear = std::tan(either_way(options_.shear) * kRadians);
    // Reads at the inverse of: shear, rotation, zoom, translation.
    const double c = std::cos(angle) / zoom, s = std::sin(angle) / zoom;
    Map out = {c - shear * s, -s - shear * c, 0, s, c, 0};
    out.x0 = -(out.xx * shift_x + out.xy * shift_y);
    out.y0 = -(out.yx * shift_x + out.yy * shift_y);
    return out;
  }
};

}  // namespace

std::unique_ptr<Transform> make_random_view(const TransformOptions& options) {
  switch (options.kind) {
    case TransformKind::kRandomResizedCrop:
      return std::make_unique<RandomResizedCrop>(options);
    case TransformKind::kRandomRotation:
      return std::make_unique<RandomRotation>(options);
    case TransformKind::kRandomAffine:
      return std::make_unique<RandomAffine>(options);
    default:
      fail(ErrorCode::kInternal, "no transform '", name_of(options.kind), "'");
  }
}

}  // namespace paddle::data
