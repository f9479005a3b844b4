#include "runtime/plan_graphs.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "paddle/plugin/device.h"

namespace paddle::runtime {
namespace {

struct Totals {
  std::mutex mutex;
  GraphReport sum;
};

Totals& totals() {
  static Totals all;
  return all;
}

void add_to_totals(const GraphReport& part) {
  Totals& all = totals();
  const std::lock_guard lock(all.mutex);
  all.sum.instructions += part.instructions;
  all.sum.captured += part.captured;
  all.sum.segments += part.segments;
  all.sum.graphs += part.graphs;
  all.sum.changed += part.changed;
}

}  // namespace

GraphReport all_graphs() {
  Totals& all = totals();
  const std::lock_guard lock(all.mutex);
  return all.sum;
}

PlanGraphs::PlanGraphs(Device device)
    : device_(device), api_(device_api(device)), stream_(compute_stream(device)) {}

PlanGraphs::~PlanGraphs() {
  clear();
  if (recording_) api_.destroy_stream(recording_);
}

bool PlanGraphs::can_capture(const Instruction& instruction) const {
  return instruction.kind == Instruction::Kind::kKernel && !instruction.copies &&
         instruction.records < 0 && instruction.kernel->capturable();
}

void PlanGraphs::find_segments(std::vector<Instruction>& block) {
  constexpr size_t kMinLength = 2;  // one kernel is queued in one call anyway
  report_.instructions += std::ssize(block);
  for (size_t begin = 0, end = 0; begin < block.size(); begin = std::max(end, begin + 1)) {
    for (auto& nested : block[begin].blocks) find_segments(nested);
    end = begin;
    // An instruction that waits for a copy begins a segment: what is before it need not wait.
    while (end < block.size() && can_capture(block[end]) &&
           (end == begin || block[end].waits.empty()))
      ++end;
    if (end - begin < kMinLength) continue;
    block[begin].segment = static_cast<int>(segments_.size());
    segments_.emplace_back().length = end - begin;
    ++report_.segments;
    report_.captured += static_cast<int64_t>(end - begin);
  }
}

void PlanGraphs::begin(std::span<void* const> addresses, size_t turn) {
  turn_ = turn;
  if (place_ >= 0 && std::ranges::equal(places_[static_cast<size_t>(place_)], addresses)) return;
  const auto found = std::ranges::find_if(places_, [&](const std::vector<void*>& place) {
    return std::ranges::equal(place, addresses);
  });
  if (found == places_.end()) {
    if (places_.size() == kMaxPlaces) {
      place_ = -1;
      ++report_.changed;
      add_to_totals({.changed = 1});
      return;
    }
    places_.emplace_back(addresses.begin(), addresses.end());
    place_ = static_cast<int>(places_.size()) - 1;
  } else {
    place_ = static_cast<int>(found - places_.begin());
  }
}

void PlanGraphs::clear() {
  for (Segment& segment : segments_)
    for (paddle_graph& each : segment.graphs)
      if (each) api_.destroy_graph(std::exchange(each, nullptr));
  places_.clear();
  place_ = -1;
  runs_ = 0;
}

bool PlanGraphs::replay(int segment) {
  if (place_ < 0) return false;
  const paddle_graph recorded = graph(segment);
  if (!recorded) return false;
  check_device(device_, api_.launch_graph(recorded, stream_));
  return true;
}

paddle_stream PlanGraphs::begin_recording() {
  if (!recording_) check_device(device_, api_.create_stream(device_.index, &recording_));
  check_device(device_, api_.begin_capture(recording_));
  return recording_;
}

void PlanGraphs::end_recording(int segment) {
  check_device(device_, api_.end_capture(recording_, &graph(segment)));
  // A plan counts once it records something.
  if (report_.graphs++ == 0)
    add_to_totals({.instructions = report_.instructions,
                   .captured = report_.captured,
                   .segments = report_.segments});
  add_to_totals({.graphs = 1});
  check_device(device_, api_.launch_graph(graph(segment), stream_));
}

void PlanGraphs::drop_recording() {
  paddle_graph unfinished = nullptr;
  if (api_.end_capture(recording_, &unfinished) == PADDLE_OK && unfinished)
    api_.destroy_graph(unfinished);
}

}  // namespace paddle::runtime
