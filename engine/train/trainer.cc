#include "train/trainer.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "formats/safetensors.h"
#include "nn/metric.h"
#include "train/metrics_log.h"
#include "train/predict.h"
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

uint64_t available_memory() {
  uint64_t bytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::ifstream limit("/sys/fs/cgroup/memory.max");
  uint64_t cgroup = 0;
  if (limit >> cgroup) bytes = std::min(bytes, cgroup);
  return bytes;
}

uint64_t MemoryPlan::total() const {
  uint64_t bytes = training.total() + prefetch;
  if (evaluation) bytes += evaluation->arena + evaluation->scratch;
  return bytes;
}

std::string MemoryPlan::text() const {
  std::string out;
  const auto line = [&](const char* what, uint64_t bytes) {
    std::string label = what;
    label.resize(44, ' ');
    out += "  " + label + human_bytes(bytes) + "\n";
  };
  line("parameters, states and a batch", training.inputs);
  line("activations, gradients and temporaries", training.arena);
  line("kernels' scratch", training.scratch);
  line("constants", training.constants);
  if (evaluation) line("evaluation", evaluation->arena + evaluation->scratch);
  line("batches made ahead, at most", prefetch);
  line("in all", total());
  line("memory of this machine", available);
  out += fits() ? "  it fits\n"
                : "  it does not fit: lower data.batch_size, raise train.accumulate, or lower "
                  "data.prefetch_bytes\n";
  return out;
}

class Trainer::Impl {
 public:
  Impl(RunConfig config, TrainOptions options, TrainObserver& observer)
      : config_(std::move(config)), options_(std::move(options)), observer_(observer) {
    if (options_.profile) profile_ = std::make_shared<runtime::Profile>();
  }

  MemoryPlan prepare();
  TrainResult run();
  int64_t parameter_count() const { return store_.parameter_count(); }
  const ir::Module& module() const { return session_->module(); }

 private:
  struct PartTimes {
    double data = 0, compute = 0;
  };
  void open_data();
  void check_labels() const;
  void start_folder();
  void restore();
  void load_initial_weights();
  std::vector<Dims> batch_shapes(const data::Loader& loader, int64_t samples) const;
  int64_t total_steps() const;
  double train_batch(const data::Batch& batch);
  std::optional<LogLine> evaluate();
  void log(LogLine line);
  void log_train();
  std::string checkpoint();
  void write_model();
  void report_progress();
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
  PartTimes times_;
  Clock::time_point started_, last_progress_, window_start_;
  int64_t window_samples_ = 0;
  double seconds_before_ = 0, last_loss_ = 0, learning_rate_ = 0;
  bool prepared_ = false;
  std::shared_ptr<runtime::Profile> profile_;
};

