// Running statistics of norms for averaged weights: means over the training batches, computed
// before these weights are evaluated or saved.

#include <algorithm>

#include "base/phase.h"
#include "runtime/execute.h"
#include "train/job/averages.h"
#include "train/job/trainer_impl.h"

namespace paddle::train {
namespace {

/// The mean of arrays of one shape.
class MeanOfArrays {
 public:
  void add(const Array& array) {
    sum_.resize(static_cast<size_t>(array.size()));
    for (size_t i = 0; i < sum_.size(); ++i) sum_[i] += array.number(static_cast<int64_t>(i));
    ++count_;
  }
  Array mean(DType dtype, const Dims& shape) const {
    std::vector<double> out = sum_;
    for (double& each : out) each /= static_cast<double>(count_);
    return Array::from<double>(out, shape).cast(dtype);
  }

 private:
  std::vector<double> sum_;
  int64_t count_ = 0;
};

}  // namespace

void Trainer::Impl::open_running_statistics() {
  std::string owner = "train.swa";
  bool averages = config_.swa.has_value();
  for (const OptimizerConfig& each : config_.optimizers) {
    const optim::Optimizer optimizer(each.options);
    if (!optimizer.has_evaluation_weights()) continue;
    owner = optimizer.name();
    averages = true;
  }
  if (!averages) return;
  const StepAnalysis::RunningStatistics found = session_->analysis().running_statistics();
  for (const std::string& place : found.others)
    observer_.warn(str(owner, ": ", place,
                       ": the running statistics of a batch_norm in a branch or a loop stay those "
                       "of the trained weights"));
  for (const std::string& name : found.states) {
    store_.states.emplace(evaluation_state(name), runtime::copied(store_.states.at(name)));
    running_statistics_.push_back(name);
  }
}

std::optional<std::map<std::string, Array>> Trainer::Impl::averaged_statistics() {
  if (stop_signal()) return std::nullopt;
  const Phase phase("computing running statistics of averaged weights");
  std::map<std::string, MeanOfArrays> means;
  {
    const program::NewSequence sequence(store_);
    const AveragesInUse averages(store_);
    const std::unique_ptr<data::Loader> loader = loader_->again();
    int64_t number = 0;
    for (bool last = false; !last;) {
      const std::optional<data::Batch> batch = loader->next();
      if (!batch || batch->epoch > 0) break;
      last = batch->last_of_epoch;
      for (const std::vector<Array>& part : micro_batches(*batch))
        for (const auto& [name, value] : session_->batch_statistics(part, ++number))
          means[name].add(value);
      if (stop_signal()) return std::nullopt;
    }
  }
  std::map<std::string, Array> out;
  for (const std::string& name : running_statistics_)
    if (const auto it = means.find(name); it != means.end()) {
      const Array& trained = store_.states.at(name);
      out.emplace(name, it->second.mean(trained.dtype, trained.shape));
    }
  return out;
}

bool Trainer::Impl::update_running_statistics() {
  if (running_statistics_.empty() || statistics_step_ == state_.step) return true;
  const auto begun = Clock::now();
  const bool averages = state_.step >= (config_.swa ? step_->definition().average->start : 1);
  std::optional<std::map<std::string, Array>> values;
  if (averages) values = averaged_statistics();
  for (const std::string& name : running_statistics_) {
    Array& target = store_.states.at(evaluation_state(name));
    const bool has_value = values && values->contains(name);
    target = has_value ? values->at(name) : runtime::copied(store_.states.at(name));
  }
  window_start_ += Clock::now() - begun;
  if (averages && !values) return false;
  statistics_step_ = state_.step;
  written_ = false;
  return true;
}

}  // namespace paddle::train
