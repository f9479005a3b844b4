#pragma once
// The events of a plan on a device with streams, the host memory that its copies read and write,
// and the queueing of copies.

#include <array>
#include <map>
#include <vector>

#include "runtime/plan.h"

namespace paddle::runtime {

class PlanStreams {
 public:
  explicit PlanStreams(Device device);
  /// Waits for queued work, which refers to the plan.
  ~PlanStreams();
  PlanStreams(const PlanStreams&) = delete;
  PlanStreams& operator=(const PlanStreams&) = delete;

  // --- building ---

  /// An event that instructions record and wait for; returns its number.
  int new_event();
  /// Staging memory for an input of the host, of this size; `copied` is recorded when the copy that
  /// reads it is done.
  void add_staging(size_t input, size_t bytes, int copied);
  /// Host memory for a condition.
  void add_condition(int value);

  // --- running ---

  Device device() const { return device_; }
  paddle_stream stream(const Instruction& instruction) const {
    return instruction.copies ? copy_ : compute_;
  }
  /// Whether there are inputs of the host.
  bool stages() const { return !staging_.empty(); }
  /// Before the first instruction: copies inputs of the host into their staging memory, of which
  /// there are two; `turn` (0 or 1) says which. It waits only for
  /// the copies of the run before the last, and copies to the device wait for its kernels, which
  /// have read what they overwrite.
  void begin(const std::vector<void*>& inputs, size_t turn);
  /// After the last instruction: makes kernels wait for the copies that none of them read.
  void join_copies();
  /// After the last read of the inputs.
  void finish();
  void before(const Instruction& instruction);
  void after(const Instruction& instruction);
  void copy_in(size_t input, void* to);
  void read_back(int value, const void* from, size_t bytes);
  /// The condition that was read back, after waiting for it.
  const void* condition(int value) const;
  void copy(void* to, const void* from, size_t bytes);

 private:
  struct Staging {
    std::array<void*, 2> memory = {};
    std::array<paddle_event, 2> read = {};  ///< recorded after the copy of each
    size_t bytes = 0;
    int copied = 0;
  };
  void check(int status) const { check_device(device_, status); }

  Device device_;
  const paddle_device_api& api_;
  paddle_stream compute_, copy_;
  std::vector<paddle_event> events_;
  std::array<paddle_event, 2> finished_ = {};  ///< recorded after the runs of each turn
  size_t turn_ = 0;
  std::map<size_t, Staging> staging_;
  std::map<int, void*> conditions_;
};

}  // namespace paddle::runtime
