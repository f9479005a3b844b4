// Steps that are repeated to find where values stop being finite.

#include <algorithm>
#include <cmath>

#include "base/phase.h"
#include "runtime/execute.h"
#include "train/job/trainer_impl.h"
#include "train/runs/find_nonfinite.h"

namespace paddle::train {
namespace {

using Values = std::map<std::string, Array>;

/// Copies of the parameters and states.
Values copy_of(const program::ParameterStore& store) {
  Values out;
  for (const auto& [name, parameter] : store.parameters)
    out.emplace(name, runtime::copied(parameter.value));
  for (const auto& [name, state] : store.states) out.emplace(name, runtime::copied(state));
  return out;
}

void put_back(const Values& values, program::ParameterStore& store) {
  for (const auto& [name, value] : values) store.array(name) = value;
}

bool is_finite(const program::ParameterStore& store) {
  const auto finite = [](const Array& array) { return !count_nonfinite(array).any(); };
  return std::all_of(store.parameters.begin(), store.parameters.end(),
                     [&](const auto& each) { return finite(each.second.value); }) &&
         std::all_of(store.states.begin(), store.states.end(), [&](const auto& each) {
           return !program::is_model_state(each.first) || finite(each.second);
         });
}

}  // namespace

NonFiniteSearch Trainer::Impl::find_nonfinite(const std::string& checkpoint, int64_t last_step,
                                              double max_seconds) {
  const Phase phase("searching for values that are not finite");
  go_to(checkpoint);
  session_->shards().take_parts();
  const auto begun = Clock::now();
  const int64_t last = last_step > 0 ? std::min(last_step, total_steps()) : total_steps();
  NonFiniteSearch out;
  for (; state_.step < last; ++state_.step) {
    if (stop_signal() || (max_seconds > 0 && seconds_since(begun) > max_seconds)) {
      out.was_stopped = true;
      break;
    }
    const std::optional<data::Batch> batch = loader_->next();
    if (!batch) break;
    out.step = state_.step + 1;
    const Values before = copy_of(store_);
    if (std::isfinite(train_batch(*batch)) && is_finite(store_)) {
      if (batch->last_of_epoch) store_.reset_sequences();
      continue;
    }
    put_back(before, store_);
    out.origin = session_->replay().find_nonfinite(batch->arrays, next_scalars());
    break;
  }
  return out;
}

}  // namespace paddle::train
