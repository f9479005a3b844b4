#pragma once
// Predictions that wait for a model, and how several of them become one batch.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "infer/batches.h"
#include "infer/results.h"
#include "onnx/graph/value_io.h"

namespace paddle::serve {

/// A batch of one request. The thread of the request waits; that of the model fills in the results.
class PredictJob {
 public:
  /// Arrays. `decode`: results are objects by row, with a `label` if `has_labels`.
  PredictJob(infer::InputBatch batch, bool decode, infer::ShownColumns shown);
  /// Values of an ONNX graph of any kind.
  explicit PredictJob(onnx::Values values);

  infer::InputBatch batch;
  const std::optional<onnx::Values> values;
  const bool decode = false;
  const infer::ShownColumns shown = {};
  const std::chrono::steady_clock::time_point asked = std::chrono::steady_clock::now();

  // Results, once it is done.
  std::vector<std::string> names;  ///< of the outputs
  std::vector<Array> outputs;
  std::vector<onnx::NamedOutput> value_outputs;
  std::vector<std::string> rows;  ///< JSON objects, with `decode`
  std::optional<Error> error;

  /// The model drops the job before it begins with it.
  void cancel() { cancelled_ = true; }
  bool is_cancelled() const { return cancelled_; }
  /// Waits for `milliseconds` at most; whether it is done.
  bool wait(int milliseconds);
  void finish();

 private:
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

using PredictJobPtr = std::shared_ptr<PredictJob>;

/// Whether two jobs could be one batch: the same types and sizes but for the rows.
bool can_join(const PredictJob& a, const PredictJob& b);
/// The rows of all jobs, in their order.
infer::InputBatch joined(const std::vector<PredictJobPtr>& jobs);
/// Copies of rows [first, first + rows) of an array.
Array rows_of(const Array& array, int64_t first, int64_t rows);

}  // namespace paddle::serve
