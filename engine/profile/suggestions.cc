// Suggestions: the time that each could save, predicted from the measured peaks and times.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/parallel.h"
#include "base/text.h"
#include "profile/analysis.h"

namespace paddle::profile {
namespace {

/// Gains below this share of the step are within the noise of a measurement.
constexpr double kMin = 0.02;

std::string percent(double share) { return fmt::format("{:.0f}%", 100 * share); }

std::string milliseconds(double seconds) { return fmt::format("{:.3g} ms", 1e3 * seconds); }

bool is_product(const std::string& operation) {
  for (const char* name : {"matmul", "linear", "conv", "lstm", "gru", "attention"})
    if (operation.find(name) != std::string::npos) return true;
  return false;
}

}  // namespace

std::vector<Suggestion> suggest(const Analysis& a) {
  std::vector<Suggestion> out;
  const double total = a.wall + a.waiting;
  if (total <= 0) return out;
  const Peaks& peaks = a.measured.peaks;
  const auto add = [&](double seconds, std::string title, std::string reason) {
    if (seconds / total >= kMin)
      out.push_back({seconds / total, std::move(title), std::move(reason)});
  };
  if (a.measured.training) {
    const double steps = a.steps();
    const int useful =
        std::max(a.measured.loader_workers + 1,
                 static_cast<int>(std::ceil(1.1 * a.batch_seconds * steps / a.wall)));
    const std::string reason =
        str("the step waits ", percent(a.waiting / total), " of the time for data; a batch takes ",
            milliseconds(a.batch_seconds), " to make on one thread, a step takes ",
            milliseconds(a.wall / steps));
    add(a.waiting, str("set data.workers to ", useful), reason);
  }

  // The rank that the others wait for: at best all take the mean of what they compute.
  double most = 0, sum = 0;
  int slowest = 0;
  for (const RankShare& s : a.measured.shares) {
    const double own = s.wall - s.waiting;
    sum += own;
    if (own > most) {
      most = own;
      slowest = s.rank;
    }
  }
  if (!a.measured.shares.empty()) {
    const double mean = sum / static_cast<double>(a.measured.shares.size());
    add(most - mean, str("give rank ", slowest, " less to do, or its own cores"),
        str("it is busy for ", milliseconds(most / a.steps()), " of a step, the ranks for ",
            milliseconds(mean / a.steps()), " in the mean; the others wait for it"));
  }

  // Instructions that are too short for the machine: their time beyond the peaks is overhead.
  double short_time = 0, short_bound = 0;
  int64_t short_calls = 0, calls = 0;
  double products = 0;
  for (const OperationCost& c : a.operations) {
    calls += c.calls;
    const double each = c.seconds / static_cast<double>(c.calls);
    if (each < 20e-6) {
      short_time += c.seconds;
      short_bound += roofline_seconds(c.flops, c.bytes, peaks);
      short_calls += c.calls;
    }
    if (is_product(c.operation) && c.shapes.starts_with("float32")) products += c.seconds;
  }
  add(short_time - short_bound,
      a.measured.training ? "raise data.batch_size" : "predict more samples at a time (--batch)",
      str(short_calls, " of ", calls, " calls take less than 20 us each, ",
          percent(short_time / total),
          " of the time together; their arithmetic and memory traffic account for ",
          percent(short_bound / total)));
  if (a.measured.bfloat16_gflops > 1.2 * peaks.gflops)
    add(products * (1 - peaks.gflops / a.measured.bfloat16_gflops),
        a.measured.training ? "train in mixed precision (precision: bfloat16)"
                            : "use a model in bfloat16, or int8 (paddle-quant)",
        str("float32 products take ", percent(products / total),
            " of the time, and this machine multiplies bfloat16 ",
            static_cast<int64_t>(10 * a.measured.bfloat16_gflops / peaks.gflops) / 10.0,
            " times as fast as float32"));
  if (const int cores = available_cores(); a.measured.ranks == 1 && a.measured.threads < cores) {
    const double share = 1 - static_cast<double>(a.measured.threads) / cores;
    add(0.7 * share * a.operation_seconds(), str("use ", cores, " threads (--threads ", cores, ")"),
        str("the run uses ", a.measured.threads, " of ", cores,
            " cores; 70% of the ideal speedup is assumed"));
  }

  // The instructions that are furthest from the roofline, as candidates for other kernels.
  std::vector<const OperationCost*> slow;
  for (const OperationCost& c : a.operations)
    if (c.seconds / static_cast<double>(c.calls) >= 20e-6 && !c.operation.starts_with("comm."))
      slow.push_back(&c);
  const auto excess = [&](const OperationCost* c) {
    return c->seconds - 2 * roofline_seconds(c->flops, c->bytes, peaks);
  };
  std::stable_sort(slow.begin(), slow.end(),
                   [&](const auto* x, const auto* y) { return excess(x) > excess(y); });
  slow.resize(std::min<size_t>(slow.size(), 5));
  for (const OperationCost* c : slow) {
    Cost cost;
    cost.add(*c);
    add(excess(c),
        str("look at ", c->operation, c->layer.empty() ? "" : " in " + c->layer, " (", c->phase,
            ")"),
        str(c->implementation, " reaches ", percent(share_of_peak(cost, peaks)),
            " of this machine's peak on ", c->shapes,
            "; half of the peak would save this much. paddle op bench times the alternatives"));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Suggestion& x, const Suggestion& y) { return x.gain > y.gain; });
  return out;
}

}  // namespace paddle::profile
