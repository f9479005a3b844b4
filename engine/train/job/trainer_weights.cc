// The weights that a run begins with.

#include "train/job/trainer_impl.h"

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
  const bool has_some = report.unused.size() < before && file.ends_with(".safetensors");
  if (has_some)
    return tables.restore(tables.contents_of(formats::SafetensorsReader(file), nullptr));
  for (std::string& name : tables.names()) report.missing.push_back(std::move(name));
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
