#include "train/trainer.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/phase.h"
#include "nn/metric.h"
#include "train/metrics_log.h"
#include "train/model_folder.h"
#include "train/open_data.h"
#include "train/run_folder.h"
#include "train/run_record.h"
#include "train/session.h"

namespace paddle::train {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Rows [begin, end) of a batch's arrays, sharing their memory.
std::vector<Array> rows(const std::vector<Array>& batch, int64_t begin, int64_t end) {
  std::vector<Array> out = batch;
  for (Array& a : out) {
    a.offset += begin * a.strides[0];
    a.shape[0] = end - begin;
  }
  return out;
}

/// Fields of a loader as the session takes them.
std::vector<FieldType> sample_types(const std::vector<data::Field>& fields) {
  std::vector<FieldType> out;
  for (const data::Field& f : fields) {
    FieldType t{f.name, {f.dtype, {}}};
    for (const int64_t d : f.shape) t.type.shape.push_back(d < 0 ? Dim::unknown() : Dim(d));
    out.push_back(std::move(t));
  }
  return out;
}

}  // namespace

class Trainer::Impl {
 public:
  Impl(RunConfig config, TrainOptions options, TrainObserver& observer)
      : config_(std::move(config)),
        options_(std::move(options)),
        observer_(observer),
        folder_(options_.output) {}

  void claim_folder();
  MemoryPlan prepare();
  TrainResult run();
  int64_t parameter_count() const { return store_.parameter_count(); }
  const ir::Module& module() const { return session_->module(); }
  std::vector<std::string> derivation() const;

 private:
  struct PartTimes {
    double data = 0, compute = 0;
  };
  void open_loaders();
  void start_folder();
  void evaluate_now();
  void finish(TrainResult& result);
  void load_initial_weights();
  std::vector<Dims> batch_shapes(const data::Loader& loader, int64_t samples) const;
  int64_t total_steps() const;
  double count_of(const std::vector<Array>& batch) const;
  double train_batch(const data::Batch& batch);
  std::optional<LogLine> evaluate();
  void log(LogLine line);
  void log_train();
  std::string checkpoint();
  void list_skipped() const;
  void report_progress(bool always);
  bool due(const Interval& every, bool epoch_ended) const;
  BenchmarkResult benchmark();

  RunConfig config_;
  TrainOptions options_;
  TrainObserver& observer_;
  Store store_;
  std::shared_ptr<Step> step_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<data::Loader> loader_, valid_loader_;
  std::unique_ptr<MetricsLog> metrics_;
  RunState state_;
  std::optional<LogLine> last_valid_;
  PartTimes times_;
  Clock::time_point started_, last_progress_, window_start_;
  int64_t window_samples_ = 0;
  double seconds_before_ = 0, last_loss_ = 0, learning_rate_ = 0;
  std::optional<MemoryPlan> plan_;
  IndexUse use_;
  RunFolder folder_;
  bool claimed_ = false;
  bool written_ = false;  ///< the checkpoint of this step, with all that belongs to it
};

void Trainer::Impl::open_loaders() {
  const Phase phase("opening the data");
  if (options_.benchmark) config_.data.valid.reset();
  OpenData opened = open_data(config_.document, config_.data);
  loader_ = std::move(opened.train_loader);
  valid_loader_ = std::move(opened.valid_loader);
}

std::vector<Dims> Trainer::Impl::batch_shapes(const data::Loader& loader, int64_t samples) const {
  std::vector<Dims> shapes;
  for (const data::Field& f : loader.fields()) {
    Dims dims = {samples};
    for (const int64_t d : f.shape) dims.push_back(std::max<int64_t>(d, 1));
    shapes.push_back(dims);
  }
  return shapes;
}

MemoryPlan Trainer::Impl::prepare() {
  open_loaders();
  std::optional<Phase> phase(std::in_place, "tracing the step");
  StepDefinition definition{config_.program, std::move(config_.loss), std::move(config_.metrics),
                            std::make_shared<optim::Optimizer>(config_.optimizer), config_.clip};
  step_ = std::make_shared<Step>(std::move(definition));
  SessionOptions options;
  options.eager = options_.eager;
  options.wide = config_.wide;
  options.seed = config_.seed;
  options.accumulate = config_.accumulate;
  if (!options_.dump_ir.empty()) {
    ensure_directory(options_.dump_ir);
    options.observe = [this, index = 0](const ir::Function& f, const std::string& stage) mutable {
      const std::string number = (index < 10 ? "0" : "") + std::to_string(index);
      ++index;
      write_file_atomically(
          (fs::path(options_.dump_ir) / (f.name + "." + number + "." + stage + ".txt")).string(),
          ir::print(f));
    };
  }
  auto types = placed(config_.document.find("data")->find("train"), [&] {
    return Session::field_types(*config_.program, sample_types(loader_->fields()), config_.wide);
  });
  session_ = std::make_unique<Session>(step_, std::move(types), store_, options);
  session_->prepare();
  for (const std::string& group : step_->definition().optimizer->unmatched_groups([&] {
         std::vector<std::string> names;
         for (const auto& [name, p] : store_.parameters) names.push_back(name);
         return names;
       }()))
    observer_.warn("optimizer.groups: no parameter matches " + group);
  use_ = session_->index_use();
  loader_->require(use_.ranges);
  if (valid_loader_) valid_loader_->require(use_.ranges);
  load_initial_weights();
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
  return plan;
}

