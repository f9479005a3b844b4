#include "tune/kernel_search.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/files.h"
#include "tensor/random.h"
#include "tune/timed_kernel.h"

namespace paddle::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMaxBytes = int64_t{1} << 30;  ///< of the operands and results of a problem

/// Names one alternative at one level.
class ForcedChoice final : public KernelChoices {
 public:
  ForcedChoice(ChoiceLevel level, std::string name) : level_(level), name_(std::move(name)) {}
  std::string choose(const KernelRequest&, ChoiceLevel level,
                     std::span<const std::string>) override {
    return level == level_ ? name_ : "";
  }

 private:
  ChoiceLevel level_;
  std::string name_;
};

/// Whether the problem can be run on made-up operands.
bool can_run_alone(const KernelProblem& p) {
  if (p.op->has(kRunTimeShape) || p.op->has(kOptimizerUpdate) || p.op->has(kControlFlow))
    return false;
  int64_t bytes = 0;
  for (const auto* list : {&p.operands, &p.results})
    for (const Layout& l : *list) {
      if (!l.present) continue;
      if (!l.is_contiguous() || l.offset != 0) return false;
      bytes += storage_bytes(l.dtype, l.size());
    }
  return bytes <= kMaxBytes;
}

/// Operands and results of a problem in memory: normal numbers in float32, zeros in others.
class Buffers {
 public:
  explicit Buffers(const KernelProblem& p) {
    for (const Layout& l : p.operands) {
      operands_.push_back(nullptr);
      if (!l.present) continue;
      if (l.constant) {
        operands_.back() = const_cast<void*>(l.constant);
        continue;
      }
      arrays_.push_back(Array::zeros(l.dtype, l.shape));
      if (l.dtype == DType::kF32)
        Random(7, arrays_.size())
            .fill_normal(std::span(arrays_.back().data<float>(), static_cast<size_t>(l.size())));
      operands_.back() = arrays_.back().raw();
    }
    for (const Layout& l : p.results) {
      results_.push_back(nullptr);
      if (!l.present) continue;
      arrays_.push_back(Array::zeros(l.dtype, l.shape));
      results_.back() = arrays_.back().raw();
    }
  }
  void* const* operands() const { return operands_.data(); }
  void* const* results() const { return results_.data(); }

 private:
  std::vector<Array> arrays_;
  std::vector<void*> operands_, results_;
};

TimedKernel prepare(const KernelProblem& p, KernelChoices* choices, const Buffers& buffers) {
  PrepareOptions options = p.prepare;
  options.choices = choices;
  return {prepare_kernel({*p.op, p.attrs, p.operands, p.results, p.target, options}),
          buffers.operands(), buffers.results()};
}

/// The fastest alternative that beats the default beyond noise; "" if none does, nothing if there
/// was no time to say.
std::optional<std::string> best_alternative(const KernelProblem& p, const Buffers& buffers,
                                            TimedKernel& usual, const std::function<bool()>& stop) {
  std::string best;
  double best_gain = 0;
  for (const std::string& name : p.names) {
    ForcedChoice forced(p.level, name);
    TimedKernel other = prepare(p, &forced, buffers);
    if (!other.usable() || other.implementation() == usual.implementation()) continue;
    const Comparison result = compare_kernels(usual, other, stop);
    if (result.outcome == ComparisonResult::kStopped) return std::nullopt;
    if (result.outcome != ComparisonResult::kFaster || result.gain.mean <= best_gain) continue;
    best = name;
    best_gain = result.gain.mean;
  }
  return best;
}

}  // namespace

std::string KernelRecorder::choose(const KernelRequest& request, ChoiceLevel level,
                                   std::span<const std::string> names) {
  auto [it, added] = problems_.try_emplace(runtime::problem_text(request, level));
  KernelProblem& p = it->second;
  ++p.uses;
  const std::string chosen = inner_ ? inner_->choose(request, level, names) : "";
  if (!added) return chosen;
  p.op = &request.op;
  p.attrs = request.attrs;
  p.operands.assign(request.operands.begin(), request.operands.end());
  p.results.assign(request.results.begin(), request.results.end());
  p.target = request.target;
  p.prepare = request.prepare;
  p.prepare.choices = nullptr;
  p.level = level;
  p.names.assign(names.begin(), names.end());
  for (Layout& l : p.operands) {
    if (!l.constant || !l.is_contiguous() || l.offset != 0) continue;
    const auto bytes = static_cast<size_t>(storage_bytes(l.dtype, l.size()));
    p.constants.push_back(Storage::allocate(std::max<size_t>(64, bytes)));
    std::memcpy(p.constants.back()->data(), l.constant, bytes);
    l.constant = p.constants.back()->data();
  }
  return chosen;
}

std::vector<KernelProblem> KernelRecorder::problems() const {
  std::vector<KernelProblem> out;
  for (const auto& [text, problem] : problems_) out.push_back(problem);
  return out;
}

std::string KernelSearch::find(const std::vector<KernelProblem>& problems, const Budget& budget) {
  const auto begin = Clock::now();
  // The most costly problems first, so that the time goes where it matters.
  struct Entry {
    const KernelProblem* problem;
    std::string text;
    double seconds;
  };
  std::vector<Entry> order;
  for (const KernelProblem& p : problems) {
    std::string text = runtime::problem_text(
        {*p.op, p.attrs, p.operands, p.results, p.target, p.prepare}, p.level);
    if (findings_.knows(text) || !can_run_alone(p)) continue;
    if (budget.stop() || seconds_since(begin) > budget.seconds / 3) break;
    const Buffers buffers(p);
    TimedKernel usual = prepare(p, nullptr, buffers);
    if (usual.usable())
      order.push_back({&p, std::move(text), usual.block() * static_cast<double>(p.uses)});
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Entry& a, const Entry& b) { return a.seconds > b.seconds; });
  for (const Entry& entry : order) {
    if (budget.stop()) break;
    const KernelProblem& p = *entry.problem;
    const Buffers buffers(p);
    TimedKernel usual = prepare(p, nullptr, buffers);
    const auto best = best_alternative(p, buffers, usual, budget.stop);
    if (!best) break;
    findings_.add(entry.text, *best);
    budget.save();
  }
  return findings_.collect();
}

runtime::KernelTable* KernelSearch::open(const std::string& name) {
  const Findings::Table* const found = findings_.table(name);
  if (!found) return nullptr;
  const auto [it, added] = tables_.try_emplace(name);
  if (added)
    for (const auto& [problem, choice] : *found) it->second.set(problem, choice);
  return &it->second;
}

KernelChoices* KernelSearch::table(const std::string& name) { return open(name); }

std::string KernelSearch::publish(const std::string& name, const std::string& folder) {
  if (const runtime::KernelTable* const table = open(name))
    write_file_atomically((std::filesystem::path(folder) / name).string(), table->text());
  return name;
}

}  // namespace paddle::tune
