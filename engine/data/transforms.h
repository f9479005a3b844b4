#pragma once
// Transforms: what happens to a sample between the dataset and the batch. Each works on named
// fields and knows the type and shape of its result beforehand. Random ones depend on (seed,
// epoch, sample index) and their place in the list alone; the fields of one transform (an image
// and its mask) get the same random choice.

#include <cstdint>
#include <memory>
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
  kRandomResizedCrop,  ///< a window of random area and ratio, resized to height x width
  kRandomRotation,     ///< rotated by up to `degrees` either way about the center
  kHorizontalFlip,     ///< left and right exchanged, with `probability`
  kVerticalFlip,
  kPad,  ///< `pad` pixels of `value` around: all, or left, right, top, bottom
};

struct TransformOptions {
  TransformKind kind = TransformKind::kCast;
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
};

/// The name that configs use: "random_crop".
std::string name_of(TransformKind kind);
std::optional<TransformKind> parse_transform(const std::string& name);
std::vector<std::string> transform_names();

class Transform {
 public:
  virtual ~Transform() = default;
  /// The result's type and shape; kConfig if the transform does not suit the field.
  virtual Field infer(const Field& in) const = 0;
  virtual void apply(const Value& in, Value& out, RandomSequence random) const = 0;
};

std::unique_ptr<Transform> make_transform(const TransformOptions& options);

/// A list of transforms for the fields of a dataset (or of inputs given at inference).
class Pipeline {
 public:
  Pipeline(std::vector<Field> fields, const std::vector<TransformOptions>& transforms);
  /// After all transforms.
  const std::vector<Field>& fields() const { return fields_; }
  /// Transforms the sample in place; `scratch` is reused from call to call.
  void apply(Sample& sample, int64_t index, const ReadContext& context, Value& scratch) const;

 private:
  struct Stage {
    std::shared_ptr<const Transform> transform;
    std::string name;
    std::vector<size_t> fields;
    uint64_t stream;
  };
  std::vector<Field> fields_;
  std::vector<Stage> stages_;
};

}  // namespace paddle::data
