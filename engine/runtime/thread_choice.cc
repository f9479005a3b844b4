#include "runtime/thread_choice.h"

#include <algorithm>

namespace paddle::runtime {
namespace {

/// An average that forgets about what was eight runs ago.
void average(double& value, double next, int64_t runs) {
  constexpr double kShare = 0.2;
  value = runs == 0 ? next : value + kShare * (next - value);
}

constexpr int64_t kEnough = 8;        // runs before a decision
constexpr double kMuchWaiting = 0.3;  // of the time; on a quiet machine it is below a tenth
constexpr double kFaster = 0.9;
constexpr int64_t kFew = 3;  // runs after which a trial that is much slower ends
constexpr double kMuchSlower = 1.5;
constexpr double kMinLostSeconds =
    0.05;                          // seconds of waiting; a plan for one thread takes time, too
constexpr double kShort = 200e-6;  // seconds of a run of which only one in kSkip + 1 is timed
constexpr int kSkip = 15;

}  // namespace

void ThreadChoice::record(double wall, double cpu) {
  if (wall <= 0) return;
  if (single_ != probing_)
    record_single(wall);
  else
    record_several(wall, cpu);
  skipped_ = 0;
  skip_ = wall < kShort && !probing_ ? kSkip : 0;
}

void ThreadChoice::record_several(double wall, double cpu) {
  if (probing_) {  // one run among those on one thread
    probing_ = false;
    runs_ = 0;
    if (wall < kFaster * one_) {
      single_ = false;
      several_ = wall;
      waiting_ = 0;
      probe_interval_ = kMinProbeInterval;
    } else {
      probe_interval_ = std::min(2 * probe_interval_, kMaxProbeInterval);
    }
    return;
  }
  average(several_, wall, runs_);
  average(waiting_, std::max(0.0, 1 - cpu / wall), runs_);
  lost_ += std::max(0.0, wall - cpu) * (1 + skipped_);
  ++runs_;
  if (runs_ < kEnough || waiting_ < kMuchWaiting || lost_ < kMinLostSeconds) return;
  if (runs_ < probe_interval_ && probe_interval_ > kMinProbeInterval) return;
  single_ = true;
  lost_ = 0;
  runs_ = 0;
}

void ThreadChoice::record_single(double wall) {
  average(one_, wall, runs_);
  ++runs_;
  const bool lost = runs_ == kFew && one_ > kMuchSlower * several_;
  if (lost || (runs_ == kEnough && one_ > kFaster * several_)) {  // nothing gained
    single_ = false;
    runs_ = 0;
    probe_interval_ = std::min(4 * probe_interval_, kMaxProbeInterval);
  } else if (runs_ >= probe_interval_) {
    probing_ = true;
  }
}

}  // namespace paddle::runtime
