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
  /// Nothing if the group cannot be run on its own.
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

/// The best schedule, part by part; the default if nothing beats it beyond noise, and nothing if
/// there was no time to say.
std::optional<Schedule> best_schedule(const GroupProblem& problem, codegen::Compiler& compiler,
                                      const std::function<bool()>& stop) {
  Schedule best;
  const auto buffers = GroupBuffers::of(problem.request);
  if (!buffers) return best;
  const size_t parts = moves(best, problem.group).size();
  for (size_t part = 0; part < parts; ++part) {
    const std::vector<Schedule> candidates = moves(best, problem.group)[part];
    for (const Schedule& candidate : candidates) {
      if (stop()) return std::nullopt;
      TimedKernel usual = compile(problem.request, best, compiler, *buffers);
      TimedKernel other = compile(problem.request, candidate, compiler, *buffers);
      if (!usual.usable() || !other.usable()) return Schedule{};
      const ComparisonResult outcome = compare_kernels(usual, other, stop).outcome;
      if (outcome == ComparisonResult::kStopped) return std::nullopt;
      if (outcome == ComparisonResult::kFaster) best = candidate;
    }
  }
  return best;
}

}  // namespace

std::optional<Schedule> GroupRecorder::choose(const FusedRequest& request,
                                              const codegen::ScheduledGroup& group) {
  const auto chosen = inner_ ? inner_->choose(request, group) : std::nullopt;
  if (codegen::ScheduleTable::of_process().find(group.key)) return chosen;
  GroupProblem& p = problems_[group.key];
  if (p.uses++ == 0) {
    p.request = request;
    p.request.prepare.choices = nullptr;
    // Operands are made up; the memory of constants may be gone by then.
    for (Layout& layout : p.request.operands) layout.constant = nullptr;
    p.group = group;
  }
  return chosen;
}

std::vector<GroupProblem> GroupRecorder::problems() const {
  std::vector<GroupProblem> out;
  for (const auto& [key, problem] : problems_) out.push_back(problem);
  return out;
}

std::string ScheduleSearch::find(const std::vector<GroupProblem>& problems, const Budget& budget) {
  const auto begin = Clock::now();
  // Candidates are not kept: the cache on disk is for code that runs again.
  codegen::Compiler compiler("", Module::default_path("codegen"));
  // The most costly groups first, so that the time goes where it matters.
  std::vector<std::pair<double, const GroupProblem*>> order;
  for (const GroupProblem& p : problems) {
    if (findings_.knows(p.group.key)) continue;
    if (budget.stop() || seconds_since(begin) > budget.seconds / 3) break;
    const auto buffers = GroupBuffers::of(p.request);
    if (!buffers) continue;
    TimedKernel usual = compile(p.request, {}, compiler, *buffers);
    if (usual.usable()) order.emplace_back(usual.block() * static_cast<double>(p.uses), &p);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [cost, problem] : order) {
    const auto best = best_schedule(*problem, compiler, budget.stop);
    if (!best) break;
    findings_.add(problem->group.key, *best == Schedule{} ? "" : codegen::text(*best));
    budget.save();
  }
  return findings_.collect();
}

ScheduleSearch::Found* ScheduleSearch::open(const std::string& name) {
  const Findings::Table* const found = findings_.table(name);
  if (!found) return nullptr;
  const auto [it, added] = tables_.try_emplace(name);
  if (added)
    for (const auto& [key, text] : *found)
      if (const auto schedule = codegen::parse_schedule(text))
        it->second.schedules[key] = *schedule;
  return &it->second;
}

codegen::ScheduleHook* ScheduleSearch::hook(const std::string& name) { return open(name); }

std::string ScheduleSearch::publish(const std::string& name) {
  codegen::ScheduleTable& table = codegen::ScheduleTable::of_process();
  if (const Found* const found = open(name)) table.keep(found->schedules);
  return table.path();
}

std::optional<Schedule> ScheduleSearch::Found::choose(const FusedRequest&,
                                                      const codegen::ScheduledGroup& group) {
  const auto it = schedules.find(group.key);
  if (it == schedules.end()) return std::nullopt;
  return it->second;
}

}  // namespace paddle::tune
