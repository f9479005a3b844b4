// Setting up a run: the traced step, the memory plan, the run folder, and the lines that
// describe them.

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/parallel.h"
#include "base/phase.h"
#include "base/source_location.h"
#include "data/open_data.h"
#include "program/prediction.h"
#include "runtime/dump.h"
#include "runtime/kernel_table.h"
#include "train/resume.h"
#include "train/run_record.h"
#include "train/trainer_impl.h"

namespace paddle::train {
namespace {

namespace fs = std::filesystem;

/// The name of the length of a padded field: a mask has that of its field, and what there is for
/// each box has that of the boxes.
std::string length_name(const std::vector<data::Field>& fields, const data::Field& field) {
  const auto find = [&](auto&& is_it) {
    const auto it = std::find_if(fields.begin(), fields.end(), is_it);
    return it == fields.end() ? nullptr : &*it;
  };
  constexpr std::string_view kMask = "_mask";
  const data::Field* owner = &field;
  if (field.name.ends_with(kMask)) {
    const std::string name = field.name.substr(0, field.name.size() - kMask.size());
    const data::Field* masked =
        find([&](const data::Field& f) { return f.name == name && f.max_length > 0; });
    if (masked) owner = masked;
  }
  if (owner->kind == data::FieldKind::kPerBox)
    if (const data::Field* boxes =
            find([](const data::Field& f) { return f.kind == data::FieldKind::kBoxes; }))
      owner = boxes;
  return owner->name + "_length";
}

/// Fields of a loader as the session takes them: sizes that differ from batch to batch have names.
std::vector<FieldType> sample_types(const std::vector<data::Field>& fields) {
  std::vector<FieldType> out;
  for (const data::Field& f : fields) {
    FieldType t{f.name, {f.dtype, {}}};
    for (size_t d = 0; d < f.shape.size(); ++d) {
      const bool is_length = d == 0 && f.max_length > 0;
      t.type.shape.push_back(f.shape[d] >= 0 ? Dim(f.shape[d])
                                             : Dim::symbol(is_length ? length_name(fields, f)
                                                                     : str(f.name, "_size", d)));
    }
    out.push_back(std::move(t));
  }
  return out;
}

}  // namespace

void Trainer::Impl::claim_folder() {
  check_rank_count(config_.parallel, peers_->size());
  if (std::exchange(claimed_, true) || !peers_->is_root()) return;
  folder_.claim(options_.resume, options_.overwrite);
  if (!folder_.has_checkpoints() && !options_.resume)
    write_file_atomically(folder_.file("config.yaml"), config::dump_yaml(config_.document));
}

std::vector<Dims> Trainer::Impl::batch_shapes(const data::Loader& loader, int64_t samples) const {
  std::vector<Dims> shapes;
  for (const Dims& sample : loader.sample_shapes()) {
    Dims dims = {samples};
    for (const int64_t d : sample) dims.push_back(std::max<int64_t>(d, 1));
    shapes.push_back(dims);
  }
  return shapes;
}

std::optional<Averaging> Trainer::Impl::averaging() const {
  if (!config_.mean_weights) return config_.average;
  const auto updates = [&](const Interval& interval) {
    return interval.steps + interval.epochs * loader_->batches_per_epoch();
  };
  Averaging out;
  out.start = updates(config_.mean_weights->start);
  out.every = updates(config_.mean_weights->every);
  if (out.start >= total_steps())
    observer_.warn(str("train.swa: the average begins after update ", out.start, " of ",
                       total_steps(), ": it is that of the last weights alone"));
  return out;
}

MemoryPlan Trainer::Impl::prepare() {
  check_rank_count(config_.parallel, peers_->size());
  if (options_.eager && peers_->size() > 1)
    fail(ErrorCode::kUsage, "--eager runs on one rank: a parallel run is a compiled step");
  if (options_.eager && config_.accumulate > 1 && config_.optimizers.size() > 1)
    fail(ErrorCode::kUsage,
         "--eager: train.accumulate with several optimizers is for the compiled step");
  if (options_.eager && config_.parallel.recompute)
    fail(ErrorCode::kUsage, "--eager keeps all values: recompute is for the compiled step");
  if (options_.resume) {
    keep_fitted();
  } else if (const std::string& file =
                 options_.fitted.empty() ? config_.init.fitted : options_.fitted;
             !file.empty()) {
    data::apply_fitted(config_.data.train, data::read_fitted(file));
  }
  open_loaders();
  open_packed_base();
  std::optional<Phase> phase(std::in_place, "tracing the step");
  StepDefinition definition{.models = config_.models,
                            .loss = std::move(config_.loss),
                            .metrics = std::move(config_.metrics),
                            .optimizers = {},
                            .clip = config_.clip,
                            .mixed = config_.mixed,
                            .average = averaging(),
                            .keep_zeros = config_.keep_zeros,
                            .adapters = config_.adapters,
                            .distillation = config_.distillation,
                            .prediction = program::read_predict(config_.document),
                            .keeps_gradient_norm = config_.log_gradient_norm};
  if (config_.quantization)
    definition.interpreters.push_back(
        [q = config_.quantization, taught = config_.distillation.has_value()](
            program::ParameterBinding& ports, bool training) {
          // A teacher computes in floats.
          const auto name_of = [&ports, taught](const Tensor& tensor) {
            std::string name = ports.name_of(tensor);
            return taught && is_of_teacher(name) ? std::string() : name;
          };
          return q->interpreter({ports, name_of, nullptr}, training
                                                               ? quant::FakeQuantMode::kTraining
                                                               : quant::FakeQuantMode::kEvaluation);
        });
  if (config_.data.class_weights) {
    const std::vector<double> weights = data::with_location(
        config_.document.find("data")->find("class_weights"),
        [&] { return data::class_weights(loader_->dataset(), *config_.data.class_weights); });
    const Dims shape = {static_cast<int64_t>(weights.size())};
    definition.constants.emplace_back(
        "class_weights",
        Array::from<double>(weights, shape).cast(config_.use_float64 ? DType::kF64 : DType::kF32));
  }
  for (const OptimizerConfig& each : config_.optimizers)
    definition.optimizers.push_back({each.name, std::make_shared<optim::Optimizer>(each.options)});
  step_ = std::make_shared<Step>(std::move(definition));
  SessionOptions options;
  options.eager = options_.eager;
  options.use_float64 = config_.use_float64;
  options.seed = config_.seed;
  options.accumulate = config_.accumulate;
  options.compile = config_.compile;
  if (!config_.kernel_table.empty()) {
    std::string problem;
    options.compile.policy.choices = runtime::open_kernel_table(config_.kernel_table, problem);
    if (!problem.empty()) observer_.warn("compile.kernels: " + problem);
  }
  options.profile = profile_;
  // Padded batches come in some twenty lengths.
  const auto& batch_fields = loader_->fields();
  if (std::any_of(batch_fields.begin(), batch_fields.end(),
                  [](const data::Field& f) { return f.max_length > 0; }))
    options.max_plans = 32;
  options.shapes = batch_shapes(
      *loader_, std::max<int64_t>(1, config_.data.loader.batch_size / config_.accumulate));
  options.mesh = config_.parallel.mesh();
  options.place = config_.parallel.place;
  options.rules = config_.parallel.rules;
  options.sequence = config_.parallel.sequence;
  options.schedule = config_.parallel.schedule;
  options.chunks = static_cast<int>(config_.parallel.chunks);
  options.recompute = config_.parallel.recompute;
  options.recompute_budget = config_.parallel.recompute_budget;
  options.sharding = static_cast<int>(config_.parallel.sharding);
  options.bucket_bytes = config_.parallel.bucket_bytes;
  options.overlap = config_.parallel.overlap;
  options.peers = peers_;
  options.observe = options_.observe;
  if (!options_.dump_ir.empty())
    options.observe = runtime::dump_stages(options_.dump_ir, config_.exported().name);
  auto types = data::with_location(config_.document.find("data")->find("train"), [&] {
    return Session::field_types(config_.models, sample_types(loader_->fields()),
                                config_.use_float64);
  });
  store_.initializes_random = !options_.dry_run;
  session_ = std::make_unique<Session>(step_, std::move(types), store_, options);
  session_->prepare();
  open_running_statistics();
  if (config_.quantization) config_.quantization->check_rules();
  compare_ranks();
  report_partition();
  if (!session_->recompute_summary().empty()) observer_.note(session_->recompute_summary());
  std::vector<std::string> names;
  for (const auto& [name, p] : store_.parameters) names.push_back(name);
  // An eager run meets the teacher in its first step.
  if (config_.distillation && options_.eager) names.push_back(str(Distillation::kName, "."));
  for (const std::string& pattern : config_.keep_zeros)
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return matches_pattern(pattern, name); }))
      throw Error(ErrorCode::kConfig,
                  str("train.keep_zeros: no parameter matches '", pattern, "'",
                      did_you_mean(pattern, names)),
                  config_.document.find("train")->find("keep_zeros")->location());
  std::set<std::string> warned;
  for (const NamedOptimizer& each : step_->definition().optimizers)
    for (const std::string& line : each.optimizer->warnings(names))
      if (warned.insert(line).second) observer_.warn(line);
  use_ = session_->field_use();
  loader_->require(use_.ranges);
  if (valid_loader_) valid_loader_->require(use_.ranges);
  if (test_loader_) test_loader_->require(use_.ranges);
  if (valid_loader_ || test_loader_) {
    metric_bindings_ = session_->bind_metrics(use_.ignored.value_or(-100));
    const data::Loader& evaluated = valid_loader_ ? *valid_loader_ : *test_loader_;
    if (evaluated.batches_per_epoch() > 1)
      for (const MetricBinding& binding : metric_bindings_)
        if (!binding.warning.empty()) observer_.warn("metrics: " + binding.warning);
    open_written_tokens();
  }
  check_batches();
  examine_loss();
  if (config_.adapters) adapted(store_, *config_.adapters);  // refuses patterns of nothing
  load_initial_weights();
  session_->start_copies();
  phase.emplace("planning memory");
  MemoryPlan plan;
  plan.available = available_memory();
  plan.batch = config_.data.loader.batch_size;
  plan.accumulate = config_.accumulate;
  plan.evaluation_batch = config_.data.valid_loader.batch_size;
  plan.prefetch = config_.data.loader.workers > 0
                      ? std::min(config_.data.loader.prefetch_bytes, 4 * loader_->batch_bytes())
                      : loader_->batch_bytes();
  if (!options_.eager) {
    const int64_t micro = std::max<int64_t>(1, config_.data.loader.batch_size / config_.accumulate);
    plan.training = session_->plan_training(batch_shapes(*loader_, micro));
    if (valid_loader_)
      plan.evaluation = session_->plan_evaluation(
          batch_shapes(*valid_loader_, config_.data.valid_loader.batch_size));
  }
  plan_ = plan;
  phase.reset();
  if (options_.benchmark == 0) scan_data();
  if (options_.benchmark == 0 && plan.fits()) try_first_batches();
  return plan;
}

