#pragma once
// A model of any kind that requests can ask for predictions: its thread runs batches, to which
// requests that wait at the same time are joined.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "infer/decoder.h"
#include "program/model_units.h"
#include "serve/metrics.h"
#include "serve/predict_batch.h"
#include "serve/serve_config.h"
#include "tensor/device.h"

namespace paddle::serve {

struct PredictLimits {
  int64_t queue = 64;      ///< batches of requests that may wait
  int64_t max_batch = 64;  ///< rows of a batch
  double batch_wait = 0;   ///< seconds that a request may wait for others
};

class Predictor {
 public:
  /// Loads the model, with the errors of program::load_model.
  Predictor(const ModelEntry& entry, const PredictLimits& limits, Device device, Metrics& metrics,
            std::string version = "");
  /// Ends after the running batch; waiting jobs are dropped.
  ~Predictor();
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  const std::string& name() const { return name_; }
  /// The version of a store; "" for other models.
  const std::string& version() const { return version_; }
  int64_t created() const { return created_; }
  const PredictLimits& limits() const { return limits_; }
  /// The model as loaded. Nothing runs it, so threads of requests may read it.
  const program::Model& model() const { return *model_; }
  /// How inputs are read for results that are decoded or not.
  const infer::InputOptions& input_options(bool decode) const {
    return decode ? decoded_input_ : raw_input_;
  }
  /// Its run, as far as the inputs are concerned.
  const infer::RunInputs& run_inputs() const { return *raw_input_.run; }
  /// Whether requests are joined where their types and sizes allow it, as far as is known.
  bool joins() const { return joins_; }
  /// Lines that its user should see.
  std::vector<std::string> warnings() const { return units_->warnings(); }

  /// False if the queue is full; `continues`: of a request whose first batch was accepted.
  bool submit(const PredictJobPtr& job, bool continues);
  /// Wakes the thread to drop a cancelled job.
  void wake() { changed_.notify_all(); }
  /// Updates the gauges.
  void report() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Ran {
    std::vector<Array> outputs;
    std::vector<infer::Decoded> decoded;
  };
  void run();
  std::vector<PredictJobPtr> take();
  void take_joinable(std::vector<PredictJobPtr>& jobs, int64_t& rows);
  bool may_join(const PredictJob& first) const;
  void predict(const std::vector<PredictJobPtr>& jobs);
  void predict_alone(PredictJob& job);
  void predict_together(const std::vector<PredictJobPtr>& jobs);
  Ran compute(const infer::InputBatch& batch, bool decode);
  void deliver(PredictJob& job, Ran results);
  std::string metric(const char* name) const;

  std::string name_, version_;
  int64_t created_ = 0;
  PredictLimits limits_;
  Metrics& metrics_;
  std::unique_ptr<program::Model> model_;
  std::shared_ptr<program::Model> runner_;  ///< a clone, or the model itself if it has none
  std::unique_ptr<infer::Decoder> decoder_;
  std::unique_ptr<program::OutputUnits> units_;
  infer::InputOptions raw_input_, decoded_input_;
  std::atomic<bool> joins_{true};
  bool is_checked_ = false;  ///< joined results were compared with separate ones
  bool has_run_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<PredictJobPtr> queue_;
  bool stopping_ = false;
  std::atomic<int64_t> running_{0};
  std::thread thread_;  ///< the last member: it uses the others
};

}  // namespace paddle::serve
