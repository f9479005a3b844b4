// The loop of a run: updates, evaluation, checkpoints, and what it leaves at the end.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/phase.h"
#include "compiler/codegen/compiled_fusion.h"
#include "program/saved_model.h"
#include "train/job/averages.h"
#include "train/job/trainer_impl.h"
#include "train/records/report.h"
#include "train/runs/find_nonfinite.h"

namespace paddle::train {
namespace {

/// Without micro-batches of weight 0, whose own mean over nothing is not a number.
void leave_out_empty(std::vector<std::vector<Array>>& micro_batches, std::vector<double>& weights) {
  for (size_t i = weights.size(); i-- > 0;) {
    if (weights[i] != 0) continue;
    micro_batches.erase(micro_batches.begin() + static_cast<ptrdiff_t>(i));
    weights.erase(weights.begin() + static_cast<ptrdiff_t>(i));
  }
}

}  // namespace

int64_t Trainer::Impl::total_steps() const {
  int64_t total = config_.steps;
  if (config_.epochs > 0) {
    int64_t by_epochs = 0;
    if (__builtin_mul_overflow(config_.epochs, loader_->batches_per_epoch(), &by_epochs))
      fail(ErrorCode::kConfig, "train.epochs: ", config_.epochs, " epochs of ",
           loader_->batches_per_epoch(), " updates are too many");
    total = total > 0 ? std::min(total, by_epochs) : by_epochs;
  }
  return total > 0 ? total : kEndless;
}

std::string Trainer::Impl::of_total() const {
  const int64_t total = total_steps();
  return total == kEndless ? "" : str(" of ", total);
}

/// Weight of the loss of a batch in the sum over batches.
double Trainer::Impl::weight_of(const std::vector<Array>& batch) {
  switch (loss_form_.kind) {
    case LossForm::Kind::kSum:
      return 1;
    case LossForm::Kind::kWeighted:
      return session_->divisor(batch);
    case LossForm::Kind::kMean:
    case LossForm::Kind::kUnknown:
      break;
  }
  return static_cast<double>(batch[0].shape[0]);
}

double Trainer::Impl::rate_of(const OptimizerConfig& optimizer, int64_t updates) const {
  const auto index = static_cast<size_t>(&optimizer - config_.optimizers.data());
  const double reduced = index < state_.plateaus.size() ? state_.plateaus[index].factor : 1;
  return optimizer.options.lr * reduced *
         optim::schedule_factor(optimizer.schedule, updates, total_steps());
}

double Trainer::Impl::train_batch(const data::Batch& batch) {
  StartedStep step = start_step(batch);
  Session::finish(step);
  return step.loss;
}

StartedStep Trainer::Impl::start_step(const data::Batch& batch) {
  StartedStep step = start_parts(batch);
  if (const auto problem = codegen::take_problem(); !problem.empty()) observer_.warn(problem);
  return step;
}

std::vector<std::vector<Array>> Trainer::Impl::micro_batches(const data::Batch& batch) const {
  const int64_t parts = std::min(config_.accumulate, batch.samples);
  std::vector<std::vector<Array>> out;
  for (int64_t i = 0; i < parts; ++i)
    out.push_back(
        rows_of(batch.arrays, batch.samples * i / parts, batch.samples * (i + 1) / parts));
  return out;
}

StepScalars Trainer::Impl::next_scalars() {
  StepScalars numbers;
  numbers.step = state_.step + 1;
  rates_.resize(config_.optimizers.size());
  for (size_t i = 0; i < rates_.size(); ++i)
    rates_[i] = rate_of(config_.optimizers[i], state_.step);
  numbers.learning_rates = rates_;
  return numbers;
}

StartedStep Trainer::Impl::start_parts(const data::Batch& batch) {
  const StepScalars numbers = next_scalars();
  const int64_t parts = std::min(config_.accumulate, batch.samples);
  if (parts == 1) {
    constexpr double kWhole = 1;
    return session_->start({&batch.arrays, 1}, {&kWhole, 1}, numbers);
  }
  std::vector<std::vector<Array>> micro = micro_batches(batch);
  std::vector<double> weights;
  for (const auto& part : micro) weights.push_back(weight_of(part));
  if (loss_form_.kind != LossForm::Kind::kSum) {
    const double whole = loss_form_.additive ? std::accumulate(weights.begin(), weights.end(), 0.0)
                                             : weight_of(batch.arrays);
    for (double& weight : weights)
      weight = whole != 0 ? weight / whole : 1 / static_cast<double>(weights.size());
    if (whole != 0 && !loss_form_.guarded) leave_out_empty(micro, weights);
  }
  return session_->start(micro, weights, numbers);
}

std::optional<Array> Trainer::Impl::scaling(const char* name) const {
  const auto it = store_.states.find(str("amp/", name));
  return it == store_.states.end() ? std::nullopt : std::optional(it->second.on_host());
}

bool Trainer::Impl::overflowed(int64_t step) {
  const auto skipped = scaling("skipped");
  if (!skipped) return false;
  const double before = std::exchange(last_scale_, scaling("scale")->number(0));
  if (std::exchange(skipped_updates_, skipped->integer(0)) == skipped->integer(0)) {
    consecutive_skips_ = 0;
    return false;
  }
  constexpr int64_t kMaxOverflowsAtMinScale = 20;
  if (config_.on_nonfinite == NonFinitePolicy::kSkip) {
    observer_.note(str("step ", step, ": gradients are not finite, the update is skipped"));
    if (++consecutive_skips_ < kMaxOverflowsAtMinScale) return true;
    complete_checkpoint();
    throw NonFiniteLoss(
        str("gradients are not finite in ", kMaxOverflowsAtMinScale,
            " updates in a row; training stopped, the last checkpoint is unchanged"),
        step);
  }
  const bool can_fall = config_.mixed->scaling->dynamic && before > optim::LossScaling::kMinimum;
  consecutive_skips_ = can_fall ? 0 : consecutive_skips_ + 1;
  if (consecutive_skips_ == kMaxOverflowsAtMinScale) {
    complete_checkpoint();
    fail(ErrorCode::kData, "gradients overflow in ", text(config_.mixed->cast.low), " in ",
         kMaxOverflowsAtMinScale, " updates in a row, even at the loss scale ",
         format_double(before), config_.mixed->scaling->dynamic ? ", the smallest" : "",
         "; training stopped, the last checkpoint is unchanged. precision: bfloat16 has the range "
         "of float32; amp.custom_full names operations that stay in float32; a lower optimizer.lr "
         "may help");
  }
  observer_.note(str("step ", step, ": gradients overflow in ", text(config_.mixed->cast.low),
                     ", the update is skipped; loss scale ", format_double(before),
                     last_scale_ != before ? " → " + format_double(last_scale_) : ""));
  return true;
}

void Trainer::Impl::log(LogLine line) {
  observer_.log(line);
  if (metrics_) metrics_->write(line);
  if (!events_) return;
  const auto scalar = [&](const std::string& name, double value) {
    events_->scalar(line.kind + "/" + name, line.step, value);
  };
  scalar("loss", line.loss);
  for (const auto& [name, value] : line.metrics) scalar(name, value);
  if (line.kind == "train") {
    scalar("learning_rate", line.learning_rate);
    scalar("samples_per_second", line.samples_per_second);
    scalar("data_wait", line.data_wait);
    if (line.gradient_norm) scalar("gradient_norm", *line.gradient_norm);
    if (line.loss_scale) scalar("loss_scale", *line.loss_scale);
  }
  events_->flush();
}

void Trainer::Impl::log_train() {
  if (state_.train_loss_count == 0) return;
  LogLine line;
  line.kind = "train";
  line.step = state_.step;
  line.epoch = state_.position.epoch;
  line.loss = state_.train_loss_sum / static_cast<double>(state_.train_loss_count);
  line.learning_rate = learning_rate(std::max<int64_t>(0, state_.step - 1));
  const double elapsed = seconds_since(window_start_);
  line.samples_per_second = elapsed > 0 ? static_cast<double>(window_samples_) / elapsed : 0;
  line.data_wait = times_.data_share();
  line.seconds = seconds_before_ + seconds_since(started_);
  for (size_t i = 0; i < state_.loss_sums.size(); ++i)
    line.metrics.emplace_back("loss." + config_.optimizers[i].name,
                              state_.loss_sums[i] / static_cast<double>(state_.train_loss_count));
  if (const auto norm = store_.states.find(kGradientNorm); norm != store_.states.end())
    line.gradient_norm = norm->second.on_host().number(0);
  if (const auto scale = scaling("scale")) {
    if (config_.mixed) line.loss_scale = scale->number(0);
    line.skipped_updates = scaling("skipped")->integer(0);
  }
  state_.train_loss_sum = 0;
  state_.train_loss_count = 0;
  std::fill(state_.loss_sums.begin(), state_.loss_sums.end(), 0.0);
  window_samples_ = 0;
  times_ = {};
  window_start_ = Clock::now();
  log(line);
}

void Trainer::Impl::write_digests() {
  if (!config_.digests) return;
  const program::ParameterStore whole =
      session_->tables().with_tables(session_->shards().whole_store());
  if (digests_) digests_->write(state_.step, last_loss_, whole);
}

std::optional<LogLine> Trainer::Impl::evaluate() {
  started_ = window_start_ = Clock::now();
  // A run has taken the parts of its ranks when it began.
  if (!begun_) session_->shards().update_parts();
  return valid_loader_ ? evaluate(*valid_loader_, "valid") : std::nullopt;
}

void Trainer::Impl::for_each_gradient(const std::function<bool(const BatchGradients&)>& use) {
  if (!valid_loader_) return;
  valid_loader_->seek({0, 0});
  const program::NewSequence sequence(store_);
  const AveragesInUse averages(store_);
  while (auto batch = valid_loader_->next()) {
    BatchGradients out;
    for (size_t i = 0; i < batch->arrays.size(); ++i)
      out.fields[session_->fields().at(i).name] = batch->arrays[i];
    out.outputs = session_->output_gradients(batch->arrays);
    out.samples = batch->samples;
    if (!use(out)) return;
  }
}

std::optional<LogLine> Trainer::Impl::evaluate(data::Loader& loader, const std::string& kind) {
  if (!update_running_statistics()) return std::nullopt;
  const auto begun = Clock::now();
  Evaluator metrics = make_evaluator(loader);
  loader.seek({0, 0});
  const program::NewSequence sequence(store_);
  const AveragesInUse averages(store_);
  double loss = 0, counted = 0;
  int64_t samples = 0;
  EvaluationDetails details(metric_bindings_, loader.fields());
  while (auto batch = loader.next()) {
    const EvaluationResult r = evaluate_batch(*batch);
    const double weight = weight_of(batch->arrays);
    if (weight != 0) loss += r.loss * weight;
    counted += weight;
    samples += batch->samples;
    metrics.update(r, batch->indices);
    details.update(r, batch->indices);
    if (stop_signal()) return std::nullopt;
  }
  merge_over_ranks(metrics, details);
  LogLine line;
  line.kind = kind;
  line.samples = samples;
  line.step = state_.step;
  line.epoch = state_.position.epoch;
  const bool sums = loss_form_.kind == LossForm::Kind::kSum;
  line.loss = sums || counted == 0 ? loss : loss / counted;
  line.learning_rate = learning_rate(std::max<int64_t>(0, state_.step - 1));
  line.samples_per_second = static_cast<double>(samples) / std::max(1e-9, seconds_since(begun));
  line.seconds = seconds_before_ + seconds_since(started_);
  line.metrics = metrics.results();
  line.values_without = metrics.values_without();
  for (size_t i = 0; i < line.metrics.size(); ++i) {
    const auto& [name, value] = line.metrics[i];
    if (const auto interval = metrics::jackknife_interval(value, line.values_without[i]))
      line.intervals.emplace_back(name, *interval);
  }
  for (const std::string& warning : metrics.warnings())
    if (warnings_shown_.insert(warning).second) observer_.warn(warning);
  log(line);
  write_details(details, line, loader.dataset());
  window_start_ = Clock::now();
  window_samples_ = 0;
  return line;
}

void Trainer::Impl::write_details(const EvaluationDetails& details, const LogLine& line,
                                  const data::Dataset& dataset) const {
  const bool in_run = metrics_ != nullptr;
  if (!communicator_->is_root() || details.empty() || (options_.details.empty() && !in_run)) return;
  const std::string file =
      options_.details.empty() ? folder_.file("evaluation.json") : options_.details;
  write_file_atomically(file, details.json(line.kind, line.step, dataset) + "\n");
}

/// `skipped.jsonl`: the samples that on_bad_sample left out, each once.
void Trainer::Impl::write_skipped() const {
  std::set<std::string> reasons;
  std::string lines;
  for (const auto* loader : {loader_.get(), valid_loader_.get()}) {
    if (!loader) continue;
    for (const data::SkippedSample& s : loader->skipped())
      if (reasons.insert(s.reason).second)
        lines += nlohmann::ordered_json({{"sample", s.index},
                                         {"part", loader == loader_.get() ? "train" : "valid"},
                                         {"reason", s.reason}})
                     .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
                 "\n";
  }
  if (reasons.empty()) return;
  write_file_atomically(folder_.file("skipped.jsonl"), lines);
  size_t shown = 0;
  for (const std::string& reason : reasons)
    if (++shown <= 3) observer_.warn("skipped: " + reason);
  observer_.warn(str(reasons.size(), " bad samples were skipped; all are listed in ",
                     folder_.file("skipped.jsonl")));
}

bool Trainer::Impl::due(const Interval& every, bool epoch_ended) const {
  if (every.steps > 0) return state_.step % every.steps == 0;
  return every.epochs > 0 && epoch_ended && state_.position.epoch % every.epochs == 0;
}

bool Trainer::Impl::read_losses(size_t left) {
  for (; started_steps_.size() > left; started_steps_.pop_front()) {
    auto& [number, step] = started_steps_.front();
    Session::finish(step);
    last_loss_ = step.loss;
    const bool skipped = overflowed(number), finite = std::isfinite(last_loss_);
    if (finite) {
      state_.train_loss_sum += last_loss_;
      ++state_.train_loss_count;
      state_.loss_sums.resize(step.losses.size());
      for (size_t i = 0; i < step.losses.size(); ++i) state_.loss_sums[i] += step.losses[i];
    }
    if (finite || skipped) continue;
    session_->check_device_errors();  // a kernel may have failed, which is the reason
    complete_checkpoint();
    if (config_.on_nonfinite == NonFinitePolicy::kRollback && roll_back(number)) return true;
    throw NonFiniteLoss(str("the loss is ", last_loss_, " at step ", number,
                            "; training stopped, the last checkpoint is unchanged"),
                        number);
  }
  if (left == 0) session_->check_device_errors();
  return false;
}

bool Trainer::Impl::roll_back(int64_t step) {
  constexpr int64_t kMaxRollbacks = 10;
  started_steps_.clear();
  if (!folder_.has_checkpoints() || rollbacks_ == kMaxRollbacks) return false;
  ++rollbacks_;
  const double loss = last_loss_;
  if (!restore()) return false;
  state_.evaluation_due = false;
  observer_.warn(str("the loss is ", format_double(loss), " at step ", step,
                     "; the run continues from the checkpoint of step ", state_.step,
                     " with the data after this batch (", rollbacks_, " of at most ", kMaxRollbacks,
                     " times)"));
  return true;
}

void Trainer::Impl::report_progress(bool always) {
  if (!always && seconds_since(last_progress_) < 0.1) return;
  last_progress_ = Clock::now();
  Progress p;
  p.step = state_.step;
  p.total_steps = total_steps() == kEndless ? 0 : total_steps();
  p.epoch = state_.position.epoch;
  p.loss = last_loss_;
  const double elapsed = seconds_since(window_start_);
  p.samples_per_second = elapsed > 0 ? static_cast<double>(window_samples_) / elapsed : 0;
  if (p.samples_per_second > 0)
    p.seconds_left =
        static_cast<double>((p.total_steps - p.step) * config_.data.loader.batch_size) /
        p.samples_per_second;
  p.data_share = times_.data_share();
  observer_.progress(p);
}

/// Evaluates, and takes what follows from the result: the best checkpoint, rates, an early end.
void Trainer::Impl::run_evaluation() {
  if (!valid_loader_) return;
  log_train();
  state_.evaluation_due = true;
  const comm::ActivityScope activity(*communicator_, "evaluating");
  const auto line = evaluate(*valid_loader_, "valid");
  if (!line) return;  // interrupted: done on resume
  state_.evaluation_due = false;
  state_.evaluated_step = state_.step;
  written_ = false;
  last_valid_ = line;
  update_early_stopping(*line);
  keep_best(*line);
}

/// The line of the steps before an error, whatever else it has broken.
void Trainer::Impl::log_failed() {
  try {
    log_train();
  } catch (const std::exception& e) {
    observer_.warn(str("the last steps are not logged: ", e.what()));
  }
}

void Trainer::Impl::write_report(const std::string& ending) const {
  if (!communicator_->is_root() || !metrics_) return;
  try {
    write_run_report(folder_.path(), ending);
  } catch (const std::exception& e) {
    observer_.warn(folder_.file("report.html") + ": " + e.what());
  }
}

void Trainer::Impl::finish(TrainResult& result) {
  if (!result.stopped_by) log_train();
  result.checkpoint = checkpoint();
  complete_checkpoint();
  if (!result.stopped_by) publish_version(false, true);
  if (communicator_->is_root()) write_skipped();
  for (const std::string& line : session_->tables().take_removals()) observer_.note(line);
  for (const std::string& line : session_->tables().summary()) observer_.note(line);
  for (const data::Loader* loader : {loader_.get(), valid_loader_.get(), test_loader_.get()})
    if (loader)
      for (const std::string& line : loader->dataset().warnings()) observer_.warn(line);
  const std::string interrupted =
      str("Interrupted at step ", state_.step, of_total(), "; --resume continues.");
  if (result.stopped_by) return write_report(interrupted);
  if (test_loader_) {
    result.test = evaluate(*test_loader_, "test");
    if (!result.test) {
      result.stopped_by = stopped_by_;
      return write_report(interrupted);
    }
  }
  if (state_.best && !config_.best.name.empty()) {
    result.best_folder = folder_.file("best");
    result.best =
        str(config_.best.name, " ", format_double(*state_.best), " at step ", state_.best_step);
  }
  const Phase phase("writing the model");
  result.last_valid = last_valid_;
  result.model_folder = folder_.file("model");
  if (!update_running_statistics()) {
    result.stopped_by = stopped_by_;
    return write_report(interrupted);
  }
  const program::ParameterStore evaluated = saved_store();
  if (!communicator_->is_root()) return;
  if (config_.adapters) write_adapter_files(evaluated);
  for (const program::NamedModel& model : config_.models) {
    const bool exported = &model == &config_.models.front();
    if (!exported && config_.distillation) continue;  // the teacher has its own folder
    write_saved_model(exported ? result.model_folder : folder_.file("models/" + model.name), model,
                      evaluated);
  }
  metrics_->end(state_.step, session_->compiler().traces(), session_->compiler().plans(),
                session_->compiler().planned_bytes(), seconds_before_ + seconds_since(started_),
                loader_->skipped_count(),
                scaling("skipped") ? std::optional(skipped_updates_) : std::nullopt);
  std::string ending =
      end_reason_.empty() ? str("finished after ", state_.step, " steps") : end_reason_;
  ending[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(ending[0])));
  write_report(ending + ".");
}