void Trainer::Impl::try_first_batches() {
  const Phase phase("trying prediction and validation");
  program::StaticDims dims;
  for (const program::NamedModel& model : config_.models) {
    program::ParameterStore parameters = store_.of_model(model.name);
    if (config_.adapters) unpack_types(parameters, *config_.adapters);
    program::trace_prediction(*model.program, model.program->model, parameters, config_.use_float64,
                              &dims);
  }
  if (options_.dry_run) {
    loader_->next();
    loader_->seek({});
  }
  if (!valid_loader_) return;
  // A dry run of a large model reads and checks the batch, but takes no memory for activations.
  constexpr uint64_t kLargestDryRun = uint64_t{1} << 30;
  const auto batch = valid_loader_->next();
  if (batch && (!options_.dry_run || plan_->total() < kLargestDryRun)) {
    Evaluator metrics = make_evaluator(*valid_loader_);
    const program::NewSequence sequence(store_);
    metrics.update(evaluate_batch(*batch), batch->indices);
    if (peers_->is_root()) metrics.results();  // other ranks may have counted nothing
  }
  valid_loader_->seek({});
}

Evaluator Trainer::Impl::make_evaluator(const data::Loader& loader) const {
  const std::vector<data::Fitted> fitted = loader_->dataset().fitted();
  std::vector<data::TargetScale> scales;
  for (const MetricBinding& binding : metric_bindings_) {
    // Pictures and other arrays are compared as the model sees them.
    const auto& fields = loader_->fields();
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const data::Field& f) {
      return f.name == binding.target && (f.shape.size() <= 1 || data::find_fitted(fitted, f.name));
    });
    scales.emplace_back(field == fields.end() ? "" : binding.target, fitted,
                        config_.data.valid_loader.transforms);
  }
  Evaluator out(step_->definition().metrics, metric_bindings_, std::move(scales));
  out.read_texts(loader.dataset(), metric_bindings_);
  return out;
}

