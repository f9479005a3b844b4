#pragma once
// Transforms of images, which are fields [channels, height, width] or [height, width].

#include <memory>

#include "data/transforms.h"
#include "data/transforms/narrow.h"

namespace paddle::data {

std::unique_ptr<Transform> make_image_transform(const TransformOptions& options);
/// Those that read between pixels at random places: random_resized_crop, random_rotation and
/// random_affine.
std::unique_ptr<Transform> make_random_view(const TransformOptions& options);
/// Those that change colors and leave pixels where they are, and cutout.
std::unique_ptr<Transform> make_color_transform(const TransformOptions& options);
/// RandAugment and TrivialAugment.
std::unique_ptr<Transform> make_augmentation(const TransformOptions& options);

/// Pixels along an axis.
inline constexpr int64_t kMaxSide = 1 << 16;

/// The value of pixels that were outside of the image; in a mask they have no class.
inline double outside(const TransformOptions& options, FieldKind kind) {
  constexpr double kNoClass = -100;
  return kind == FieldKind::kMask ? kNoClass : options.value;
}

/// Common to all of them.
class ImageTransform : public Transform {
 public:
  explicit ImageTransform(const TransformOptions& options) : options_(options) {}
  Field infer(const Field& in) const override {
    if (in.shape.size() < 2 || in.shape.size() > 3)
      fail(ErrorCode::kConfig, name_of(options_.kind),
           ": expected an image [channels, height, width], found ", in.text());
    if (!is_value_of(options_.value, in.dtype))
      fail(ErrorCode::kConfig, name_of(options_.kind), ": value is ", options_.value, ", expected ",
           "a value of ", paddle::text(in.dtype), ", which '", in.name, "' is");
    Field out = in;
    int64_t& height = out.shape[out.shape.size() - 2];
    infer_size(height, out.shape.back());
    return out;
  }

 protected:
  virtual void infer_size(int64_t& height, int64_t& width) const = 0;
  /// `infer` of transforms of colors: images of uint8, and masks.
  Field infer_colors(const Field& in) const {
    const Field out = ImageTransform::infer(in);
    if (in.kind != FieldKind::kMask && in.dtype != DType::kU8)
      fail(ErrorCode::kConfig, name_of(options_.kind), ": needs an image of uint8, ", in.text(),
           " is not; put it before the transforms that make floats");
    return out;
  }
  void need_size() const {
    if (options_.height < 1 || options_.width < 1 || options_.height > kMaxSide ||
        options_.width > kMaxSide)
      fail(ErrorCode::kConfig, name_of(options_.kind), ": size [", options_.height, ", ",
           options_.width, "] must be from 1 to ", kMaxSide);
  }
  TransformOptions options_;
};

}  // namespace paddle::data