Trainer::Trainer(RunConfig config, TrainOptions options, TrainObserver& observer)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(options), observer)) {}
Trainer::~Trainer() = default;
void Trainer::claim_folder() { impl_->claim_folder(); }
MemoryPlan Trainer::prepare() { return impl_->prepare(); }
TrainResult Trainer::run() { return impl_->run(); }
void Trainer::begin() { impl_->begin(); }
std::optional<StepReport> Trainer::step() { return impl_->step(); }
std::string Trainer::save() { return impl_->save(); }
TrainResult Trainer::finish() { return impl_->finish_steps(); }
TimedStep Trainer::timed_step() { return impl_->timed_step(); }
std::optional<LogLine> Trainer::evaluate() { return impl_->evaluate(); }
void Trainer::for_each_gradient(const std::function<bool(const BatchGradients&)>& use) {
  impl_->for_each_gradient(use);
}
RecordedStep Trainer::recorded_step() { return impl_->recorded_step(); }
NonFiniteSearch Trainer::find_nonfinite(const std::string& checkpoint, int64_t last_step,
                                        double max_seconds) {
  return impl_->find_nonfinite(checkpoint, last_step, max_seconds);
}

int64_t Trainer::replay(const std::string& checkpoint,
                        const std::function<void(const ReplayedValue&)>& visit) {
  return impl_->replay(checkpoint, visit);
}
const program::ParameterStore& Trainer::store() const { return impl_->store(); }
std::string Trainer::memory_by_rank() { return impl_->memory_by_rank(); }
int64_t Trainer::parameter_count() const { return impl_->parameter_count(); }
const ir::Module& Trainer::module() const { return impl_->module(); }
std::vector<std::string> Trainer::run_summary() const { return impl_->run_summary(); }
std::vector<tables::TableFormat> Trainer::table_formats() const { return impl_->table_formats(); }
std::vector<std::string> Trainer::placement_lines() const { return impl_->placement_lines(); }

}  // namespace paddle::train
