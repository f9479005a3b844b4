#pragma once
// Transforms: what happens to a sample between the dataset and the batch. Each works on named
// fields and knows the type and shape of its result beforehand. Random ones depend on (seed,
// epoch, sample index) and their place in the list only; the fields of one transform (an image
// and its mask) get the same random choice.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace paddle::data {

enum class TransformKind {
  kCast,        ///< to `dtype`
  kScale,       ///< x * factor + offset, as float32 (float64 stays)
  kNormalize,   ///< (x - mean[c]) / std[c] by channel (first axis) or for all, as float32
  kOneHot,      ///< a class number to a vector of `classes`, as `dtype` (float32)
  kReshape,     ///< to `shape`, one size may be -1
  kResize,      ///< images [c, h, w] to height x width, bilinear with antialiasing, or nearest
  kCenterCrop,  ///< the middle height x width; smaller images are an error
  kRandomCrop,  ///< a random height x width
  kRandomResizedCrop,  ///< crop of random area and aspect ratio, resized to height x width
  kRandomRotation,     ///< rotated by up to `degrees` either way about the center
  kHorizontalFlip,     ///< left and right exchanged, with `probability`
  kVerticalFlip,
  kPad,             ///< `pad` pixels of `value` around: all, or left, right, top, bottom
  kRandomAffine,    ///< random rotation, translation, scale and shear
  kColorJitter,     ///< random changes of brightness, contrast, saturation and hue, in any order
  kGrayscale,       ///< colors removed, with `probability`
  kGaussianBlur,    ///< with a random `sigma` in pixels
  kGaussianNoise,   ///< of deviation `strength`, a share of the range
  kCutout,          ///< a random rectangle filled with `value`, with `probability`
  kRandAugment,     ///< `count` random changes of one `magnitude`
  kTrivialAugment,  ///< one random augmentation of random magnitude (TrivialAugment)
  kLogMel,          ///< sound [samples] to the logarithm of a mel spectrogram [frames, mels]
  kSpecAugment,     ///< bands of a spectrogram [frames, mels] set to `value`
  kOwn,             ///< of a library: `own`
};

class Transform;
/// A transform that was registered at run time (data/transform_info.h).
struct OwnTransform {
  std::string name = {};
  std::function<std::unique_ptr<Transform>()> make = {};
  bool is_for_any_values = false;  ///< else it is for images or sounds
  bool is_random = true;           ///< where it moves pixels, it does so by random numbers
};

struct TransformOptions {
  TransformKind kind = TransformKind::kCast;
  std::shared_ptr<const OwnTransform> own = {};
  std::vector<std::string> fields = {};
  std::optional<DType> dtype = {};
  double factor = 1, offset = 0;
  std::vector<double> mean = {}, deviation = {};
  int64_t classes = 0;  ///< 0: as many as the field has
  Dims shape = {};
  int64_t height = 0, width = 0;
  bool nearest = false;
  double probability = 0.5;
  std::vector<int64_t> pad = {};
  double value = 0;
  std::vector<double> area = {0.08, 1}, ratio = {0.75, 4.0 / 3};  ///< smallest and largest
  double degrees = 0;
  std::vector<double> translate = {0, 0};  ///< largest shares of width and height, either way
  std::vector<double> zoom = {1, 1};       ///< smallest and largest
  double shear = 0;                        ///< largest, in degrees
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;  ///< largest changes
  std::vector<double> sigma = {0.1, 2};
  double strength = 0;
  int64_t count = 2, magnitude = 9;  ///< magnitude: 0 to 30
  int64_t sample_rate = 0, mels = 64, window = 400,
          hop = 160;                             ///< log_mel: window and hop in samples
  double low_frequency = 0, high_frequency = 0;  ///< in Hz; 0: half the rate
  int64_t time_masks = 2, time_width = 30;       ///< spec_augment: the largest width
  int64_t frequency_masks = 2, frequency_width = 10;
};

/// The name that configs use: "random_crop".
std::string name_of(TransformKind kind);
std::string name_of(const TransformOptions& options);
/// Of the built-in ones.
std::optional<TransformKind> parse_transform(const std::string& name);
std::vector<std::string> transform_names();

/// Where a transform moves the points of an image, in pixels from its top left corner: to
/// (xx x + xy y + x0, yx x + yy y + y0) of an image of this size.
struct Placement {
  double xx = 1, xy = 0, x0 = 0, yx = 0, yy = 1, y0 = 0;
  int64_t height = 0, width = 0;
};

class Transform {
 public:
  virtual ~Transform() = default;
  /// The result's type and shape; kConfig if the transform does not suit the field.
  virtual Field infer(const Field& in) const = 0;
  /// `kind` is that of the field: the geometry of a mask changes without new values, and its
  /// colors do not change.
  virtual void apply(const Value& in, Value& out, FieldKind kind, RandomSequence random) const = 0;
  /// Whether pixels of an image move.
  virtual bool moves() const { return false; }
  /// Where, for an image of this size and the same random numbers. nullopt if it cannot be told.
  virtual std::optional<Placement> placement(int64_t /*height*/, int64_t /*width*/,
                                             RandomSequence /*random*/) const {
    return std::nullopt;
  }
};

std::unique_ptr<Transform> make_transform(const TransformOptions& options);
/// log_mel and spec_augment (sound_transforms.cc).
std::unique_ptr<Transform> make_sound_transform(const TransformOptions& options);

/// A list of transforms for the fields of a dataset (or of inputs given at inference). Boxes move
/// with the first image: they are clipped to it, and left out where little of them is left. So does
/// the mask of a sample where a transform does not list it, unless another one of the same kind
/// does. kConfig where it is not clear what should move.
class Pipeline {
 public:
  Pipeline(std::vector<Field> fields, const std::vector<TransformOptions>& transforms);
  /// After all transforms.
  const std::vector<Field>& fields() const { return fields_; }
  /// Whether a transform is for this field.
  bool changes(size_t field) const;
  /// Transforms the sample in place; `scratch` is reused from call to call.
  void apply(Sample& sample, int64_t index, const ReadContext& context, Value& scratch) const;
  /// Where the pixels of the first image go if it is of this size. nullopt without an image, and
  /// where it cannot be told: of random transforms, for example.
  std::optional<Placement> placement(int64_t height, int64_t width) const;

 private:
  struct Stage {
    bool moves_boxes = false;
    bool is_random = false;  ///< moves pixels by random numbers
    std::shared_ptr<const Transform> transform;
    std::string name;
    std::vector<size_t> fields;
    uint64_t stream;
  };
  /// Adds the mask that has to move with the first image to the fields of a stage.
  void follow_image(const std::vector<TransformOptions>& transforms, size_t number, Stage& stage);
  void follow_boxes(const TransformOptions& options, Stage& stage) const;
  void move_boxes(const Placement& placement, Sample& sample) const;

  std::vector<Field> fields_;
  std::vector<Stage> stages_;
  std::optional<size_t> image_;  ///< the first one
  std::vector<size_t> boxes_, per_box_;
};

}  // namespace paddle::data