void Trainer::Impl::load_initial_weights() {
  if (options_.initial_weights.empty()) return;
  const LoadReport report = load_weights(options_.initial_weights, store_);
  check_report(report, options_.initial_weights, options_.allow_missing, options_.allow_unused);
  observer_.note("initial weights: " + report.text());
}

int64_t Trainer::Impl::total_steps() const {
  int64_t total = config_.steps;
  if (config_.epochs > 0) {
    const int64_t by_epochs = config_.epochs * loader_->batches_per_epoch();
    total = total > 0 ? std::min(total, by_epochs) : by_epochs;
  }
  return total;
}

/// What the loss of a batch is a mean over: its samples, or, where labels may be ignored, the
/// labels that are not.
double Trainer::Impl::count_of(const std::vector<Array>& batch) const {
  const double samples = static_cast<double>(batch[0].shape[0]);
  if (!use_.ignored) return samples;
  for (size_t f = 0; f < batch.size(); ++f) {
    if (loader_->fields()[f].name != use_.label) continue;
    const Array labels = batch[f].contiguous();
    int64_t count = 0;
    for (int64_t i = 0; i < labels.size(); ++i) count += labels.integer(i) != *use_.ignored;
    return static_cast<double>(count);
  }
  return samples;
}

double Trainer::Impl::train_batch(const data::Batch& batch) {
  StepNumbers numbers;
  numbers.step = state_.step + 1;
  learning_rate_ =
      config_.optimizer.lr * optim::schedule_factor(config_.schedule, state_.step, total_steps());
  numbers.learning_rate = learning_rate_;
  std::vector<std::vector<Array>> micro;
  const int64_t parts = std::min(config_.accumulate, batch.samples);
  for (int64_t i = 0; i < parts; ++i)
    micro.push_back(rows(batch.arrays, batch.samples * i / parts, batch.samples * (i + 1) / parts));
  if (micro.size() == 1) return session_->train(micro, {1.0}, numbers);
  std::vector<double> weights;
  for (const auto& part : micro) weights.push_back(count_of(part));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights)
    weight = total > 0 ? weight / total : 1 / static_cast<double>(weights.size());
  return session_->train(micro, weights, numbers);
}

void Trainer::Impl::log(LogLine line) {
  observer_.log(line);
  if (metrics_) metrics_->write(line);
}

void Trainer::Impl::log_train() {
  if (state_.train_loss_count == 0) return;
  LogLine line;
  line.kind = "train";
  line.step = state_.step;
  line.epoch = state_.position.epoch;
  line.loss = state_.train_loss_sum / static_cast<double>(state_.train_loss_count);
  line.learning_rate = learning_rate_;
  const double elapsed = seconds_since(window_start_);
  line.samples_per_second = elapsed > 0 ? static_cast<double>(window_samples_) / elapsed : 0;
  line.seconds = seconds_before_ + seconds_since(started_);
  state_.train_loss_sum = 0;
  state_.train_loss_count = 0;
  window_samples_ = 0;
  times_ = {};
  window_start_ = Clock::now();
  log(line);
}

