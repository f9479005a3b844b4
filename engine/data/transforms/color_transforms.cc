// Transforms of colors, which leave pixels where they are, and cutout. They take uint8 images, so
// they come before `scale` and `normalize`; a mask stays as it is.

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "data/transforms/color_operations.h"
#include "data/transforms/image_transforms.h"
#include "data/transforms/resample.h"

namespace paddle::data {
namespace {

class ColorTransform : public ImageTransform {
 public:
  using ImageTransform::ImageTransform;
  Field infer(const Field& in) const override { return infer_colors(in); }
  void infer_size(int64_t&, int64_t&) const override {}
  void apply(const Value& in, Value& out, FieldKind kind, RandomSequence random) const override {
    out.reset(in.dtype(), in.shape());
    std::copy_n(in.raw(), in.bytes(), out.raw());
    if (kind != FieldKind::kMask) change(out, random);
  }

 protected:
  virtual void change(Value& image, RandomSequence random) const = 0;
};

class ColorJitter final : public ColorTransform {
 public:
  explicit ColorJitter(const TransformOptions& options) : ColorTransform(options) {
    for (const double most : {options.brightness, options.contrast, options.saturation})
      if (!(most >= 0))
        fail(ErrorCode::kConfig,
             "color_jitter: brightness, contrast and saturation are at least 0");
    if (!(options.hue >= 0 && options.hue <= 0.5))
      fail(ErrorCode::kConfig, "color_jitter: hue is from 0 to 0.5");
  }

 private:
  void change(Value& image, RandomSequence random) const override {
    const auto factor = [&](double most) {
      return random.uniform(std::max(0.0, 1 - most), 1 + most);
    };
    const double brightness = factor(options_.brightness), contrast = factor(options_.contrast),
                 saturation = factor(options_.saturation),
                 hue = random.uniform(-options_.hue, options_.hue);
    std::array<int, 4> order = {0, 1, 2, 3};
    for (size_t i = 3; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
    for (const int each : order) {
      if (each == 0 && options_.brightness > 0) adjust_brightness(image, brightness);
      if (each == 1 && options_.contrast > 0) adjust_contrast(image, contrast);
      if (each == 2 && options_.saturation > 0) adjust_saturation(image, saturation);
      if (each == 3 && options_.hue > 0) adjust_hue(image, hue);
    }
  }
};

class Grayscale final : public ColorTransform {
 public:
  using ColorTransform::ColorTransform;

 private:
  void change(Value& image, RandomSequence random) const override {
    if (random.chance(options_.probability)) adjust_saturation(image, 0);
  }
};

class GaussianBlur final : public ColorTransform {
 public:
  explicit GaussianBlur(const TransformOptions& options) : ColorTransform(options) {
    if (options.sigma.size() != 2 || !(options.sigma[0] > 0) ||
        !(options.sigma[0] <= options.sigma[1]) || !(options.sigma[1] <= 100))
      fail(ErrorCode::kConfig, "gaussian_blur: sigma is [smallest, largest] above 0, at most 100");
  }

 private:
  void change(Value& image, RandomSequence random) const override {
    blur(image, random.uniform(options_.sigma[0], options_.sigma[1]));
  }
};

class GaussianNoise final : public ColorTransform {
 public:
  explicit GaussianNoise(const TransformOptions& options) : ColorTransform(options) {
    if (!(options.strength >= 0)) fail(ErrorCode::kConfig, "gaussian_noise: strength is below 0");
  }

 private:
  void change(Value& image, RandomSequence random) const override {
    const Random noise(random.below(UINT64_MAX));
    auto* pixels = image.data<uint8_t>();
    for (int64_t i = 0; i < image.size(); ++i)
      pixels[i] = clamped<uint8_t>(
          std::round(pixels[i] + 255 * options_.strength * noise.normal(static_cast<uint64_t>(i))));
  }
};

/// A rectangle of random area and ratio (Zhong et al., "Random Erasing", 2020).
class Cutout final : public ImageTransform {
 public:
  explicit Cutout(const TransformOptions& options) : ImageTransform(options) {
    if (options.area.size() != 2 || !(options.area[0] > 0) ||
        !(options.area[0] <= options.area[1]) || !(options.area[1] <= 1))
      fail(ErrorCode::kConfig, "cutout: area is [smallest, largest] of shares from 0 to 1");
    if (options.ratio.size() != 2 || !(options.ratio[0] > 0) ||
        !(options.ratio[0] <= options.ratio[1]))
      fail(ErrorCode::kConfig, "cutout: ratio is [smallest, largest] above 0");
  }
  void infer_size(int64_t&, int64_t&) const override {}
  void apply(const Value& in, Value& out, FieldKind kind, RandomSequence random) const override {
    out.reset(in.dtype(), in.shape());
    std::copy_n(in.raw(), in.bytes(), out.raw());
    if (!random.chance(options_.probability)) return;
    const Frame image = frame_of(in);
    const double pixels = static_cast<double>(image.height * image.width);
    constexpr int kTries = 3;
    for (int i = 0; i < kTries; ++i) {
      const double area = pixels * random.uniform(options_.area[0], options_.area[1]);
      const double ratio =
          std::exp(random.uniform(std::log(options_.ratio[0]), std::log(options_.ratio[1])));
      const auto height = std::llround(std::sqrt(area / ratio)),
                 width = std::llround(std::sqrt(area * ratio));
      if (height < 1 || width < 1 || height > image.height || width > image.width) continue;
      const auto top = static_cast<int64_t>(
                     random.below(static_cast<uint64_t>(image.height - height + 1))),
                 left = static_cast<int64_t>(
                     random.below(static_cast<uint64_t>(image.width - width + 1)));
      visit_dtype(in.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const auto value = clamped<T>(outside(options_, kind));
        for (int64_t plane = 0; plane < image.planes; ++plane)
          for (int64_t y = top; y < top + height; ++y)
            std::fill_n(out.data<T>() + (plane * image.height + y) * image.width + left, width,
                        value);
      });
      return;
    }
  }
};

}  // namespace

std::unique_ptr<Transform> make_color_transform(const TransformOptions& options) {
  switch (options.kind) {
    case TransformKind::kColorJitter:
      return std::make_unique<ColorJitter>(options);
    case TransformKind::kGrayscale:
      return std::make_unique<Grayscale>(options);
    case TransformKind::kGaussianBlur:
      return std::make_unique<GaussianBlur>(options);
    case TransformKind::kGaussianNoise:
      return std::make_unique<GaussianNoise>(options);
    default:
      return std::make_unique<Cutout>(options);
  }
}

}  // namespace paddle::data
