#pragma once
// Second moments of the inputs of layers, of which methods for weights know which errors matter.
// Memory does not depend on the number of samples.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "quant/function_runner.h"
#include "quant/layers.h"

namespace paddle::quant {

/// Of the features that the weight of a layer multiplies.
struct Moments {
  int64_t features = 0;
  std::vector<double> products;  ///< [features][features], mean of x xᵀ
  std::vector<double> mean;      ///< [features]

  double square(int64_t feature) const {
    return products[static_cast<size_t>(feature * features + feature)];
  }
};

/// Calls its argument with the inputs of one batch after the other, from the first one.
using BatchSource = std::function<void(const std::function<void(const std::vector<Array>&)>&)>;

/// Layers whose moments fit in memory: at most kMaxFeatures features.
inline constexpr int64_t kMaxFeatures = 4608;
bool can_collect_moments(const Quantizable& model, size_t layer);

/// Collects the moments of these layers, some at a time, and calls `use(layer, moments)` for each.
/// `layers` must be ones that can_collect_moments takes.
void collect_moments(const Quantizable& model, const std::vector<size_t>& layers,
                     const BatchSource& batches, const WeightSource& weight,
                     const std::function<void(size_t, const Moments&)>& use);

/// Of the input x of a layer in the float model and x' in the quantized one.
struct PairedMoments {
  Moments quantized;          ///< mean of x' x'ᵀ; without means of features
  std::vector<double> mixed;  ///< [features][features], mean of x x'ᵀ
};
/// Runs both models on all batches. `layers` must be ones that can_collect_moments takes.
std::vector<PairedMoments> collect_paired_moments(const Quantizable& model,
                                                  const std::vector<size_t>& layers,
                                                  const BatchSource& batches,
                                                  const WeightSource& weight);

}  // namespace paddle::quant