std::optional<LogLine> Trainer::Impl::evaluate() {
  if (!valid_loader_) return std::nullopt;
  const auto begun = Clock::now();
  std::vector<std::unique_ptr<nn::Metric>> metrics;
  const auto& calls = step_->definition().metrics;
  for (const MetricCall& call : calls) {
    std::map<std::string, double> options;
    for (const model::Stmt& s : call.code.statements)
      if (s.value && s.value->kind == model::ExprKind::kCall)
        for (const model::Argument& a : s.value->arguments)
          if (!a.name.empty() && (a.value->kind == model::ExprKind::kInteger ||
                                  a.value->kind == model::ExprKind::kReal))
            options[a.name] = a.value->kind == model::ExprKind::kReal
                                  ? a.value->real
                                  : static_cast<double>(a.value->integer);
    metrics.push_back(nn::make_metric(call.metric, options));
  }
  valid_loader_->seek({0, 0});
  double loss = 0, counted = 0;
  int64_t samples = 0;
  while (auto batch = valid_loader_->next()) {
    EvaluationResult r = session_->evaluate(batch->arrays);
    const double count = count_of(batch->arrays);
    if (count > 0) loss += r.loss * count;
    counted += count;
    samples += batch->samples;
    for (size_t i = 0; i < metrics.size(); ++i) metrics[i]->update(r.metric_operands[i]);
    if (pending_interrupt()) return std::nullopt;
  }
  LogLine line;
  line.kind = "valid";
  line.step = state_.step;
  line.epoch = state_.position.epoch;
  line.loss = loss / std::max(1.0, counted);
  line.learning_rate = learning_rate_;
  line.samples_per_second = static_cast<double>(samples) / std::max(1e-9, seconds_since(begun));
  line.seconds = seconds_before_ + seconds_since(started_);
  for (size_t i = 0; i < metrics.size(); ++i)
    line.metrics.push_back({calls[i].name, metrics[i]->result()});
  log(line);
  window_start_ = Clock::now();
  window_samples_ = 0;
  return line;
}

void Trainer::Impl::start_folder() {
  if (options_.overwrite && !options_.resume) folder_.clear();
  if (options_.resume) {
    const auto state = folder_.restore(
        store_, config_.document, [&](const std::string& line) { observer_.note(line); },
        [&](const std::string& line) { observer_.warn(line); });
    if (state) {
      state_ = *state;
      loader_->seek(state_.position);
      seconds_before_ = state_.seconds;
      written_ = true;
    } else {
      observer_.note(folder_.path() + ": has no checkpoint yet; the run begins anew");
    }
  }
  metrics_ = std::make_unique<MetricsLog>(folder_.file("metrics.jsonl"),
                                          options_.resume ? state_.step : -1);
  write_file_atomically(folder_.file("config.yaml"), model::dump_yaml(config_.document));
  write_run_record(folder_.file("run.json"), config_, options_.eager, loader_->dataset(),
                   valid_loader_ ? &valid_loader_->dataset() : nullptr);
}

std::string Trainer::Impl::checkpoint() {
  const std::string path = (fs::path(folder_.checkpoints()) / std::to_string(state_.step)).string();
  if (written_) return path;
  const Phase phase("writing a checkpoint");
  state_.position = loader_->position();
  state_.seconds = seconds_before_ + seconds_since(started_);
  CheckpointContent content;
  content.config = model::dump_yaml(config_.document);
  content.module = ir::print(session_->module());
  content.state = state_;
  content.further = [&](const std::string& folder) {
    write_meaning(folder, config_, loader_->fields(), loader_->dataset(), use_);
  };
  write_checkpoint(folder_.checkpoints(), store_, content);
  written_ = true;
  prune_checkpoints(folder_.checkpoints(), config_.keep_checkpoints,
                    {state_.best_step, state_.step});
  return path;
}

