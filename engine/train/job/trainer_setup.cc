// Setting up a run: the traced step, the memory plan, and checks of its batches and loss.

#include <algorithm>

#include "base/phase.h"
#include "base/source_location.h"
#include "data/open_data.h"
#include "program/prediction.h"
#include "runtime/cpu_target.h"
#include "runtime/dump.h"
#include "runtime/kernel_table.h"
#include "train/config/mixed_precision.h"
#include "train/job/resume.h"
#include "train/job/trainer_impl.h"
#include "train/session/batch_sizes.h"
#include "train/session/field_types.h"

namespace paddle::train {
namespace {

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

void Trainer::Impl::open_servers(SessionOptions& options) {
  if (!config_.parameter_server.on_servers) {
    if (!config_.parameter_server.updates.is_sync())
      fail(ErrorCode::kConfig,
           "parameter_server.mode: async is for rows on servers; expected placement: servers, or "
           "--servers N");
    return;
  }
  // A run of one process has them itself.
  if (!options_.servers && communicator_->size() == 1)
    options_.servers = servers_in_process(config_, 1, options_.output);
  if (!options_.servers)
    fail(ErrorCode::kUsage,
         "parameter_server.placement: the run has no servers; start it by paddle-launch --servers "
         "N, or set PADDLE_SERVER_ADDRESSES to those of `paddle ps serve`");
  options.connect_servers = [this] {
    return connect_to_servers(*options_.servers, config_, *communicator_,
                              [this](const std::string& line) { observer_.note(line); });
  };
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
  if (!config_.swa) return config_.average;
  const auto updates = [&](const Interval& interval) {
    return interval.steps + interval.epochs * loader_->batches_per_epoch();
  };
  Averaging out;
  out.start = updates(config_.swa->start);
  out.every = updates(config_.swa->every);
  if (out.start >= total_steps())
    observer_.warn(str("train.swa: the average begins after update ", out.start, " of ",
                       total_steps(), ": it is that of the last weights only"));
  return out;
}

MemoryPlan Trainer::Impl::prepare() {
  check_rank_count(config_.parallel, communicator_->size());
  if (options_.eager && communicator_->size() > 1)
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
  if (config_.data.passes) find_first_pass();
  open_loaders();
  log_every_ = config_.log_every.count(loader_->batches_per_epoch());
  for (OptimizerConfig& optimizer : config_.optimizers)
    optimizer.schedule = optim::with_epoch_length(optimizer.schedule, loader_->batches_per_epoch());
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
                            .keeps_gradient_norm = config_.log_gradient_norm,
                            .skips_nonfinite = config_.on_nonfinite == NonFinitePolicy::kSkip};
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
    options.compile.prepare.choices = runtime::open_kernel_table(config_.kernel_table, problem);
    if (!problem.empty()) observer_.warn("compile.kernels: " + problem);
  }
  options.profile = profile_;
  // Padded batches come in some twenty lengths.
  const auto& batch_fields = loader_->fields();
  if (std::any_of(batch_fields.begin(), batch_fields.end(),
                  [](const data::Field& f) { return f.max_length > 0; }))
    options.max_plans = 32;
  options.shapes = batch_shapes(
      *loader_, largest_micro_batch(config_.data.loader.batch_size, config_.accumulate));
  options.mesh = config_.parallel.mesh();
  // Ranks wait for each other in any case.
  options.adapt_threads = config_.adapt_threads && options.mesh.size() == 1;
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
  options.sums_each = config_.parallel.sums_each;
  options.collective_form = config_.parallel.collectives;
  options.communicator = communicator_;
  options.tables = table_opening(config_);
  open_servers(options);
  options.observe = options_.observe;
  if (!options_.dump_ir.empty())
    options.observe = runtime::dump_stages(options_.dump_ir, config_.exported().name);
  auto types = data::with_location(config_.document.find("data")->find("train"), [&] {
    return field_types(config_.models, sample_types(loader_->fields()), config_.use_float64);
  });
  store_.initializes_random = !options_.dry_run;
  session_ = std::make_unique<Session>(step_, std::move(types), store_, options);
  session_->tables().set_folder(options_.output);
  if (options_.replay) {
    session_->tables().set_fences(options_.replay->fences);
    std::set<int64_t> skipped;
    for (const auto& [worker, step] : options_.replay->skipped)
      if (worker == communicator_->rank()) skipped.insert(step);
    session_->tables().set_skipped(std::move(skipped));
  }
  session_->prepare();
  open_running_statistics();
  if (config_.quantization) config_.quantization->check_rules();
  compare_ranks();
  report_partition();
  if (!session_->compiler().recompute_summary().empty())
    observer_.note(session_->compiler().recompute_summary());
  std::vector<std::string> names;
  for (const auto& [name, p] : store_.parameters) names.push_back(name);
  for (std::string& name : session_->tables().weights()) names.push_back(std::move(name));
  // An eager run meets the teacher in its first step.
  if (config_.distillation && options_.eager) names.push_back(str(Distillation::kName, "."));
  for (const std::string& pattern : config_.keep_zeros)
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return matches_pattern(pattern, name); }))
      throw Error(ErrorCode::kConfig,
                  str("train.keep_zeros: no parameter matches '", pattern, "'",
                      did_you_mean(pattern, names)),
                  config_.document.find("train")->find("keep_zeros")->location());
  // An eager run that continues meets its layers in its first step.
  if (config_.mixed && !config_.mixed->cast.full_layers.empty() && !options_.eager)
    check_full_layers(*config_.mixed, names, config_.document.find("amp")->location());
  if (config_.mixed && config_.compile.target.device.is_cpu() &&
      !runtime::has_products_in(config_.mixed->cast.low))
    observer_.note(str("this processor has no instructions for products in ",
                       text(config_.mixed->cast.low),
                       ": they are computed in float32 and rounded, which is slower than float32"));
  check_table_policies();
  if (const auto& watched = config_.parameter_server.watched) check_watched_table(watched->table);
  std::set<std::string> warned;
  for (const NamedOptimizer& each : step_->definition().optimizers)
    for (const std::string& line : each.optimizer->warnings(names))
      if (warned.insert(line).second) observer_.warn(line);
  use_ = session_->analysis().field_use();
  loader_->require(use_.ranges);
  if (valid_loader_) valid_loader_->require(use_.ranges);
  if (test_loader_) test_loader_->require(use_.ranges);
  const bool predicts_passes = config_.data.passes && config_.data.passes->predict_first;
  if (valid_loader_ || test_loader_ || predicts_passes) {
    metric_bindings_ = session_->analysis().bind_metrics(use_.ignored.value_or(-100));
    const data::Loader& evaluated = valid_loader_  ? *valid_loader_
                                    : test_loader_ ? *test_loader_
                                                   : *loader_;
    if (evaluated.batches_per_epoch() > 1)
      for (const MetricBinding& binding : metric_bindings_)
        if (!binding.warning.empty()) observer_.warn("metrics: " + binding.warning);
    open_written_tokens();
  }
  check_batches();
  examine_loss();
  if (config_.adapters) adapted(store_, *config_.adapters);  // rejects patterns of nothing
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
    const int64_t micro = largest_micro_batch(config_.data.loader.batch_size, config_.accumulate);
    plan.training = session_->compiler().plan_training(batch_shapes(*loader_, micro));
    if (valid_loader_)
      plan.evaluation = session_->compiler().plan_evaluation(
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
    program::ParameterStore parameters =
        session_->tables().with_tables(store_).of_model(model.name);
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
  constexpr uint64_t kMaxDryRunBytes = uint64_t{1} << 30;
  const auto batch = valid_loader_->next();
  if (batch && (!options_.dry_run || plan_->total() < kMaxDryRunBytes)) {
    Evaluator metrics = make_evaluator(*valid_loader_);
    const program::NewSequence sequence(store_);
    metrics.update(evaluate_batch(*batch), batch->indices);
    if (communicator_->is_root()) metrics.results();  // other ranks may have counted nothing
  }
  valid_loader_->seek({});
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
  if (const auto stated = session_->analysis().stated_batch()) {
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
                      " (data.drop_last is for training only): give data.valid a range of a "
                      "multiple of ",
                      *stated, " samples", open),
                  place_of("valid"));
    return;
  }
  for (const NormCall& norm : session_->analysis().norm_calls()) {
    for (const int64_t samples : {train.full, train.last}) {
      if (samples == 0) continue;
      for (const int64_t part : micro_batch_sizes(samples, config_.accumulate)) {
        if (session_->analysis().size_of(norm.values, part, loader_->fields()) != 1) continue;
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
  loss_form_ = session_->analysis().loss_form();
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

}  // namespace paddle::train
