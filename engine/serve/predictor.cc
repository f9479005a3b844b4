#include "serve/predictor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>

#include "base/parallel.h"
#include "base/text.h"
#include "base/thread_scope.h"
#include "infer/decoded_results.h"
#include "infer/streams.h"
#include "runtime/execute.h"

namespace paddle::serve {

namespace {

program::LoadOptions load_options(const ModelEntry& entry, Device device) {
  program::LoadOptions out;
  out.overrides = entry.params;
  out.weights = entry.weights;
  out.function = entry.function;
  const auto precision = parse_dtype(entry.precision);
  if (!precision || !is_float(*precision))
    fail(ErrorCode::kUsage, "the precision of '", entry.name, "' is '", entry.precision,
         "', expected float32, bfloat16 or float16");
  out.precision = *precision;
  out.compile.target.device = device;
  return out;
}

/// Whether the declared types have a batch: a first size of inputs and outputs that is free, and
/// the same symbol where the model is ours. Before its first run a model may not know its outputs.
bool has_batch(const program::Model& model, bool has_run) {
  std::optional<Dim> batch;
  const auto is_batch = [&](const TensorType& type) {
    if (!type.ranked) return model.onnx() != nullptr;
    if (type.shape.empty() || type.shape[0].is_constant()) return false;
    if (model.onnx()) return true;
    if (!batch) batch = type.shape[0];
    return batch->is_symbol() && type.shape[0].same(*batch);
  };
  const auto all = [&](const auto& values) {
    return std::all_of(values.begin(), values.end(),
                       [&](const auto& value) { return is_batch(value.second); });
  };
  return !model.inputs().empty() && all(model.inputs()) &&
         (!has_run || all(model.declared_outputs()));
}

/// Whether results of a joined batch are those of separate ones, up to rounding: kernels may add
/// up products in another order for another number of rows.
bool are_close(const Array& a, const Array& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  const auto bytes = static_cast<size_t>(storage_bytes(a.dtype, a.size()));
  if (bytes == 0 || std::memcmp(a.raw(), b.raw(), bytes) == 0) return true;
  if (!is_float(a.dtype) || !info(a.dtype).has_kernels) return false;
  const double relative = info(a.dtype).bits <= 16 ? 1e-2 : 1e-4;
  double largest = 0;
  for (int64_t i = 0; i < b.size(); ++i)
    if (const double v = std::abs(b.number(i)); std::isfinite(v)) largest = std::max(largest, v);
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = a.number(i), y = b.number(i);
    const bool same =
        x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= relative * largest;
    if (!same) return false;
  }
  return true;
}

}  // namespace

Predictor::Predictor(const ModelEntry& entry, const PredictLimits& limits, Device device,
                     Metrics& metrics, std::string version)
    : name_(entry.name),
      version_(std::move(version)),
      created_(static_cast<int64_t>(std::time(nullptr))),
      limits_(limits),
      metrics_(metrics),
      model_(program::load_model(entry.path, load_options(entry, device))) {
  const bool has_values = model_->onnx() && onnx::needs_values(*model_->onnx());
  joins_ = limits_.max_batch > 1 && !has_values && has_batch(*model_, false);
  try {
    // On other devices a clone would have its own copy of the weights.
    if (device.is_cpu()) runner_ = model_->clone();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) throw;
    joins_ = false;  // it hands states on from row to row
  }
  if (!runner_) runner_ = std::shared_ptr<program::Model>(model_.get(), [](program::Model*) {});
  units_ = std::make_unique<program::OutputUnits>(*model_);
  raw_input_.batch = decoded_input_.batch = limits_.max_batch;
  raw_input_.no_workers = decoded_input_.no_workers = true;
  // The section `predict:` speaks of the outputs of the model itself.
  if (entry.function == "model") decoder_ = infer::make_decoder(*model_, {});
  if (decoder_) {
    decoded_input_.generated = infer::generated_inputs(*model_);
    decoded_input_.text_field = decoder_->text_field();
    decoded_input_.label_field = decoder_->label_field();
    decoded_input_.label_is_list = decoder_->label_is_list();
  }
  raw_input_.run = std::make_shared<infer::RunInputs>(*model_);
  decoded_input_.run = std::make_shared<infer::RunInputs>(*model_, decoded_input_.generated);
  for (const char* counter : {"predict_batches_total", "predict_rows_total"})
    metrics_.add(metric(counter), 0);
  thread_ = std::thread([this] { run(); });
}

