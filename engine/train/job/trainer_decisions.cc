// Decisions of evaluations and the clock: the best checkpoint, an early end, and rates that fall
// where a metric stops improving.

#include <cmath>
#include <filesystem>

#include "base/files.h"
#include "base/phase.h"
#include "program/saved_model.h"
#include "train/job/averages.h"
#include "train/job/trainer_impl.h"
#include "train/weights/peft_files.h"

namespace paddle::train {

namespace fs = std::filesystem;

double Trainer::Impl::value_of(const LogLine& line, const std::string& metric) {
  for (const auto& [name, value] : line.metrics)
    if (name == metric) return value;
  return line.loss;
}

void Trainer::Impl::keep_best(const LogLine& line) {
  const WatchedMetric& metric = config_.best;
  if (metric.name.empty()) return;
  const double value = value_of(line, metric.name);
  if (!std::isfinite(value)) {
    observer_.warn(str("train.best: ", metric.name, " is ", format_double(value), " at step ",
                       state_.step, ", which is never the best"));
    return;
  }
  if (state_.best && !(metric.larger_is_better ? value > *state_.best : value < *state_.best))
    return;
  state_.best = value;
  state_.best_step = state_.step;
  checkpoint();
  if (copies_weights()) complete_checkpoint();
  const program::ParameterStore saved = saved_store();
  if (communicator_->is_root()) write_best(saved);
}

bool Trainer::Impl::copies_weights() const {
  return communicator_->size() > 1 && config_.models.size() == 1 &&
         config_.models.front().name.empty() && !config_.adapters && !tables_apart_;
}

program::ParameterStore Trainer::Impl::saved_store() {
  if (copies_weights()) return session_->tables().with_tables(store_, Tables::Saved::kWeights);
  program::ParameterStore out = session_->shards().whole_store();
  if (communicator_->is_root()) swap_averages(out);
  return session_->tables().with_tables(out, Tables::Saved::kWeights);
}

void Trainer::Impl::write_saved_model(const std::string& path, const program::NamedModel& model,
                                      const program::ParameterStore& whole) const {
  const bool exported = &model == &config_.models.front();
  program::ParameterStore parameters = whole.of_model(model.name);
  if (config_.distillation) {
    const auto is_taught = [](const auto& each) { return is_of_teacher(each.first); };
    std::erase_if(parameters.parameters, is_taught);
    std::erase_if(parameters.states, is_taught);
  }
  if (config_.adapters) merge_adapters(parameters, *config_.adapters);
  program::write_model(path, config_.name, *model.program, config_.use_float64, parameters,
                       exported ? config_.quantization.get() : nullptr,
                       copies_weights() ? (fs::path(folder_.checkpoints()) /
                                           std::to_string(state_.step) / "model.safetensors")
                                              .string()
                                        : std::string());
  program::FieldUse use;
  if (exported)
    use = use_;
  else
    for (const lang::Input& input : model.program->model.inputs)
      use.inputs.push_back(input.name.text);
  program::write_metadata(path, config_.name, config_.document, loader_->fields(),
                          loader_->dataset(), use);
}

void Trainer::Impl::write_adapter_files(const program::ParameterStore& whole) const {
  write_adapters(folder_.file("adapter.safetensors"), whole, *config_.adapters);
  const std::string problem =
      write_peft_files(folder_.file("adapter"), whole, *config_.adapters, config_.init);
  if (!problem.empty()) observer_.warn("adapter/ is not written: " + problem);
}

void Trainer::Impl::write_best(const program::ParameterStore& whole) {
  const Phase phase("writing the best model");
  const fs::path place = folder_.file("best"), staged = folder_.file(".writing-best");
  std::error_code error;
  fs::remove_all(staged, error);
  write_saved_model(staged.string(), config_.models.front(), whole);
  fs::remove_all(place, error);
  fs::rename(staged, place, error);
  if (error) fail(ErrorCode::kDevice, place.string(), ": ", error.message());
}

void Trainer::Impl::update_early_stopping(const LogLine& line) {
  if (config_.early_stop) {
    const EarlyStop& stop = *config_.early_stop;
    program::Watch& watch = state_.early_stop;
    const double value = value_of(line, stop.metric.name);
    const auto improves = [&](double best) {
      return stop.metric.larger_is_better ? value > best + stop.min_delta
                                          : value < best - stop.min_delta;
    };
    if (std::isfinite(value) && (!watch.best || improves(*watch.best))) {
      watch.best = value;
      watch.waited = 0;
    } else {
      ++watch.waited;
    }
  }
  state_.plateaus.resize(config_.optimizers.size());
  for (size_t i = 0; i < config_.optimizers.size(); ++i) {
    const OptimizerConfig& optimizer = config_.optimizers[i];
    if (!optimizer.schedule.plateau) continue;
    program::Watch& watch = state_.plateaus[i];
    optim::PlateauState state{watch.best, watch.waited, watch.cooldown, watch.factor};
    const optim::PlateauOptions& plateau = *optimizer.schedule.plateau;
    const bool reduced = optim::update_plateau(plateau, value_of(line, plateau.metric), state);
    watch = {state.best, state.waited, state.cooldown, state.factor};
    if (reduced)
      observer_.note(str("step ", state_.step, ": ", plateau.metric, " has not improved for ",
                         plateau.patience + 1, " evaluations; ",
                         optimizer.name.empty() ? "" : optimizer.name + ": ", "learning rate ",
                         format_double(rate_of(optimizer, state_.step))));
  }
}

int64_t Trainer::Impl::last_wanted_step() const {
  if (options_.until_step > 0) return options_.until_step;
  if (!(options_.until_share > 0)) return 0;
  return std::max<int64_t>(1,
                           std::llround(options_.until_share * static_cast<double>(total_steps())));
}

bool Trainer::Impl::ended_early() {
  if (!end_reason_.empty()) return true;
  if (const auto& stop = config_.early_stop;
      stop && state_.early_stop.waited > 0 && state_.early_stop.waited >= stop->patience) {
    end_reason_ =
        str("stopped early at step ", state_.step, ": ", stop->metric.name,
            " has not improved for ", state_.early_stop.waited, " evaluations",
            state_.early_stop.best ? str("; its best is ", format_double(*state_.early_stop.best))
                                   : "");
  } else if (const int64_t until = last_wanted_step(); until > 0 && state_.step >= until) {
    end_reason_ = str("stopped at step ", state_.step, of_total(), ", as asked");
  } else if (config_.max_time > 0) {
    const double seconds = seconds_before_ + seconds_since(started_);
    // All ranks end at the same step.
    if (communicator_->max(seconds >= config_.max_time ? 1 : 0) != 0)
      end_reason_ = str("stopped at step ", state_.step, " after train.max_time");
  }
  if (end_reason_.empty()) return false;
  observer_.note(end_reason_);
  return true;
}

}  // namespace paddle::train