void Trainer::Impl::open_written_tokens() {
  if (std::none_of(metric_bindings_.begin(), metric_bindings_.end(),
                   [](const MetricBinding& binding) {
                     return binding.predicted == PredictedTokens::kWritten;
                   }))
    return;
  const auto& sequence =
      std::get<program::SequencePrediction>(step_->definition().prediction.value());
  for (const auto& [name, parameter] : store_.parameters)
    if (!session_->placement_of(name).empty() ||
        config_.parallel.mesh().axis_size_of("pipeline") > 1)
      fail(ErrorCode::kConfig,
           "metrics: 'predicted' of a sequence needs whole parameters on each rank, and these are "
           "split; use parallel.data alone, or paddle eval after the run");
  int64_t longest = sequence.max_length;
  const std::vector<data::Fitted> fitted = loader_->dataset().fitted();
  if (const data::Fitted* field = data::find_fitted(fitted, sequence.target); field && longest == 0)
    longest = field->max_length;
  if (longest == 0)
    fail(ErrorCode::kConfig, "predict.max_length: '", sequence.target,
         "' has no max_length of its own; give one");
  written_tokens_.emplace(*session_, sequence, longest);
}

EvaluationResult Trainer::Impl::evaluate_batch(const data::Batch& batch) {
  EvaluationResult out = session_->evaluate(batch.arrays);
  if (!written_tokens_) return out;
  RowRange written;
  Array tokens;
  for (size_t i = 0; i < metric_bindings_.size(); ++i) {
    const RowRange rows = out.metric_rows[i];
    if (metric_bindings_[i].predicted != PredictedTokens::kWritten || rows.count() == 0) continue;
    if (rows.begin != written.begin || rows.end != written.end)
      tokens = written_tokens_->write(batch.arrays, rows);
    written = rows;
    out.metric_operands[i][0] = tokens;
  }
  return out;
}