/// `skipped.jsonl`: the samples that on_bad_sample left out, each once.
void Trainer::Impl::list_skipped() const {
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

void Trainer::Impl::report_progress(bool always) {
  if (!always && seconds_since(last_progress_) < 0.1) return;
  last_progress_ = Clock::now();
  Progress p;
  p.step = state_.step;
  p.total_steps = total_steps();
  p.epoch = state_.position.epoch;
  p.loss = last_loss_;
  const double elapsed = seconds_since(window_start_);
  p.samples_per_second = elapsed > 0 ? static_cast<double>(window_samples_) / elapsed : 0;
  if (p.samples_per_second > 0)
    p.seconds_left =
        static_cast<double>((p.total_steps - p.step) * config_.data.loader.batch_size) /
        p.samples_per_second;
  const double both = times_.data + times_.compute;
  p.data_share = both > 0 ? times_.data / both : 0;
  observer_.progress(p);
}

/// Evaluates, and keeps a checkpoint if the result is the best so far.
void Trainer::Impl::evaluate_now() {
  log_train();
  state_.evaluation_due = true;
  const auto line = evaluate();
  if (!line) return;  // interrupted: done on resume
  state_.evaluation_due = false;
  written_ = false;
  last_valid_ = line;
  if (config_.best_metric.empty()) return;
  double value = line->loss;
  for (const auto& [name, v] : line->metrics)
    if (name == config_.best_metric) value = v;
  if (state_.best && !(config_.best_is_larger ? value > *state_.best : value < *state_.best))
    return;
  state_.best = value;
  state_.best_step = state_.step;
  checkpoint();
}

void Trainer::Impl::claim_folder() {
  if (std::exchange(claimed_, true)) return;
  folder_.claim(options_.resume, options_.overwrite);
  if (!folder_.has_checkpoints() && !options_.resume)
    write_file_atomically(folder_.file("config.yaml"), model::dump_yaml(config_.document));
}

TrainResult Trainer::Impl::run() {
  if (options_.benchmark == 0) claim_folder();
  if (!plan_) prepare();
  plan_->require_fit();
  TrainResult result;
  if (options_.benchmark > 0) {
    result.benchmark = benchmark();
    result.stopped_by = pending_interrupt();
    return result;
  }
  start_folder();
  started_ = window_start_ = last_progress_ = Clock::now();
  const Phase phase("training");
  if (state_.evaluation_due) evaluate_now();
  const int64_t total = total_steps();
  while (state_.step < total && !pending_interrupt()) {
    const auto before = Clock::now();
    auto batch = loader_->next();
    if (!batch) break;
    const auto loaded = Clock::now();
    last_loss_ = train_batch(*batch);
    times_.data += std::chrono::duration<double>(loaded - before).count();
    times_.compute += seconds_since(loaded);
    ++state_.step;
    written_ = false;
    state_.samples += batch->samples;
    state_.position = batch->next;
    state_.train_loss_sum += last_loss_;
    ++state_.train_loss_count;
    window_samples_ += batch->samples;
    if (!std::isfinite(last_loss_))
      fail(ErrorCode::kData, "the loss is ", last_loss_, " at step ", state_.step,
           "; training stopped, the last checkpoint is unchanged. A lower optimizer.lr or "
           "clip.global_norm may help");
    const bool logs = state_.step % config_.log_every == 0;
    report_progress(logs);
    if (logs) log_train();
    const bool last = state_.step == total;
    if (due(config_.evaluate, batch->last_of_epoch) ||
        (last && (config_.evaluate.steps || config_.evaluate.epochs)))
      evaluate_now();
    if (!last && due(config_.checkpoint, batch->last_of_epoch)) checkpoint();
  }
  result.steps = state_.step;
  result.stopped_by = pending_interrupt();
  finish(result);
  return result;
}

void Trainer::Impl::finish(TrainResult& result) {
  if (!result.stopped_by) log_train();
  result.checkpoint = checkpoint();
  list_skipped();
  if (result.stopped_by) return;
  const Phase phase("writing the model");
  result.last_valid = last_valid_;
  result.model_folder = folder_.file("model");
  write_model(result.model_folder, config_, store_);
  write_meaning(result.model_folder, config_, loader_->fields(), loader_->dataset(), use_);
  metrics_->end(state_.step, session_->traces(), session_->plans(), session_->planned_bytes(),
                seconds_before_ + seconds_since(started_), loader_->skipped_count());
}

std::vector<std::string> Trainer::Impl::derivation() const {
  std::vector<std::string> lines;
  const int64_t batch = config_.data.loader.batch_size, total = total_steps();
  const auto rate = [&](int64_t step) {
    return format_double(config_.optimizer.lr *
                         optim::schedule_factor(config_.schedule, step, total));
  };
  lines.push_back(str("batch ", batch,
                      config_.accumulate > 1 ? str(" = ", config_.accumulate, " micro-batches of ",
                                                   batch / config_.accumulate)
                                             : "",
                      "; the gradient is the mean over the samples that a batch really has"));
  lines.push_back(str("updates ", total, ", ", loader_->batches_per_epoch(), " an epoch of ",
                      loader_->samples_per_epoch(), " samples"));
  std::string rates = "learning rate " + format_double(config_.optimizer.lr);
  if (total > 0)
    rates += str(": ", rate(0), " at the first update, ", rate(total / 2), " half-way, ",
                 rate(total - 1), " at the last");
  lines.push_back(rates);
  lines.push_back(str("seed ", config_.seed, "; ", thread_count(), " threads of ",
                      available_cores(), " cores; ", config_.data.loader.workers,
                      " loader workers"));
  return lines;
}

BenchmarkResult Trainer::Impl::benchmark() {
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

Trainer::Trainer(RunConfig config, TrainOptions options, TrainObserver& observer)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(options), observer)) {}
Trainer::~Trainer() = default;
void Trainer::claim_folder() { impl_->claim_folder(); }
MemoryPlan Trainer::prepare() { return impl_->prepare(); }
TrainResult Trainer::run() { return impl_->run(); }
int64_t Trainer::parameter_count() const { return impl_->parameter_count(); }
const ir::Module& Trainer::module() const { return impl_->module(); }
std::vector<std::string> Trainer::derivation() const { return impl_->derivation(); }

}  // namespace paddle::train
