// RandAugment (Cubuk et al., 2020) and TrivialAugment (Müller and Hutter, 2021), with the fourteen
// changes and the ranges that torchvision uses for them. A mask follows the geometry.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "data/transforms/color_operations.h"
#include "data/transforms/image_transforms.h"
#include "data/transforms/resample.h"

namespace paddle::data {
namespace {

enum class Change {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize
};
constexpr uint64_t kChanges = 14;
constexpr int64_t kLevels = 31;

/// Largest values of each change, at level 30.
struct Ranges {
  double shear, translate, rotate, enhance;
  int least_bits;
  bool translate_is_share;
};
constexpr Ranges kRand = {0.3, 150.0 / 331, 30, 0.9, 4, true};
constexpr Ranges kTrivial = {0.99, 32, 135, 0.99, 2, false};

class Augmentation final : public ImageTransform {
 public:
  explicit Augmentation(const TransformOptions& options)
      : ImageTransform(options), is_rand_(options.kind == TransformKind::kRandAugment) {
    if (is_rand_ && (options.count < 1 || options.count > 4))
      fail(ErrorCode::kConfig, "rand_augment: count is from 1 to 4");
    if (is_rand_ && (options.magnitude < 0 || options.magnitude >= kLevels))
      fail(ErrorCode::kConfig, "rand_augment: magnitude is from 0 to ", kLevels - 1);
  }
  Field infer(const Field& in) const override { return infer_colors(in); }
  void infer_size(int64_t&, int64_t&) const override {}
  bool moves() const override { return true; }
  void apply(const Value& in, Value& out, FieldKind kind, RandomSequence random) const override {
    out.reset(in.dtype(), in.shape());
    std::copy_n(in.raw(), in.bytes(), out.raw());
    Value scratch;
    for (int64_t i = 0; i < (is_rand_ ? options_.count : 1); ++i) {
      const auto change = static_cast<Change>(random.below(kChanges));
      const int64_t drawn = static_cast<int64_t>(random.below(kLevels));
      const int64_t level = is_rand_ ? options_.magnitude : drawn;
      const double sign = random.chance(0.5) ? -1 : 1;
      apply_change(change, static_cast<double>(level) / (kLevels - 1), sign, kind, out, scratch);
    }
  }

 private:
  void apply_change(Change change, double level, double sign, FieldKind kind, Value& image,
                    Value& scratch) const {
    const Ranges& range = is_rand_ ? kRand : kTrivial;
    const Frame frame = frame_of(image);
    const auto warped = [&](const Map& map) {
      warp(image, map, true, outside(options_, kind), scratch);
      std::swap(image, scratch);
    };
    const auto shift = [&](int64_t size) {
      return sign * level * range.translate *
             (range.translate_is_share ? static_cast<double>(size) : 1.0);
    };
    switch (change) {
      case Change::kShearX:
        return warped({.xy = sign * level * range.shear});
      case Change::kShearY:
        return warped({.yx = sign * level * range.shear});
      case Change::kTranslateX:
        return warped({.x0 = shift(frame.width)});
      case Change::kTranslateY:
        return warped({.y0 = shift(frame.height)});
      case Change::kRotate: {
        const double angle = sign * level * range.rotate * std::numbers::pi / 180;
        const double c = std::cos(angle), s = std::sin(angle);
        return warped({c, -s, 0, s, c, 0});
      }
      default:
        break;
    }
    if (kind == FieldKind::kMask) return;
    const double factor = 1 + sign * level * range.enhance;
    switch (change) {
      case Change::kBrightness:
        return adjust_brightness(image, factor);
      case Change::kColor:
        return adjust_saturation(image, factor);
      case Change::kContrast:
        return adjust_contrast(image, factor);
      case Change::kSharpness:
        return adjust_sharpness(image, factor);
      case Change::kPosterize:
        return posterize(image, 8 - static_cast<int>(std::round(level * (8 - range.least_bits))));
      case Change::kSolarize:
        return solarize(image, static_cast<int>(std::lround(255 * (1 - level))));
      case Change::kAutoContrast:
        return auto_contrast(image);
      case Change::kEqualize:
        return equalize(image);
      default:
        return;
    }
  }

  bool is_rand_;
};

}  // namespace

std::unique_ptr<Transform> make_augmentation(const TransformOptions& options) {
  return std::make_unique<Augmentation>(options);
}

}  // namespace paddle::data