Predictor::~Predictor() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::string Predictor::metric(const char* name) const {
  return str(name, "{", metric_label("model", name_), "}");
}

bool Predictor::submit(const PredictJobPtr& job, bool continues) {
  const std::lock_guard lock(mutex_);
  if (!continues) {
    std::erase_if(queue_, [](const PredictJobPtr& each) { return each->is_cancelled(); });
    // The job that the model takes next does not wait.
    const int64_t waiting = std::ssize(queue_) - (running_.load() > 0 ? 0 : 1);
    if (waiting >= limits_.queue) return false;
  }
  queue_.push_back(job);
  changed_.notify_all();
  return true;
}

void Predictor::report() const {
  const std::lock_guard lock(mutex_);
  metrics_.set(metric("requests_running"), static_cast<double>(running_.load()));
  metrics_.set(metric("requests_waiting"), static_cast<double>(queue_.size()));
}

void Predictor::run() {
  // A new thread has the libraries' own number of threads, whatever --threads says.
  const ThreadScope threads(thread_count());
  for (;;) {
    const std::vector<PredictJobPtr> jobs = take();
    if (jobs.empty()) return;
    predict(jobs);
    running_ = 0;
  }
}

/// The next batch: the job that waits longest, and those that can be joined to it. Empty at the
/// end.
std::vector<PredictJobPtr> Predictor::take() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (stopping_) return {};
    std::vector<PredictJobPtr> jobs = {queue_.front()};
    queue_.pop_front();
    if (jobs[0]->is_cancelled()) continue;
    running_ = 1;
    int64_t rows = jobs[0]->batch.rows;
    if (!may_join(*jobs[0])) return jobs;
    take_joinable(jobs, rows);
    const auto end = jobs[0]->asked + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(limits_.batch_wait));
    while (!stopping_ && rows < limits_.max_batch && Clock::now() < end) {
      changed_.wait_until(lock, end);
      take_joinable(jobs, rows);
    }
    running_ = std::ssize(jobs);
    return jobs;
  }
}

bool Predictor::may_join(const PredictJob& first) const {
  // The types of outputs are only known once it has run, for some models.
  return joins_ && has_run_ && !first.values && first.batch.rows > 0 && has_batch(*runner_, true);
}

void Predictor::take_joinable(std::vector<PredictJobPtr>& jobs, int64_t& rows) {
  for (auto it = queue_.begin(); it != queue_.end() && rows < limits_.max_batch;) {
    PredictJob& job = **it;
    if (!job.is_cancelled() && (job.batch.rows > limits_.max_batch - rows || job.batch.rows == 0 ||
                                !can_join(*jobs[0], job))) {
      ++it;
      continue;
    }
    if (!job.is_cancelled()) {
      rows += job.batch.rows;
      jobs.push_back(*it);
    }
    it = queue_.erase(it);
  }
}

void Predictor::predict(const std::vector<PredictJobPtr>& jobs) {
  const auto begin = Clock::now();
  if (jobs.size() == 1)
    predict_alone(*jobs[0]);
  else
    predict_together(jobs);
  has_run_ = true;
  metrics_.observe(metric("predict_run_seconds"),
                   std::chrono::duration<double>(Clock::now() - begin).count());
  int64_t rows = 0;
  for (const PredictJobPtr& job : jobs) rows += job->batch.rows;
  metrics_.add(metric("predict_batches_total"));
  metrics_.add(metric("predict_rows_total"), static_cast<double>(rows));
  for (const PredictJobPtr& job : jobs) job->finish();
}

