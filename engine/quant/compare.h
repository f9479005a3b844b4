#pragma once
// How far a model is from another one on the same data: accuracy, agreement, noise, latency.

#include <optional>
#include <string>
#include <vector>

#include "infer/batches.h"
#include "program/model.h"

namespace paddle::quant {

/// A value for both models; confidence95 is half of the interval of the paired difference.
struct Metric {
  std::string name;
  double float_value = 0, quantized = 0;
  std::optional<double> confidence95 = {};
  bool is_share = false;                      ///< between 0 and 1, shown as a percentage
  bool is_of_config = false;                  ///< a metric of the model's config, or its loss
  std::optional<bool> higher_is_better = {};  ///< if it is known
};

struct Comparison {
  std::vector<Metric> metrics;
  int64_t samples = 0;
  double first_ms = 0, second_ms = 0;  ///< latency of a batch of `latency_batch` samples
  int64_t latency_batch = 1;

  const Metric* find(const std::string& name) const;
};

/// The inputs of exactly `rows` samples in one batch, repeated where the data has fewer; whole ones
/// where the model has no batch axis and `rows` is 1. kData for data without samples, kModel for a
/// model that cannot take `rows` samples at a time.
std::vector<Array> timed_inputs(const program::Model& model, const infer::InputOptions& data,
                                int64_t rows);

/// `data` are inputs of `first`; `second` must take the same. Latencies are those of
/// `latency_batch` samples at a time. kData if there are none, kModel if the first outputs have
/// different shapes.
Comparison compare_models(program::Model& first, program::Model& second,
                          const infer::InputOptions& data, int64_t latency_batch = 1);

}  // namespace paddle::quant
