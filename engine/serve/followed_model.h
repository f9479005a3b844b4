#pragma once
// A model for predictions that may be replaced while it is served: with ModelEntry::follow, by each
// version that its store makes the current one. A request keeps the version that it began with, so
// it sees the function, the weights and the tables of one.

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "serve/predictor.h"

namespace paddle::serve {

class FollowedModel {
 public:
  /// Loads the model, with the errors of program::load_model; kUsage for one to be followed that is
  /// no store.
  FollowedModel(ModelEntry entry, const PredictLimits& limits, Device device, Metrics& metrics);
  ~FollowedModel();
  FollowedModel(const FollowedModel&) = delete;
  FollowedModel& operator=(const FollowedModel&) = delete;

  const std::string& name() const { return entry_.name; }
  /// The version of now; it stays in memory while a request uses it.
  std::shared_ptr<Predictor> current() const { return current_.load(); }

 private:
  std::shared_ptr<Predictor> open(const std::string& version);
  void follow();
  bool waits(std::chrono::milliseconds time);

  const ModelEntry entry_;
  const PredictLimits limits_;
  const Device device_;
  Metrics& metrics_;
  std::atomic<std::shared_ptr<Predictor>> current_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;  ///< the last member: it uses the others
};

}  // namespace paddle::serve
