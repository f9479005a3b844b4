#pragma once
// A checkpoint while it is written, in a thread of its own or at once.

#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

#include "program/checkpoint_writer.h"

namespace paddle::train {

class CheckpointInProgress {
 public:
  CheckpointInProgress(const std::string& folder, const program::ParameterStore& store,
                       program::CheckpointContent content,
                       const std::map<std::string, std::string>& averages, bool in_background)
      : writer(folder, store, std::move(content), averages), in_background_(in_background) {}
  ~CheckpointInProgress() {
    if (thread_.joinable()) thread_.join();
  }
  CheckpointInProgress(const CheckpointInProgress&) = delete;
  CheckpointInProgress& operator=(const CheckpointInProgress&) = delete;

  void start(std::function<void()> part) {
    if (!in_background_) return part();
    busy_ = true;
    thread_ = std::thread([this, part = std::move(part)] {
      try {
        part();
      } catch (...) {
        failure_ = std::current_exception();
      }
      busy_ = false;
    });
  }
  bool busy() const { return busy_; }
  /// Waits for what was started; throws the error with which it ended.
  void wait() {
    if (thread_.joinable()) thread_.join();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  program::CheckpointWriter writer;
  bool has_tensors = false;  ///< of all ranks; what is left is up to rank 0
  int64_t step = 0, best_step = 0;

 private:
  bool in_background_;
  std::atomic<bool> busy_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace paddle::train
