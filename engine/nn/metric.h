#pragma once
// Metrics as accumulators: `update` takes the arrays of one batch, `merge` joins the accumulator of
// another process or part, `result` is the value over everything seen. A short last batch, any
// number of processes and any batch size give the value of the whole set.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::nn {

class Metric {
 public:
  virtual ~Metric() = default;
  virtual void reset() = 0;
  /// Arrays in the order of the metric's operands. Throws kData for values out of range.
  virtual void update(const std::vector<Array>& arrays) = 0;
  /// Adds another accumulator of the same kind.
  virtual void merge(const Metric& other) = 0;
  virtual double result() const = 0;
};

/// What a metric takes, for binding calls in a config: `accuracy(logits, label, k=5)`.
struct MetricInfo {
  std::string name;
  std::string doc;
  std::vector<std::string> operands;
  std::vector<std::pair<std::string, double>> options;  ///< with defaults
};
const std::vector<MetricInfo>& metric_infos();
const MetricInfo* find_metric(const std::string& name);
std::unique_ptr<Metric> make_metric(const std::string& name,
                                    const std::map<std::string, double>& options);

}  // namespace paddle::nn
