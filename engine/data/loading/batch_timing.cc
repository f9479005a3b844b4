#include "data/loading/batch_timing.h"

#include <algorithm>
#include <numeric>

namespace paddle::data {

double BatchTiming::Last::ranked(size_t rank) const {
  std::array<double, kWindow> sorted = seconds;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(rank), sorted.end());
  return sorted[rank];
}

void BatchTiming::note_using(double seconds) { using_.note(seconds); }

void BatchTiming::note_making(double seconds) {
  making_.note(seconds);
  if (++since_change_ < kWindow || using_.count < kWindow) return;
  const double between = using_.ranked(kWindow / 2);
  bool wanted = caller_makes_;
  if (caller_makes_) {
    const double sum = std::accumulate(making_.seconds.begin(), making_.seconds.end(), 0.0);
    wanted = sum / kWindow <= 0.04 * between;
  } else {
    // One of them may have been interrupted.
    wanted = making_.ranked(kWindow - 2) < 0.02 * between;
  }
  if (wanted != caller_makes_) since_change_ = 0;
  caller_makes_ = wanted;
}

}  // namespace paddle::data
