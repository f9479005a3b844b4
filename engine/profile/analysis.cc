#include "profile/analysis.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/source_location.h"
#include "base/span.h"

namespace paddle::profile {
namespace {

std::string phase_of(const std::string& operation, const Origin& origin, bool training) {
  if (operation.find("_update") != std::string::npos) return "update";
  if (origin.gradient) return "backward";
  return training && origin.place.empty() ? "update" : "forward";
}

std::vector<OperationCost> cost_of_operations(const runtime::Profile& profile, bool training) {
  std::vector<OperationCost> costs(profile.instructions.size());
  // A copy that packs an operand has the position of the operation that reads it.
  std::map<std::pair<int, int>, std::string> origin_at;
  for (const runtime::InstructionInfo& info : profile.instructions)
    if (!info.origin.empty()) origin_at.try_emplace({info.plan, info.position}, info.origin);
  for (size_t i = 0; i < costs.size(); ++i) {
    const runtime::InstructionInfo& info = profile.instructions[i];
    const auto reader =
        info.origin.empty() ? origin_at.find({info.plan, info.position}) : origin_at.end();
    const Origin origin = parse_origin(reader == origin_at.end() ? info.origin : reader->second);
    OperationCost& c = costs[i];
    c.function = info.function;
    c.operation = info.operation;
    c.implementation = info.implementation;
    c.shapes = info.shapes;
    c.phase = phase_of(info.operation, origin, training);
    c.layer = origin.layer;
    c.place = origin.place;
    c.plan = info.plan;
    c.position = info.position;
    c.device = info.device;
  }
  for (const runtime::Profile::Event& event : profile.events) {
    const auto i = static_cast<size_t>(event.instruction);
    OperationCost& c = costs[i];
    ++c.calls;
    c.seconds += static_cast<double>(event.end - event.begin) * kNano;
    c.flops += profile.instructions[i].flops;
    c.bytes += profile.instructions[i].bytes;
  }
  return costs;
}

/// The plan in which the operations took the most time; -1 if there is none.
int main_plan(const std::vector<OperationCost>& costs) {
  std::map<int, double> seconds;
  for (const OperationCost& c : costs)
    if (c.plan >= 0) seconds[c.plan] += c.seconds;
  int best = -1;
  for (const auto& [plan, time] : seconds)
    if (best < 0 || time > seconds[best]) best = plan;
  return best;
}

std::string main_dtype(const std::vector<OperationCost>& costs) {
  std::map<std::string, double> flops;
  for (const OperationCost& c : costs) flops[c.shapes.substr(0, c.shapes.find('['))] += c.flops;
  const auto most = std::max_element(
      flops.begin(), flops.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
  return most == flops.end() ? "" : most->first;
}

/// The kind of an input of a plan in words.
std::string kind_of(const runtime::PlanInfo::Input& input) {
  using Kind = runtime::PlanInfo::Input::Kind;
  if (input.kind == Kind::kParameter || input.name.starts_with("master/")) return "parameters";
  if (input.kind != Kind::kState) return "data";
  if (input.name.starts_with("optimizer")) return "optimizer states";
  return input.name.starts_with("gradient/") ? "accumulated gradients" : "states of the model";
}

/// The kind of a value that instructions of these phases make and read last.
const char* kind_of_value(const std::string& made, const std::string& read) {
  if (made == "backward") return "values of the backward pass";
  if (made == "update") return "values of the update";
  return read == "backward" || read == "update" ? "values kept for the backward pass"
                                                : "values of the forward pass";
}

/// Costs of a plan by position.
using CostAt = std::map<int, const OperationCost*>;

/// The phase at a position, or that of the instruction before it.
std::string phase_at(const CostAt& at, int position) {
  const auto after = at.upper_bound(position);
  return after == at.begin() ? "forward" : std::prev(after)->second->phase;
}

/// Memory by kind over the step. What outlives it counts in full at every time.
std::vector<MemoryKind> kinds_of(const runtime::PlanInfo& plan, const CostAt& at, int peak) {
  std::map<std::string, MemoryKind> kinds;
  const auto add = [&](const std::string& kind, uint64_t bytes) {
    kinds[kind].at_the_peak += bytes;
    kinds[kind].most += bytes;
  };
  for (const runtime::PlanInfo::Input& input : plan.held) add(kind_of(input), input.bytes);
  if (plan.constants > 0) add("constants", plan.constants);
  std::map<std::string, std::map<int, int64_t>> changes;  // of the values of a kind, by position
  for (const runtime::PlanInfo::Buffer& b : plan.buffers) {
    const std::string kind = kind_of_value(phase_at(at, b.first), phase_at(at, b.last));
    if (b.first <= peak && peak <= b.last) kinds[kind].at_the_peak += b.bytes;
    changes[kind][b.first] += static_cast<int64_t>(b.bytes);
    changes[kind][b.last + 1] -= static_cast<int64_t>(b.bytes);
  }
  for (const auto& [kind, by_position] : changes) {
    int64_t live = 0, most = 0;
    for (const auto& [position, change] : by_position) most = std::max(most, live += change);
    kinds[kind].most = static_cast<uint64_t>(most);
  }
  std::vector<MemoryKind> out;
  for (auto& [kind, memory] : kinds) {
    memory.kind = kind;
    out.push_back(std::move(memory));
  }
  std::stable_sort(out.begin(), out.end(), [](const MemoryKind& a, const MemoryKind& b) {
    return a.at_the_peak > b.at_the_peak;
  });
  return out;
}

Memory memory_of(const runtime::PlanInfo& plan, std::vector<const OperationCost*> costs) {
  Memory memory;
  memory.function = plan.function;
  memory.device = plan.device;
  memory.arena = plan.arena;
  memory.scratch = plan.scratch;
  memory.inputs = plan.inputs;
  memory.constants = plan.constants;
  std::stable_sort(costs.begin(), costs.end(),
                   [](const auto* a, const auto* b) { return a->position < b->position; });
  double now = 0;
  CostAt at;
  for (const OperationCost* c : costs) {
    at.try_emplace(c->position, c);
    uint64_t live = 0;
    for (const runtime::PlanInfo::Buffer& b : plan.buffers)
      if (b.first <= c->position && c->position <= b.last) live += b.bytes;
    memory.timeline.push_back({c->position, now, live, c->operation, c->layer, c->phase});
    now += c->seconds;
    if (live > memory.timeline[memory.peak].bytes) memory.peak = memory.timeline.size() - 1;
  }
  if (memory.timeline.empty()) return memory;
  const int peak = memory.timeline[memory.peak].position;
  for (const runtime::PlanInfo::Buffer& b : plan.buffers) {
    if (b.first > peak || peak > b.last) continue;
    const auto maker = at.find(b.first);
    memory.at_the_peak.push_back({b.label, maker == at.end() ? "" : maker->second->layer,
                                  maker == at.end() ? "" : maker->second->phase, b.bytes});
  }
  std::stable_sort(memory.at_the_peak.begin(), memory.at_the_peak.end(),
                   [](const LiveBuffer& a, const LiveBuffer& b) { return a.bytes > b.bytes; });
  memory.kinds = kinds_of(plan, at, peak);
  return memory;
}

std::vector<DeviceUse> devices_of(const std::vector<OperationCost>& operations,
                                  const Memory& memory) {
  std::map<std::string, DeviceUse> devices;
  for (const OperationCost& c : operations) {
    DeviceUse& use = devices[c.device];
    use.calls += c.calls;
    use.seconds += c.seconds;
    use.flops += c.flops;
    if (c.implementation.starts_with("copy to ")) use.copying += c.seconds;
  }
  if (!memory.timeline.empty())
    devices[memory.device].memory = memory.arena + memory.inputs + memory.constants;
  std::vector<DeviceUse> out;
  for (auto& [name, use] : devices) {
    use.device = name;
    out.push_back(std::move(use));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const DeviceUse& a, const DeviceUse& b) { return a.seconds > b.seconds; });
  return out;
}

/// Seconds that timing one instruction costs: two readings of the clock and a record.
double seconds_per_event() {
  constexpr int kCalls = 20000;
  runtime::Profile scratch;
  scratch.events.reserve(kCalls);
  const int64_t begin = steady_nanoseconds();
  for (int i = 0; i < kCalls; ++i) {
    const int64_t start = steady_nanoseconds();
    scratch.record(0, start, steady_nanoseconds());
  }
  return static_cast<double>(steady_nanoseconds() - begin) * kNano / kCalls;
}

}  // namespace

void Cost::add(const OperationCost& operation) {
  calls += operation.calls;
  seconds += operation.seconds;
  flops += operation.flops;
  bytes += operation.bytes;
}

double share_of_peak(const Cost& cost, const Peaks& peaks) {
  if (cost.seconds <= 0) return 0;
  return std::max(cost.flops / (1e9 * peaks.gflops), cost.bytes / (1e9 * peaks.gigabytes)) /
         cost.seconds;
}

double roofline_seconds(double flops, double bytes, const Peaks& peaks) {
  return std::max(flops / (1e9 * peaks.gflops), bytes / (1e9 * peaks.gigabytes));
}

double Analysis::operation_seconds() const {
  double total = 0;
  for (const OperationCost& c : operations) total += c.seconds;
  return total;
}

double Analysis::median_step() const {
  std::vector<double> times;
  for (const Step& s : measured.steps)
    times.push_back(static_cast<double>(s.end - s.loaded) * kNano);
  if (times.empty()) return 0;
  std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

Analysis analyze(Measurement measured, const runtime::Profile& profile) {
  Analysis a;
  a.complete = profile.events.size() < runtime::Profile::kMaxEvents;
  for (const Step& s : measured.steps) {
    a.wall += static_cast<double>(s.end - s.loaded) * kNano;
    a.waiting += static_cast<double>(s.loaded - s.begin) * kNano;
    a.samples += s.samples;
  }
  for (const TimelineSpan& span : measured.spans) {
    if (span.name != "make batch" || measured.steps.empty() ||
        span.end < measured.steps.front().begin || span.begin > measured.steps.back().end)
      continue;
    ++a.batches;
    a.batch_seconds += static_cast<double>(span.end - span.begin) * kNano;
  }
  if (a.batches > 0) a.batch_seconds /= static_cast<double>(a.batches);
  if (a.wall > 0)
    a.overhead = seconds_per_event() * static_cast<double>(profile.events.size()) / a.wall;
  std::vector<OperationCost> costs = cost_of_operations(profile, measured.training);
  if (const int plan = main_plan(costs); plan >= 0) {
    std::vector<const OperationCost*> own;
    for (const OperationCost& c : costs)
      if (c.plan == plan && c.calls > 0) own.push_back(&c);
    a.memory = memory_of(profile.plans[static_cast<size_t>(plan)], own);
    const double steps = std::max<double>(1, static_cast<double>(measured.steps.size()));
    for (MemoryPoint& point : a.memory.timeline) point.seconds /= steps;
  }
  for (OperationCost& c : costs)
    if (c.calls > 0) a.operations.push_back(std::move(c));
  std::stable_sort(
      a.operations.begin(), a.operations.end(),
      [](const OperationCost& x, const OperationCost& y) { return x.seconds > y.seconds; });
  if (measured.dtype.empty()) measured.dtype = main_dtype(a.operations);
  a.devices = devices_of(a.operations, a.memory);
  a.measured = std::move(measured);
  a.suggestions = suggest(a);
  return a;
}

}  // namespace paddle::profile
