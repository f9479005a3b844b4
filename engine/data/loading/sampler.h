#pragma once
// Unequal shares of samples: how often each is drawn in an epoch, and what the loss of each class
// counts, from the numbers of samples per class or from a field of weights.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace paddle::data {

/// `data.sampler`: samples of an epoch are drawn independently, some of them several times.
struct SamplerOptions {
  enum class Kind {
    kBalanced,  ///< by the class in `field`: count^-power
    kWeighted,  ///< by the number in `field`
  };
  Kind kind = Kind::kBalanced;
  std::string field = {};
  double power = 1;     ///< balanced: 1 draws all classes equally often, 0 as they are
  int64_t samples = 0;  ///< of an epoch; 0: as many as the dataset has
};

/// `data.class_weights`
struct ClassWeightOptions {
  std::string field = {};
  double power = 1;  ///< weights are proportional to count^-power, with mean 1 over the samples
};

/// The number of samples of each class; those below 0 are not counted. kConfig if the field holds
/// no class numbers, kData for a sample that cannot be read.
std::vector<int64_t> class_counts(const Dataset& dataset, const std::string& field);
/// One weight per sample. kData for weights that are negative or not finite, or all 0.
std::vector<double> sample_weights(const Dataset& dataset, const SamplerOptions& options);
/// One weight per class; 1 for a class without samples.
std::vector<double> class_weights(const Dataset& dataset, const ClassWeightOptions& options);

/// Draws sample numbers with given weights: any draw in logarithmic time.
class WeightedDraw {
 public:
  explicit WeightedDraw(const std::vector<double>& weights);
  /// The sample for a uniform number in [0, 1).
  int64_t operator()(double uniform) const;

 private:
  std::vector<double> sums_;  ///< of the weights up to each sample
};

}  // namespace paddle::data
