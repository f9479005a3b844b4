// The weights that a run begins with.

#include <fmt/core.h>

#include <cmath>
#include <filesystem>

#include "base/files.h"
#include "train/job/trainer_impl.h"
#include "train/weights/optimizer_states.h"

namespace paddle::train {

void Trainer::Impl::open_packed_base() {
  if (!config_.adapters || !config_.adapters->weights_as) return;
  Adapters& adapters = *config_.adapters;
  if (config_.parallel.mesh().axis_size_of("tensor") > 1)
    fail(ErrorCode::kConfig, "lora.weights_as: packed matrices are not split over 'tensor'");
  adapters.base =
      std::make_shared<PackedBase>(config_.init.file, config_.init.rules, *adapters.weights_as);
}

int64_t Trainer::Impl::parameter_count() const {
  return train::parameter_count(store_, config_.adapters ? config_.adapters->base.get() : nullptr);
}

void Trainer::Impl::load_initial_tables(const std::string& file, program::LoadReport& report) {
  Tables& tables = session_->tables();
  const size_t before = report.unused.size();
  tables.remove_names(report.unused);
  const auto apart = std::filesystem::path(file).parent_path() / tables::kTablesFolder;
  const bool has_some = (report.unused.size() < before || is_directory(apart.string())) &&
                        file.ends_with(".safetensors");
  if (has_some)
    return tables.restore(tables.contents_of(formats::SafetensorsReader(file), nullptr));
  for (std::string& name : tables.names()) report.missing.push_back(std::move(name));
}

void Trainer::Impl::continue_run(const InitialWeights& init) {
  if (config_.optimizers.size() > 1 || !config_.optimizers[0].name.empty())
    fail(ErrorCode::kConfig, "init.optimizer: is for a run with one optimizer");
  const config::Node* const section = config_.document.find("optimizer");
  const auto number = [&](const char* key) {
    return section && section->find(key) ? config::Section(*section).real(key) : 0;
  };
  const ContinuedRun run = load_optimizer_states(init, *step_->definition().optimizers[0].optimizer,
                                                 number("beta1"), number("beta2"), store_);
  if (run.updates >= total_steps())
    fail(ErrorCode::kConfig, "init.optimizer: ", init.optimizer, " is of a run after ", run.updates,
         " updates, this one has ", total_steps(), " in all; raise train.epochs or train.steps");
  const int64_t per_epoch = loader_->batches_per_epoch();
  state_.step = run.updates;
  if (!config_.data.passes)
    state_.position = {.epoch = run.updates / per_epoch,
                       .sample = run.updates % per_epoch * config_.data.loader.batch_size};
  const double rate = learning_rate(state_.step);
  observer_.note(str("init.optimizer: ", init.optimizer, ": ", run.states,
                     " states; the run continues after update ", run.updates,
                     " with the learning rate ", fmt::format("{:.6g}", rate)));
  if (run.learning_rate &&
      std::abs(rate - *run.learning_rate) > 1e-6 * std::abs(*run.learning_rate))
    observer_.warn(
        str("init.optimizer: the learning rate of PaddlePaddle was ",
            fmt::format("{:.6g}, that of this config is {:.6g}", *run.learning_rate, rate)));
}

void Trainer::Impl::load_initial_weights() {
  for (const program::NamedModel& model : config_.models) {
    const bool teaches = config_.distillation && model.name == Distillation::kName;
    if (model.weights.empty() || options_.resume || (!options_.initial_weights.empty() && !teaches))
      continue;
    program::ParameterStore parameters = store_.of_model(model.name);
    const program::LoadReport report = load_weights(model.weights, parameters);
    program::check_report(report, model.weights, {}, {});
    store_.put_model(model.name, parameters);
    observer_.note(str("models.", model.name, ": ", model.weights, ": ", report.text()));
  }
  if (options_.initial_weights.empty() && !options_.resume && !config_.init.file.empty()) {
    InitialWeights init = config_.init;
    if (config_.adapters)
      for (const char* pattern : {"*.lora_a", "*.lora_b"}) init.allow_missing.emplace_back(pattern);
    if (config_.distillation) init.allow_missing.push_back(str(Distillation::kName, ".*"));
    for (std::string& name : session_->tables().names()) init.allow_unused.push_back(name);
    const PackedBase* const base = config_.adapters ? config_.adapters->base.get() : nullptr;
    program::LoadReport report = train::load_initial_weights(
        init, base, store_, [&](const std::string& line) { observer_.warn(line); });
    if (config_.distillation) std::erase_if(report.missing, is_of_teacher);
    load_initial_tables(init.file, report);
    program::check_report(report, init.file, init.allow_missing, init.allow_unused);
    observer_.note(str("init: ", config_.init.file, ": ", report.text()));
    if (!init.optimizer.empty()) continue_run(init);
  }
  if (options_.initial_weights.empty()) return;
  program::LoadReport report = load_weights(options_.initial_weights, store_);
  if (config_.distillation) std::erase_if(report.missing, is_of_teacher);
  load_initial_tables(options_.initial_weights, report);
  program::check_report(report, options_.initial_weights, options_.allow_missing,
                        options_.allow_unused);
  observer_.note("initial weights: " + report.text());
}

}  // namespace paddle::train