void Trainer::Impl::check_batches() {
  const auto place_of = [&](const char* key) {
    const config::Node* data = config_.document.find("data");
    const config::Node* node = data ? data->find(key) : nullptr;
    return node ? node->location() : SourceLocation{};
  };
  const int64_t batch = config_.data.loader.batch_size;
  const int64_t batches = options_.benchmark > 0 ? 1 : total_steps();
  BatchSizes train = batch_sizes(*loader_, batch, batches);
  if (options_.benchmark > 0) train.full = batch;
  const auto short_batch = [](const BatchSizes& sizes, const char* what) {
    return str("the last batch of ", what, " has ", sizes.last, " of the ", sizes.samples,
               " samples");
  };
  if (const auto stated = session_->stated_batch()) {
    const auto fits = [&](int64_t samples, int64_t accumulate) {
      const std::set<int64_t> parts = micro_batch_sizes(samples, accumulate);
      return samples == 0 || (parts.size() == 1 && *parts.begin() == *stated);
    };
    const std::string model = str("the model takes batches of ", *stated, " samples");
    const std::string open = str(", or make the batch a symbol in the model's inputs");
    if (!fits(train.full, config_.accumulate))
      throw Error(
          ErrorCode::kConfig,
          str(model, ", data.batch_size is ", batch, " and train.accumulate ", config_.accumulate,
              ": set data.batch_size to ", *stated * config_.accumulate, open),
          place_of("batch_size"));
    if (!fits(train.last, config_.accumulate))
      throw Error(
          ErrorCode::kConfig,
          str(model, ", ", short_batch(train, "data.train"), ": set data.drop_last to true", open),
          place_of("train"));
    if (!valid_loader_) return;
    const BatchSizes valid =
        batch_sizes(*valid_loader_, config_.data.valid_loader.batch_size, 1 << 30);
    if (!fits(valid.full, 1))
      throw Error(ErrorCode::kConfig,
                  str(model, ", data.valid_batch_size is ", config_.data.valid_loader.batch_size,
                      ": set it to ", *stated, open),
                  place_of("valid_batch_size"));
    if (!fits(valid.last, 1))
      throw Error(ErrorCode::kConfig,
                  str(model, ", ", short_batch(valid, "data.valid"),
                      " (data.drop_last is for training alone): give data.valid a range of a "
                      "multiple of ",
                      *stated, " samples", open),
                  place_of("valid"));
    return;
  }
  for (const NormCall& norm : session_->norm_calls()) {
    for (const int64_t samples : {train.full, train.last}) {
      if (samples == 0) continue;
      for (const int64_t part : micro_batch_sizes(samples, config_.accumulate)) {
        if (session_->size_of(norm.values, part, loader_->fields()) != 1) continue;
        const bool last = samples == train.last;
        throw Error(
            ErrorCode::kConfig,
            str(norm.operation, ": one value for each ", norm.over, " in ",
                config_.accumulate > 1 ? "a micro-batch" : "a batch", " of ", part,
                part == 1 ? " sample" : " samples", last ? ", as " : "",
                last ? short_batch(train, "data.train") : "", ": it would be normalized to 0; ",
                last                        ? "set data.drop_last to true"
                : norm.values.is_constant() ? "remove the call"
                                            : "set a larger data.batch_size"),
            parse_source_location(norm.place));
      }
    }
  }
}