void Predictor::predict_alone(PredictJob& job) {
  try {
    if (job.values) {
      onnx::Session& session = *runner_->onnx();
      job.value_outputs = onnx::named_outputs(session, session.run(*job.values));
      for (onnx::NamedOutput& each : job.value_outputs)
        if (auto* array = std::get_if<Array>(&each.content)) *array = runtime::copied(*array);
    } else {
      deliver(job, compute(job.batch, job.decode));
    }
  } catch (const Error& error) {
    job.error = error;
  } catch (const std::bad_alloc&) {
    job.error = Error(ErrorCode::kDevice, "there is not enough memory for this prediction");
  } catch (const std::exception& error) {
    job.error = Error(ErrorCode::kInternal, error.what());
  }
}

/// As one batch. Where that fails, or changes results, they are predicted one by one: an error may
/// be that of one request, and a graph may compute across its rows.
void Predictor::predict_together(const std::vector<PredictJobPtr>& jobs) {
  const auto one_by_one = [&] {
    for (const PredictJobPtr& job : jobs) predict_alone(*job);
  };
  std::vector<Ran> parts;
  try {
    const infer::InputBatch batch = joined(jobs);
    const Ran all = compute(batch, jobs[0]->decode);
    int64_t first = 0;
    for (const PredictJobPtr& job : jobs) {
      const int64_t rows = job->batch.rows;
      Ran& part = parts.emplace_back();
      for (const Array& output : all.outputs) {
        if (output.shape.empty() || output.shape[0] != batch.rows)
          fail(ErrorCode::kUsage, "an output has no row for each row of the inputs");
        part.outputs.push_back(rows_of(output, first, rows));
      }
      if (!all.decoded.empty())
        part.decoded.assign(all.decoded.begin() + first, all.decoded.begin() + first + rows);
      first += rows;
    }
    if (!is_checked_) {
      for (size_t i = 0; i < jobs.size(); ++i) {
        const Ran own = compute(jobs[i]->batch, jobs[i]->decode);
        const bool same = std::equal(own.outputs.begin(), own.outputs.end(),
                                     parts[i].outputs.begin(), parts[i].outputs.end(), are_close) &&
                          std::equal(own.decoded.begin(), own.decoded.end(),
                                     parts[i].decoded.begin(), parts[i].decoded.end(),
                                     [](const auto& a, const auto& b) { return a.json == b.json; });
        if (!same) fail(ErrorCode::kUsage, "rows of a batch depend on each other");
      }
      is_checked_ = true;
    }
    for (size_t i = 0; i < jobs.size(); ++i) deliver(*jobs[i], std::move(parts[i]));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUsage) joins_ = false;
    one_by_one();
  } catch (const std::exception&) {
    one_by_one();
  }
}

Predictor::Ran Predictor::compute(const infer::InputBatch& batch, bool decode) {
  Ran out;
  if (!infer::runs_on(batch)) return out;
  runner_->reset();
  if (decode && decoder_) {
    out.decoded = decoder_->decode(*runner_, batch);
    return out;
  }
  // The model overwrites its results in its next run.
  for (const Array& each : runner_->run(batch.inputs)) out.outputs.push_back(runtime::copied(each));
  out.outputs = units_->restored(out.outputs);
  return out;
}

void Predictor::deliver(PredictJob& job, Ran results) {
  job.names = runner_->outputs();
  if (!job.decode) {
    job.outputs = std::move(results.outputs);
    return;
  }
  const auto add = [&](const std::string& row) { job.rows.push_back(row); };
  job.rows.clear();
  if (decoder_)
    infer::json_decoded(job.shown, add)->add(job.batch, results.decoded);
  else
    infer::json_results(*runner_, job.shown, add)->add(job.batch, results.outputs);
}

}  // namespace paddle::serve
