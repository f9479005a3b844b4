// `--benchmark N`: steps on batches that are in memory, timed one by one.

#include <sys/resource.h>

#include <algorithm>

#include "base/interrupt.h"
#include "train/trainer_impl.h"

namespace paddle::train {

BenchmarkResult Trainer::Impl::benchmark() {
  if (profile_) profile_->recording = false;  // not while warming up
  std::vector<data::Batch> batches;
  for (int i = 0; i < 4; ++i) {
    auto batch = loader_->next();
    if (!batch) fail(ErrorCode::kData, "the data has fewer batches than a benchmark rotates");
    batches.push_back(std::move(*batch));
  }
  BenchmarkResult r;
  std::vector<double> times;
  constexpr int64_t kWarmUp = 3;
  for (int64_t i = 0; i < kWarmUp + options_.benchmark; ++i) {
    if (profile_ && i == kWarmUp) profile_->recording = true;
    const auto begun = Clock::now();
    const double loss = train_batch(batches[static_cast<size_t>(i % 4)]);
    if (i >= kWarmUp) times.push_back(1e3 * seconds_since(begun));
    if (i == 0) r.first_loss = loss;
    r.last_loss = loss;
    ++state_.step;
    if (pending_interrupt()) break;
  }
  if (times.empty()) return r;  // stopped before the first
  std::sort(times.begin(), times.end());
  r.min_ms = times.front();
  r.median_ms = times[times.size() / 2];
  r.steps = static_cast<int64_t>(times.size());
  r.samples_per_second = 1e3 * static_cast<double>(config_.data.loader.batch_size) / r.median_ms;
  r.parameters = store_.parameter_count();
  if (!options_.eager) {
    const int64_t micro = std::max<int64_t>(1, config_.data.loader.batch_size / config_.accumulate);
    r.flops = session_->training_flops(batch_shapes(*loader_, micro)) *
              static_cast<double>(config_.accumulate);
  }
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  r.peak_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  return r;
}

}  // namespace paddle::train