/// How losses of micro-batches and of validation batches are summed up.
void Trainer::Impl::examine_loss() {
  const bool by_parts = config_.accumulate > 1;
  if (!by_parts && !valid_loader_ && !test_loader_) return;
  loss_form_ = session_->loss_form();
  if (loss_form_.kind != LossForm::Kind::kUnknown) return;
  const std::string at = loss_form_.place.empty() ? "" : " (" + loss_form_.place + ")";
  if (by_parts)
    throw Error(ErrorCode::kConfig,
                "loss: " + loss_form_.reason + at +
                    "; train.accumulate needs such a loss, for the micro-batches to have the "
                    "gradient of the whole batch: set train.accumulate to 1",
                step_->definition().loss.where.location());
  const data::Loader& evaluated = valid_loader_ ? *valid_loader_ : *test_loader_;
  if (evaluated.batches_per_epoch() > 1)
    observer_.warn("loss: " + loss_form_.reason + at +
                   "; the validation loss is the mean over data.valid_batch_size samples at a "
                   "time, and depends on that number");
}

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
    const PackedBase* const base = config_.adapters ? config_.adapters->base.get() : nullptr;
    program::LoadReport report = train::load_initial_weights(
        init, base, store_, [&](const std::string& line) { observer_.warn(line); });
    if (config_.distillation) std::erase_if(report.missing, is_of_teacher);
    observer_.note(str("init: ", config_.init.file, ": ", report.text()));
  }
  if (options_.initial_weights.empty()) return;
  program::LoadReport report = load_weights(options_.initial_weights, store_);
  if (config_.distillation) std::erase_if(report.missing, is_of_teacher);
  program::check_report(report, options_.initial_weights, options_.allow_missing,
                        options_.allow_unused);
  observer_.note("initial weights: " + report.text());
}