void Trainer::Impl::open_data() {
  data::LoaderOptions options = config_.data.loader;
  loader_ = std::make_unique<data::Loader>(data::make_dataset(config_.data.train), options);
  if (config_.data.valid && !options_.benchmark)
    valid_loader_ = std::make_unique<data::Loader>(data::make_dataset(*config_.data.valid),
                                                   config_.data.valid_loader);
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
  open_data();
  StepDefinition definition{config_.program, std::move(config_.loss), std::move(config_.metrics),
                            std::make_shared<optim::Optimizer>(config_.optimizer), config_.clip};
  step_ = std::make_shared<Step>(std::move(definition));
  SessionOptions options;
  options.eager = options_.eager;
  options.wide = config_.wide;
  options.seed = config_.seed;
  options.accumulate = config_.accumulate;
  options.fusion = config_.fusion;
  options.profile = profile_;
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
  auto types =
      Session::field_types(*config_.program, sample_types(loader_->fields()), config_.wide);
  session_ = std::make_unique<Session>(step_, std::move(types), store_, options);
  session_->prepare();
  for (const std::string& group : step_->definition().optimizer->unmatched_groups([&] {
         std::vector<std::string> names;
         for (const auto& [name, p] : store_.parameters) names.push_back(name);
         return names;
       }()))
    observer_.warn("optimizer.groups: no parameter matches " + group);
  load_initial_weights();
  MemoryPlan plan;
  plan.available = available_memory();
  plan.prefetch = config_.data.loader.workers > 0
                      ? std::min(config_.data.loader.prefetch_bytes, 4 * loader_->batch_bytes())
                      : loader_->batch_bytes();
  if (!options_.eager) {
    const int64_t micro = std::max<int64_t>(1, config_.data.loader.batch_size / config_.accumulate);
    plan.training = session_->plan_training(batch_shapes(*loader_, micro));
    if (valid_loader_)
      plan.evaluation = session_->plan_evaluation(
          batch_shapes(*valid_loader_, config_.data.valid_loader.batch_size));
    if (!plan.fits())
      fail(ErrorCode::kDevice, "the run does not fit in memory: it needs ",
           human_bytes(plan.total()), ", there are ", human_bytes(plan.available),
           "; lower data.batch_size or raise train.accumulate");
  }
  prepared_ = true;
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
  return session_->train(micro, numbers);
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
  double loss = 0;
  int64_t samples = 0;
  while (auto batch = valid_loader_->next()) {
    EvaluationResult r = session_->evaluate(batch->arrays);
    loss += r.loss * static_cast<double>(batch->samples);
    samples += batch->samples;
    for (size_t i = 0; i < metrics.size(); ++i) metrics[i]->update(r.metric_operands[i]);
    if (pending_interrupt()) return std::nullopt;
  }
  LogLine line;
  line.kind = "valid";
  line.step = state_.step;
  line.epoch = state_.position.epoch;
  line.loss = loss / static_cast<double>(std::max<int64_t>(1, samples));
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
  const std::string checkpoints = (fs::path(options_.output) / "checkpoints").string();
  const bool has = !list_checkpoints(checkpoints).empty();
  if (has && !options_.resume && !options_.overwrite)
    fail(ErrorCode::kUsage, options_.output, ": has checkpoints of an earlier run; give --resume ",
         options_.output, " to go on, --overwrite to start anew, or another --output");
  if (options_.overwrite && !options_.resume) {
    std::error_code error;
    fs::remove_all(checkpoints, error);
    fs::remove_all(fs::path(options_.output) / "model", error);
    fs::remove(fs::path(options_.output) / "metrics.jsonl", error);
  }
  ensure_directory(options_.output);
  if (options_.resume) restore();
  metrics_ = std::make_unique<MetricsLog>((fs::path(options_.output) / "metrics.jsonl").string(),
                                          options_.resume ? state_.step : -1);
  write_file_atomically((fs::path(options_.output) / "config.yaml").string(),
                        model::dump_yaml(config_.document));
}

void Trainer::Impl::restore() {
  const std::string folder = (fs::path(options_.output) / "checkpoints").string();
  auto steps = list_checkpoints(folder);
  if (steps.empty()) fail(ErrorCode::kUsage, options_.output, ": has no checkpoint to resume from");
  // The newest valid one counts; a damaged one is passed over with a warning.
  while (!steps.empty()) {
    const std::string path = (fs::path(folder) / std::to_string(steps.back())).string();
    steps.pop_back();
    try {
      const Store before = store_;
      state_ = read_checkpoint(path, store_);
      if (store_.seed != config_.seed)
        fail(ErrorCode::kConfig, "seed: the run began with ", store_.seed, ", the config says ",
             config_.seed, "; the seed cannot change on resume");
      loader_->seek(state_.position);
      seconds_before_ = state_.seconds;
      observer_.note(str("resumed from ", path, " (step ", state_.step, ")"));
      return;
    } catch (const Error& e) {
      if (steps.empty() || e.code() != ErrorCode::kModel) throw;
      observer_.warn(e.what() + std::string("; going back to the checkpoint before"));
    }
  }
}

std::string Trainer::Impl::checkpoint() {
  state_.position = loader_->position();
  state_.seconds = seconds_before_ + seconds_since(started_);
  CheckpointContent content;
  content.config = model::dump_yaml(config_.document);
  content.module = ir::print(session_->module());
  content.state = state_;
  const std::string folder = (fs::path(options_.output) / "checkpoints").string();
  const std::string path = write_checkpoint(folder, store_, content);
  prune_checkpoints(folder, config_.keep_checkpoints, {state_.best_step, state_.step});
  return path;
}

