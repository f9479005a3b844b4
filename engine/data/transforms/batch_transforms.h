#pragma once
// Transforms that mix the samples of a batch: mixup, CutMix and mosaic. They come after the
// transforms of single samples and run in training only. What a sample becomes is a function of
// (seed, epoch, the samples of its batch): neither threads nor ranks change it.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace paddle::data {

enum class BatchTransformKind {
  kMixup,   ///< weighted means of two samples (Zhang et al., 2018)
  kCutmix,  ///< a rectangle of another image (Yun et al., 2019)
  kMosaic,  ///< four images around a random point (Bochkovskiy et al., 2020)
};

struct BatchTransformOptions {
  BatchTransformKind kind = BatchTransformKind::kMixup;
  /// mixup: float fields. Others: images and masks, pasted, and float fields, mixed by area. Boxes
  /// and what belongs to them follow the first image in a mosaic without being listed.
  std::vector<std::string> fields = {};
  double probability = 1;               ///< per sample
  double alpha = 1;                     ///< of the Beta(alpha, alpha) distribution of shares
  double value = 0;                     ///< mosaic: pixels outside of all images
  std::vector<double> zoom = {0.5, 1};  ///< mosaic: smallest and largest size of the images
};

/// The name that configs use: "mixup".
std::string name_of(BatchTransformKind kind);
std::optional<BatchTransformKind> parse_batch_transform(const std::string& name);
std::vector<std::string> batch_transform_names();

class BatchPipeline {
 public:
  /// `fields`: as the transforms of samples leave them. kConfig for fields that do not suit.
  BatchPipeline(const std::vector<Field>& fields,
                const std::vector<BatchTransformOptions>& transforms);
  bool empty() const { return stages_.empty(); }
  /// Transforms the samples of a whole batch, which begins at place `first` of its epoch; `indices`
  /// are their numbers in the dataset. A sample is mixed by the first of mixup and CutMix that its
  /// probability chooses. kData if sizes differ.
  void apply(std::vector<Sample>& samples, std::span<const int64_t> indices,
             const ReadContext& context, int64_t first) const;

 private:
  struct Stage {
    BatchTransformOptions options;
    std::vector<size_t> pasted = {}, mixed = {};  ///< fields
    uint64_t stream = 0;
  };
  void mix(const Stage& stage, const Sample& other, double share, Sample& sample) const;
  double paste(const Stage& stage, const Sample& other, double share, RandomSequence& random,
               Sample& sample) const;
  void tile(const Stage& stage, const std::vector<const Sample*>& tiles, RandomSequence& random,
            Sample& out) const;

  std::vector<Field> fields_;
  std::vector<Stage> stages_;
  std::optional<size_t> boxes_;
  std::vector<size_t> per_box_;
};

}  // namespace paddle::data