void Trainer::Impl::start_folder() {
  folder_.keep();
  if (options_.overwrite && !options_.resume && peers_->is_root()) folder_.clear();
  if (options_.resume) {
    if (restore()) {
      loader_->seek(state_.position);
      seconds_before_ = state_.seconds;
      written_ = true;
    } else {
      observer_.note(folder_.path() + ": has no checkpoint yet; the run starts from the beginning");
    }
  }
  if (!peers_->is_root()) return;
  metrics_ = std::make_unique<MetricsLog>(
      folder_.file("metrics.jsonl"), options_.resume ? state_.step : -1, state_.evaluation_due);
  if (config_.digests)
    digests_ = std::make_unique<DigestLog>(folder_.file("digests.jsonl"),
                                           options_.resume ? state_.step : -1);
  events_ = std::make_unique<EventWriter>(folder_.file("tensorboard"));
  write_file_atomically(folder_.file("config.yaml"), config::dump_yaml(config_.document));
  write_run_record(folder_.file("run.json"), config_, options_.eager, loader_->dataset(),
                   valid_loader_ ? &valid_loader_->dataset() : nullptr, session_->forward_digest());
}

/// Keeps the statistics and vocabularies that the weights were trained with, even if the files have
/// changed.
void Trainer::Impl::keep_fitted() {
  auto steps = program::list_checkpoints(folder_.checkpoints());
  for (; !steps.empty(); steps.pop_back()) {
    const fs::path folder = fs::path(folder_.checkpoints()) / std::to_string(steps.back());
    const std::string file = (folder / "inference" / "fitted.json").string();
    if (!fs::exists(file)) continue;
    std::vector<data::Fitted> fitted;
    try {
      fitted = data::read_fitted(file);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kModel || steps.size() == 1) throw;
      continue;  // restoring passes the checkpoint over, too
    }
    data::with_location(config_.document.find("data")->find("train"), [&] {
      data::apply_fitted(config_.data.train, fitted);
      return 0;
    });
    return;
  }
}

/// Handles changes outside of the config since the run was last started: warns of changed data,
/// refuses a changed model.
void Trainer::Impl::check_record(const std::vector<ConfigChange>& changes) {
  const RecordChanges record = changes_since(folder_.file("run.json"), loader_->dataset(),
                                             valid_loader_ ? &valid_loader_->dataset() : nullptr,
                                             session_->forward_digest());
  if (record.model)
    throw Error(ErrorCode::kConfig,
                "the model or the loss computes something else than when the run began: '" +
                    config_.exported().file +
                    "' or a file that it uses was edited; undo that, or start a new run with "
                    "another --output and --init " +
                    folder_.file("checkpoints/latest/model.safetensors"));
  for (const std::string& line : record.train)
    observer_.warn("data.train has changed since the run began: " + line +
                   "; statistics, vocabularies and classes stay those of the run");
  for (const std::string& line : record.valid)
    observer_.warn("data.valid has changed since the run began: " + line);
  // Another number under the same name cannot be compared with the best so far.
  const std::string metric = "metrics." + config_.best.name;
  const bool other = std::any_of(changes.begin(), changes.end(), [&](const ConfigChange& change) {
    return change.path.starts_with("train.best") || change.path == "metrics" ||
           change.path == metric || change.path.starts_with(metric + ".") ||
           change.path == "data.valid" || change.path.starts_with("data.valid.");
  });
  const std::string stops =
      config_.early_stop ? "metrics." + config_.early_stop->metric.name : "metrics";
  other_metrics_ =
      other || !record.valid.empty() ||
      std::any_of(changes.begin(), changes.end(), [&](const ConfigChange& change) {
        return change.path == stops || change.path.starts_with(stops + ".") ||
               change.path == "train.early_stop" || change.path == "train.early_stop.metric" ||
               change.path == "train.early_stop.mode" || change.path.starts_with("schedule.m");
      });
  if (!state_.best || (!other && record.valid.empty())) return;
  observer_.note(str("the best so far (", format_double(*state_.best), " at step ",
                     state_.best_step, ") is forgotten: it is of another metric or other data"));
  state_.best.reset();
  state_.best_step = 0;
}

