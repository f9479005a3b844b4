#pragma once
// Statistics of activations for calibration: a histogram of fixed size whose range grows as values
// come, so memory does not depend on the number of samples.

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::quant {

/// How the range of a tensor is chosen from its statistics.
enum class RangeMethod { kMinMax, kPercentile, kMse, kKl };
/// kUsage, with the nearest name, for an unknown one.
RangeMethod parse_range_method(const std::string& name);
std::vector<std::string> range_method_names();

struct Range {
  double low = 0, high = 0;
};

class Observer {
 public:
  /// Adds the finite elements of an array; NaN and infinities are counted apart.
  void add(const Array& values);
  bool empty() const { return count_ == 0; }
  int64_t count() const { return count_; }
  int64_t not_finite() const { return not_finite_; }
  double lowest() const { return low_; }
  double highest() const { return high_; }
  /// The range to quantize to `levels` values. `percentile` is for kPercentile.
  Range range(RangeMethod method, int64_t levels, double percentile = 99.99) const;

 private:
  static constexpr int64_t kBins = 2048;
  /// Widens the histogram until it holds [low, high], merging bins.
  void cover(double low, double high);
  double bin_center(int64_t bin) const;
  Range percentile_range(double percentile) const;
  Range mse_range(int64_t levels) const;
  Range kl_range(int64_t levels) const;

  std::vector<double> bins_;
  double start_ = 0, width_ = 0;  ///< of the histogram and of one bin
  double low_ = 0, high_ = 0;
  int64_t count_ = 0, not_finite_ = 0;
};

}  // namespace paddle::quant
