// `--benchmark N`: steps on batches that are in memory, timed one by one, or on those that the
// loader makes.

#include <algorithm>

#include "base/resident_memory.h"
#include "base/span.h"
#include "train/job/trainer_impl.h"
#include "train/session/batch_sizes.h"

namespace paddle::train {

void Trainer::Impl::begin_timing() {
  if (profile_) {
    profile_->recording = true;
    communicator_->record_exchanges();
  }
  communicator_->reset_costs();
}

std::vector<double> Trainer::Impl::steps_in_memory(BenchmarkResult& r) {
  std::vector<data::Batch> batches;
  for (int i = 0; i < 4; ++i) {
    auto batch = loader_->next();
    if (!batch) fail(ErrorCode::kData, "the data has fewer batches than a benchmark rotates");
    batches.push_back(std::move(*batch));
  }
  std::vector<double> times;
  constexpr int64_t kWarmUp = 3;
  for (int64_t i = 0; i < kWarmUp + options_.benchmark; ++i) {
    if (i == kWarmUp) begin_timing();
    const auto begun = Clock::now();
    const double loss = train_batch(batches[static_cast<size_t>(i % 4)]);
    if (i >= kWarmUp) times.push_back(1e3 * seconds_since(begun));
    if (i == 0) r.first_loss = loss;
    r.last_loss = loss;
    ++state_.step;
    if (stop_signal()) break;
  }
  return times;
}

TimedStep Trainer::Impl::timed_step() {
  TimedStep step;
  step.begin = steady_nanoseconds();
  std::optional<data::Batch> batch;
  {
    const Span span("wait for data");
    batch = loader_->next();
  }
  if (!batch) fail(ErrorCode::kData, "the data ends after ", state_.step, " batches");
  step.loaded = steady_nanoseconds();
  {
    const Span span("step");
    step.loss = train_batch(*batch);
  }
  step.end = steady_nanoseconds();
  step.samples = batch->samples;
  if (batch->last_of_epoch) store_.reset_sequences();
  ++state_.step;
  return step;
}

RecordedStep Trainer::Impl::recorded_step() {
  const std::optional<data::Batch> batch = loader_->next();
  if (!batch) fail(ErrorCode::kData, "the data ends after ", state_.step, " batches");
  RecordedStep out;
  out.fields = batch->arrays;
  out.loss = train_batch(*batch);
  out.learning_rates = rates_;
  if (batch->last_of_epoch) store_.reset_sequences();
  out.step = ++state_.step;
  return out;
}

std::vector<double> Trainer::Impl::loaded_steps(BenchmarkResult& r) {
  std::vector<double> times;
  const int64_t warm_up = *options_.loaded_warm_up;
  for (int64_t i = 0; i < warm_up + options_.benchmark && !stop_signal(); ++i) {
    if (i == warm_up) begin_timing();
    const TimedStep step = timed_step();
    if (i == 0) r.first_loss = step.loss;
    r.last_loss = step.loss;
    if (i < warm_up) continue;
    times.push_back(static_cast<double>(step.end - step.loaded) * 1e-6);
    r.loaded.push_back(step);
  }
  return times;
}

BenchmarkResult Trainer::Impl::benchmark() {
  if (profile_) profile_->recording = false;  // not while warming up
  BenchmarkResult r;
  std::vector<double> times = options_.loaded_warm_up ? loaded_steps(r) : steps_in_memory(r);
  if (communicator_->size() > 1) r.communication = communicator_->gather_costs();
  if (times.empty()) return r;  // stopped before the first
  std::sort(times.begin(), times.end());
  r.min_ms = times.front();
  r.median_ms = times[times.size() / 2];
  r.steps = static_cast<int64_t>(times.size());
  r.samples_per_second = 1e3 * static_cast<double>(config_.data.loader.batch_size) / r.median_ms;
  r.parameters = parameter_count();
  if (!options_.eager) {
    const int64_t micro = largest_micro_batch(config_.data.loader.batch_size, config_.accumulate);
    r.flops = session_->compiler().training_flops(batch_shapes(*loader_, micro)) *
              static_cast<double>(config_.accumulate);
  }
  r.peak_bytes = peak_resident_bytes();
  return r;
}

}  // namespace paddle::train