namespace {

/// "learning rate 0.001: 0 at the first update, …".
std::string rates_of(const OptimizerConfig& optimizer, int64_t total) {
  const auto rate = [&](int64_t step) {
    return format_double(optimizer.options.lr *
                         optim::schedule_factor(optimizer.schedule, step, total));
  };
  const std::string name = optimizer.name.empty() ? "" : optimizer.name + ": ";
  std::string line = name + "learning rate " + format_double(optimizer.options.lr);
  if (optimizer.rate_factor != 1)
    line += str(" (", format_double(optimizer.rate_factor), " times ",
                optimizer.name.empty() ? "optimizer" : "optimizers." + optimizer.name,
                ".lr for this batch)");
  if (total > 0)
    line += str(": ", rate(0), " at the first update, ", rate(total / 2), " half-way, ",
                rate(total - 1), " at the last");
  return line;
}

}  // namespace

std::vector<std::string> Trainer::Impl::run_summary() const {
  std::vector<std::string> lines;
  const int64_t batch = config_.data.loader.batch_size, total = total_steps();
  lines.push_back(str("batch ", batch,
                      config_.accumulate > 1 ? str(" = ", config_.accumulate, " micro-batches of ",
                                                   batch / config_.accumulate)
                                             : "",
                      "; the gradient is the mean over the samples that a batch really has"));
  lines.push_back(str("updates ", total, ", ", loader_->batches_per_epoch(), " an epoch of ",
                      loader_->samples_per_epoch(), " samples"));
  for (const OptimizerConfig& optimizer : config_.optimizers)
    lines.push_back(rates_of(optimizer, total));
  if (config_.mixed) {
    const auto& mixed = *config_.mixed;
    std::string line = str("mixed precision in ", text(mixed.cast.low), ", level ",
                           mixed.cast.all_low ? "O2" : "O1");
    if (mixed.cast.all_low) {
      const auto kept = std::count_if(store_.parameters.begin(), store_.parameters.end(),
                                      [&](const auto& p) { return store_.master(p.first); });
      line += str(": ", kept, " of ", store_.parameters.size(),
                  " parameters in 16 bits beside float32 masters");
    }
    if (mixed.scaling)
      line += str("; loss scale ", format_double(mixed.scaling->initial),
                  mixed.scaling->dynamic ? ", dynamic" : "");
    lines.push_back(line);
  }
  if (peers_->size() > 1) {
    const auto split = std::count_if(
        store_.parameters.begin(), store_.parameters.end(),
        [&](const auto& parameter) { return !session_->placement_of(parameter.first).empty(); });
    lines.push_back(str(peers_->size(), " ranks: ", config_.parallel.mesh().text(), "; ", split,
                        " of ", store_.parameters.size(), " parameters are split"));
  }
  lines.push_back(str("seed ", config_.seed, "; ", thread_count(), " threads of ",
                      available_cores(), " cores; ", config_.data.loader.workers,
                      " loader workers"));
  return lines;
}

}  // namespace paddle::train
