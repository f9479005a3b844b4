#pragma once
// How many threads a function runs on where other programs use the same cores. With several
// threads each parallel region waits for the last of them, and on a busy machine that one may not
// be scheduled for milliseconds; a single thread then takes a fraction of the time. The choice
// follows measurements of the runs themselves.

#include <cstdint>

namespace paddle::runtime {

class ThreadChoice {
 public:
  /// Whether the next run should use one thread.
  bool single() const { return single_ != probing_; }
  /// Whether the next run should be timed, which costs over a microsecond: of short runs few are.
  bool measures() {
    if (skipped_ == skip_) return true;
    ++skipped_;
    return false;
  }
  /// Notes a run that was timed: its wall time and the CPU time of the calling thread in it, in
  /// seconds. A caller that waits a lot for other threads, or is not scheduled itself, is on a busy
  /// machine.
  void record(double wall, double cpu);

 private:
  void record_several(double wall, double cpu);
  void record_single(double wall);

  bool single_ = false;
  bool probing_ = false;          ///< the next run tries the other number of threads
  double waiting_ = 0;            ///< share of the time that the caller waits, averaged
  double lost_ = 0;               ///< seconds of waiting in the present state
  double several_ = 0, one_ = 0;  ///< seconds of a run, averaged
  int64_t runs_ = 0;              ///< that were timed in the present state
  int skip_ = 0, skipped_ = 0;    ///< runs to leave out before the next one that is timed
  int64_t probe_interval_ =
      kMinProbeInterval;  ///< runs before the other number of threads is tried again

  static constexpr int64_t kMinProbeInterval = 32, kMaxProbeInterval = 1024;
};

}  // namespace paddle::runtime
