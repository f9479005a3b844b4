#pragma once
// The events of a plan on a device with streams, the host memory that its copies read and write,
// and the queueing of copies.

#include <array>
#include <map>
#include <span>
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
  /// An input of the host and its place in a block of staging memory, in bytes.
  struct Staged {
    size_t input = 0, offset = 0, bytes = 0;
  };
  /// A block of staging memory for inputs, which one copy brings to the device, where `memory` is
  /// for it; `copied` is recorded when the copy is done. Returns the number of the block.
  int add_staging(std::vector<Staged> inputs, std::array<std::shared_ptr<Storage>, 2> memory,
                  int copied);
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
  /// there are two; `turn` (0 or 1) says which. Inputs for which `on_device` is set are read where
  /// they are. It waits only for the copies of the run before the last, and copies to the device
  /// wait for its kernels, which have read what they overwrite.
  void begin(const std::vector<void*>& inputs, const std::vector<uint8_t>& on_device, size_t turn);
  /// Of the run that has begun: by input, the address on the device; null for what is copied there.
  std::span<void* const> device_addresses() const { return addresses_; }
  /// After the last instruction: makes kernels wait for the copies that none of them read.
  void join_copies();
  /// After the last read of the inputs.
  void finish();
  void before(const Instruction& instruction);
  void after(const Instruction& instruction);
  void copy_in(size_t block);
  void read_back(int value, const void* from, size_t bytes);
  /// The condition that was read back, after waiting for it.
  const void* condition(int value) const;
  void copy(void* to, const void* from, size_t bytes);

 private:
  struct Block {
    std::vector<Staged> inputs;
    std::array<void*, 2> memory = {};
    std::array<std::shared_ptr<Storage>, 2> on_device = {};
    std::array<paddle_event, 2> read = {};  ///< recorded after the copy of each
    size_t begin = 0, end = 0;              ///< of the bytes that this run copies
    int copied = 0;
  };
  void check(int status) const { check_device(device_, status); }

  Device device_;
  const paddle_device_api& api_;
  paddle_stream compute_, copy_;
  std::vector<paddle_event> events_;
  std::array<paddle_event, 2> finished_ = {};  ///< recorded after the runs of each turn
  size_t turn_ = 0;
  std::vector<Block> staging_;
  std::vector<void*> addresses_;
  std::map<int, void*> conditions_;
};

}  // namespace paddle::runtime
