#pragma once
// Recorded work of a plan. On devices that can record what is queued on a stream, runs of
// instructions without control flow ("segments") are recorded in the second run of a plan and
// queued as a whole from then on, which costs the host one call instead of one for each kernel.
//
// A record holds addresses. It is used only for the same addresses of inputs and the same turn of
// staging memory, and dropped when the arena moves. Copies from and to the host are outside.

#include <array>
#include <span>
#include <vector>

#include "paddle/plugin/device.h"
#include "runtime/plan.h"

namespace paddle::runtime {

/// How much of a plan, or of all plans, is recorded.
struct GraphReport {
  int64_t instructions = 0;  ///< of the plan
  int64_t captured = 0;      ///< those that lie in recorded segments
  int64_t segments = 0;
  int64_t graphs = 0;   ///< records that were made
  int64_t changed = 0;  ///< runs that were not recorded because inputs kept changing their place
};
/// The sums over all plans of this process that have recorded something.
GraphReport all_graphs();

class PlanGraphs {
 public:
  /// Records are made for this many sets of input addresses.
  static constexpr size_t kMaxPlaces = 8;

  explicit PlanGraphs(Device device);
  ~PlanGraphs();
  PlanGraphs(const PlanGraphs&) = delete;
  PlanGraphs& operator=(const PlanGraphs&) = delete;

  /// Finds the segments of a block and of those inside it.
  void find_segments(std::vector<Instruction>& block);

  /// Before a run: the addresses that it reads and writes besides the arena, null for those in
  /// staging memory, of which the run uses `turn`.
  void begin(std::span<void* const> addresses, size_t turn);
  /// After a run.
  void finish() { ++runs_; }
  /// Drops all records: the arena is elsewhere.
  void clear();

  size_t length(int segment) const { return segments_[static_cast<size_t>(segment)].length; }
  /// Queues the record of a segment; false if there is none for this run.
  bool replay(int segment);
  /// Whether segments without a record are to be recorded in this run.
  bool is_recording() const { return runs_ > 0 && place_ >= 0; }
  /// Gives the stream on which work is recorded until `end_recording`. It is of this plan only:
  /// other threads may queue work of theirs on the device meanwhile.
  paddle_stream begin_recording();
  /// Queues the record that was made.
  void end_recording(int segment);
  /// After an error.
  void drop_recording();
  const GraphReport& report() const { return report_; }

 private:
  struct Segment {
    size_t length = 0;
    std::array<paddle_graph, 2 * kMaxPlaces> graphs = {};  ///< by place and turn
  };
  bool can_capture(const Instruction& instruction) const;
  paddle_graph& graph(int segment) {
    return segments_[static_cast<size_t>(segment)].graphs[2 * static_cast<size_t>(place_) + turn_];
  }

  Device device_;
  const paddle_device_api& api_;
  paddle_stream stream_;
  paddle_stream recording_ = nullptr;
  std::vector<Segment> segments_;
  std::vector<std::vector<void*>> places_;
  int place_ = -1;  ///< of this run; -1: not recorded
  size_t turn_ = 0;
  int64_t runs_ = 0;
  GraphReport report_;
};

}  // namespace paddle::runtime