void Trainer::Impl::write_model() {
  const fs::path folder = fs::path(options_.output) / "model";
  ensure_directory(folder.string());
  auto function = trace_prediction(*config_.program, config_.program->model, store_, config_.wide);
  write_weights((folder / "model.safetensors").string(), store_);
  write_file_atomically((folder / "module.txt").string(),
                        ir::print(prediction_module(function, config_.name, store_)));
  write_file_atomically((folder / "config.yaml").string(), model::dump_yaml(config_.document));
  // What the inputs and outputs mean: vocabularies and class names.
  nlohmann::json meaning = {
      {"version", 1}, {"name", config_.name}, {"fields", nlohmann::json::array()}};
  for (const data::Field& f : loader_->fields()) {
    nlohmann::json field = {{"name", f.name}, {"dtype", text(f.dtype)}, {"shape", f.shape}};
    if (f.class_count > 0) field["class_count"] = f.class_count;
    if (!f.classes.empty()) field["classes"] = f.classes;
    meaning["fields"].push_back(field);
  }
  const auto& source = loader_->dataset();
  for (size_t i = 0; i < source.fields().size(); ++i)
    if (const data::Vocabulary* v = source.vocabulary(static_cast<int64_t>(i))) {
      write_file_atomically((folder / "vocabulary.json").string(), v->json());
      meaning["vocabulary_field"] = source.fields()[i].name;
      break;
    }
  write_file_atomically(
      (folder / "model.json").string(),
      meaning.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

bool Trainer::Impl::due(const Interval& every, bool epoch_ended) const {
  if (every.steps > 0) return state_.step % every.steps == 0;
  return every.epochs > 0 && epoch_ended && state_.position.epoch % every.epochs == 0;
}

void Trainer::Impl::report_progress() {
  if (seconds_since(last_progress_) < 0.1) return;
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

TrainResult Trainer::Impl::run() {
  if (!prepared_) prepare();
  TrainResult result;
  result.profile = profile_;
  if (options_.benchmark > 0) {
    result.benchmark = benchmark();
    return result;
  }
  start_folder();
  started_ = window_start_ = last_progress_ = Clock::now();
  const int64_t total = total_steps();
  while (state_.step < total) {
    if (pending_interrupt()) break;
    const auto before = Clock::now();
    auto batch = loader_->next();
    if (!batch) break;
    const auto loaded = Clock::now();
    last_loss_ = train_batch(*batch);
    times_.data += std::chrono::duration<double>(loaded - before).count();
    times_.compute += seconds_since(loaded);
    ++state_.step;
    state_.samples += batch->samples;
    state_.position = batch->next;
    state_.train_loss_sum += last_loss_;
    ++state_.train_loss_count;
    window_samples_ += batch->samples;
    if (!std::isfinite(last_loss_))
      fail(ErrorCode::kData, "the loss is ", last_loss_, " at step ", state_.step,
           "; training stopped, the last checkpoint is unchanged. A lower optimizer.lr or "
           "clip.global_norm may help");
    if (state_.step % config_.log_every == 0) log_train();
    report_progress();
    const bool last = state_.step == total;
    if (due(config_.evaluate, batch->last_of_epoch) ||
        (last && (config_.evaluate.steps || config_.evaluate.epochs))) {
      log_train();
      if (auto line = evaluate()) {
        result.last_valid = line;
        double value = line->loss;
        for (const auto& [name, v] : line->metrics)
          if (name == config_.best_metric) value = v;
        if (!config_.best_metric.empty() &&
            (!state_.best ||
             (config_.best_is_larger ? value > *state_.best : value < *state_.best))) {
          state_.best = value;
          state_.best_step = state_.step;
          result.checkpoint = checkpoint();
        }
      }
    }
    if (!last && due(config_.checkpoint, batch->last_of_epoch)) result.checkpoint = checkpoint();
  }
  result.steps = state_.step;
  result.stopped_by = pending_interrupt();
  if (!result.stopped_by) log_train();
  result.checkpoint = checkpoint();
  if (result.stopped_by) return result;
  write_model();
  result.model_folder = (fs::path(options_.output) / "model").string();
  for (const data::SkippedSample& s : loader_->skipped()) observer_.warn("skipped: " + s.reason);
  metrics_->end(state_.step, session_->traces(), session_->plans(), session_->planned_bytes(),
                seconds_before_ + seconds_since(started_), loader_->skipped_count());
  return result;
}

BenchmarkResult Trainer::Impl::benchmark() {
  if (profile_) profile_->recording = false;
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
    if (profile_ && i == kWarmUp) profile_->recording = true;
    const auto begun = Clock::now();
    const double loss = train_batch(batches[static_cast<size_t>(i % 4)]);
    if (i >= kWarmUp) times.push_back(1e3 * seconds_since(begun));
    if (i == 0) r.first_loss = loss;
    r.last_loss = loss;
    ++state_.step;
    if (pending_interrupt()) break;
  }
  if (times.empty()) fail(ErrorCode::kUsage, "the benchmark was stopped");
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
MemoryPlan Trainer::prepare() { return impl_->prepare(); }
TrainResult Trainer::run() { return impl_->run(); }
int64_t Trainer::parameter_count() const { return impl_->parameter_count(); }
const ir::Module& Trainer::module() const { return impl_->module(); }

}  // namespace paddle::train
