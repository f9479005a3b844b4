#include "tune/schedule_search.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "compiler/codegen/compiled_fusion.h"
#include "compiler/codegen/compiler.h"
#include "tensor/random.h"
#include "tune/timed_kernel.h"

namespace paddle::tune {
namespace {

using Clock = std::chrono::steady_clock;
using codegen::Schedule;

constexpr int64_t kMaxElements = int64_t{1} << 28;  ///< of an operand

class ForcedSchedule final : public codegen::ScheduleHook {
 public:
  explicit ForcedSchedule(Schedule schedule) : schedule_(schedule) {}
  std::optional<Schedule> choose(const FusedRequest&, const codegen::ScheduledGroup&) override {
    return schedule_;
  }

 private:
  Schedule schedule_;
};

/// Elements from the first to the last one of a layout; nothing for those with negative strides.
std::optional<int64_t> extent(const Layout& layout) {
  int64_t last = 0;
  for (size_t axis = 0; axis < layout.shape.size(); ++axis) {
    if (layout.shape[axis] == 0) return 1;
    if (layout.strides[axis] < 0) return std::nullopt;
    last += (layout.shape[axis] - 1) * layout.strides[axis];
    if (last > kMaxElements) return std::nullopt;
  }
  return last + 1;
}

/// Made-up operands of a group, and its results.
class GroupBuffers {
 public:
  /// Nothing if the group cannot be run alone.
  static std::optional<GroupBuffers> of(const FusedRequest& request) {
    GroupBuffers out;
    for (const auto* list : {&request.operands, &request.results})
      for (const Layout& layout : *list) {
        const auto elements = extent(layout);
        if (!elements) return std::nullopt;
        out.arrays_.push_back(Array::zeros(layout.dtype, {*elements}));
        Array& array = out.arrays_.back();
        if (layout.dtype == DType::kF32)
          Random(11, out.arrays_.size())
              .fill_normal(std::span(array.data<float>(), static_cast<size_t>(*elements)));
        (list == &request.operands ? out.operands_ : out.results_).push_back(array.raw());
      }
    return out;
  }
  void* const* operands() const { return operands_.data(); }
  void* const* results() const { return results_.data(); }

 private:
  std::vector<Array> arrays_;
  std::vector<void*> operands_, results_;
};

/// A group compiled with a schedule.
TimedKernel compile(const FusedRequest& request, const Schedule& schedule,
                    codegen::Compiler& compiler, const GroupBuffers& buffers) {
  ForcedSchedule forced(schedule);
  const codegen::ScheduleHookScope scope(&forced);
  return {codegen::prepare_compiled_group(request, compiler), buffers.operands(),
          buffers.results()};
}

/// Changes of a schedule in one of its parts.
std::vector<std::vector<Schedule>> moves(const Schedule& s, const codegen::ScheduledGroup& group) {
  std::vector<std::vector<Schedule>> out(1);
  for (const int unroll : {2, 4, 8}) {
    out[0].push_back(s);
    out[0].back().unroll = unroll;
  }
  if (group.reduces) return out;
  // From tasks of some thousand elements to none in parallel.
  out.emplace_back();
  for (const int64_t grain : {2048, 8192, 32768, 131072, 1 << 30}) {
    out.back().push_back(s);
    out.back().back().grain = grain;
  }
  if (!group.packs) return out;
  out.emplace_back();
  for (const int64_t tile : {256, 1024}) {
    out.back().push_back(s);
    out.back().back().tile = tile;
  }
  return out;
}

/// The best schedule, part by part; the default if nothing beats it beyond noise.
Schedule best_schedule(const GroupProblem& problem, codegen::Compiler& compiler,
                       const std::function<bool()>& stop) {
  Schedule best;
  const auto buffers = GroupBuffers::of(problem.request);
  if (!buffers) return best;
  const size_t parts = moves(best, problem.group).size();
  for (size_t part = 0; part < parts && !stop(); ++part) {
    const std::vector<Schedule> candidates = moves(best, problem.group)[part];
    for (const Schedule& candidate : candidates) {
      if (stop()) break;
      TimedKernel usual = compile(problem.request, best, compiler, *buffers);
      TimedKernel other = compile(problem.request, candidate, compiler, *buffers);
      if (!usual.usable() || !other.usable()) return {};
      if (race_kernels(usual, other).verdict == Verdict::kFaster) best = candidate;
    }
  }
  return best;
}

}  // namespace

std::optional<Schedule> GroupRecorder::choose(const FusedRequest& request,
                                              const codegen::ScheduledGroup& group) {
  if (codegen::ScheduleTable::of_process().find(group.key)) return std::nullopt;
  GroupProblem& p = problems_[group.key];
  if (p.uses++ == 0) {
    p.request = request;
    p.request.policy.choices = nullptr;
    // Operands are made up; the memory of constants may be gone by then.
    for (Layout& layout : p.request.operands) layout.constant = nullptr;
    p.group = group;
  }
  return std::nullopt;
}

std::vector<GroupProblem> GroupRecorder::take() {
  std::vector<GroupProblem> out;
  for (auto& [key, problem] : problems_) out.push_back(std::move(problem));
  problems_.clear();
  return out;
}

bool ScheduleSearch::find(const std::vector<GroupProblem>& problems, double seconds) {
  if (searched_) return !found_.schedules.empty();
  searched_ = true;
  const auto begin = Clock::now();
  // Candidates are not kept: the cache on disk is for code that runs again.
  codegen::Compiler compiler("", Module::default_path("codegen"));
  // The most costly groups first, so that the time goes where it matters.
  std::vector<std::pair<double, const GroupProblem*>> order;
  for (const GroupProblem& p : problems) {
    if (seconds_since(begin) > seconds / 3) break;
    const auto buffers = GroupBuffers::of(p.request);
    if (!buffers) continue;
    TimedKernel usual = compile(p.request, {}, compiler, *buffers);
    if (usual.usable()) order.emplace_back(usual.block() * static_cast<double>(p.uses), &p);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto stop = [&] { return seconds_since(begin) > seconds; };
  for (const auto& [cost, problem] : order) {
    if (stop()) break;
    if (const Schedule best = best_schedule(*problem, compiler, stop); best != Schedule{})
      found_.schedules[problem->group.key] = best;
  }
  return !found_.schedules.empty();
}

std::string ScheduleSearch::publish() const {
  codegen::ScheduleTable& table = codegen::ScheduleTable::of_process();
  table.keep(found_.schedules);
  return table.path();
}

std::optional<Schedule> ScheduleSearch::Found::choose(const FusedRequest&,
                                                      const codegen::ScheduledGroup& group) {
  const auto it = schedules.find(group.key);
  if (it == schedules.end()) return std::nullopt;
  return it->second;
}

}  // namespace paddle::tune
