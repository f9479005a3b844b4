#include "tune/inference.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/limits.h"
#include "base/parallel.h"
#include "base/text.h"
#include "base/thread_scope.h"
#include "infer/random_inputs.h"
#include "infer/streams.h"
#include "runtime/execute.h"
#include "tune/comparison.h"
#include "tune/kernel_search.h"
#include "tune/schedule_search.h"

namespace paddle::tune {
namespace {

using Clock = std::chrono::steady_clock;

int64_t samples_of(const std::vector<Array>& inputs) {
  return inputs.empty() || inputs[0].shape.empty() ? 1 : std::max<int64_t>(1, inputs[0].shape[0]);
}

class ModelRunner final : public Runner {
 public:
  ModelRunner(std::unique_ptr<program::Model> model, std::vector<Array> inputs, int threads,
              codegen::ScheduleHook* schedules)
      : model_(std::move(model)),
        inputs_(std::move(inputs)),
        threads_(threads),
        schedules_(schedules) {
    set_thread_count(threads_);
    const codegen::ScheduleHookScope scope(schedules_);
    for (int i = 0; i < 2; ++i) model_->run(inputs_);
  }
  double block(double seconds) override {
    set_thread_count(threads_);
    const codegen::ScheduleHookScope scope(schedules_);
    const auto begin = Clock::now();
    double elapsed = 0;
    int64_t runs = 0;
    while (runs == 0 || elapsed < seconds) {
      model_->run(inputs_);
      ++runs;
      elapsed = seconds_since(begin);
    }
    return elapsed / static_cast<double>(runs * samples_of(inputs_));
  }

 private:
  std::unique_ptr<program::Model> model_;
  std::vector<Array> inputs_;
  int threads_;
  codegen::ScheduleHook* schedules_;
};

/// Several batches at a time.
class StreamsRunner final : public Runner {
 public:
  StreamsRunner(program::Model& model, std::vector<Array> inputs, int64_t streams, int threads,
                codegen::ScheduleHook* schedules)
      : inputs_(std::move(inputs)), schedules_(schedules) {
    {
      const codegen::ScheduleHookScope scope(schedules_);
      model.run(inputs_);  // compiles what the streams share
    }
    streams_ = std::make_unique<infer::Streams>(model, streams, threads);
    runs_.resize(streams_->size());
    run(0);
  }
  double block(double seconds) override {
    const auto begin = Clock::now();
    run(seconds);
    const double elapsed = seconds_since(begin);
    const int64_t runs = std::accumulate(runs_.begin(), runs_.end(), int64_t{0});
    return elapsed / static_cast<double>(runs * samples_of(inputs_));
  }

 private:
  /// At least two runs of each stream, and as many as begin within the time.
  void run(double seconds) {
    streams_->run([&, begin = Clock::now()](size_t stream) {
      const codegen::ScheduleHookScope scope(schedules_);
      for (runs_[stream] = 0; runs_[stream] < 2 || seconds_since(begin) < seconds; ++runs_[stream])
        streams_->model(stream).run(inputs_);
    });
  }

  std::vector<Array> inputs_;
  codegen::ScheduleHook* schedules_;
  std::unique_ptr<infer::Streams> streams_;
  std::vector<int64_t> runs_;
};

class InferenceTarget final : public TuningTarget {
 public:
  explicit InferenceTarget(InferenceOptions options) : options_(std::move(options)) {
    const auto model = program::load_model(options_.model, options_.load);
    name_ = model->name().empty() ? std::filesystem::path(options_.model).stem().string()
                                  : model->name();
    has_batch_ = !model->inputs().empty() && !model->inputs()[0].second.shape.empty() &&
                 model->inputs()[0].second.shape[0].is_symbol();
    start_ = {{"threads", std::to_string(thread_count())},
              {"streams", "1"},
              {"batch", std::to_string(options_.batch)},
              {"precision", text(model->precision())},
              {"kernels", ""},
              {kSchedules, kAsCached},
              {"no-codegen", "false"},
              {"no-batch-tiling", "false"},
              {"no-winograd", "false"}};
    is_onnx_ = model->onnx() != nullptr;
    has_streams_ = can_clone(*model);
    inputs(*model, options_.batch);  // an input whose size is not known is rejected here
  }

  std::string name() const override { return name_; }
  std::string kind() const override { return "inference"; }
  std::vector<std::string> dimensions() const override {
    return {"threads", "precision", "batch", "streams", "kernels", "codegen"};
  }
  Settings start() const override { return start_; }

  std::vector<Change> candidates(const std::string& dimension, const Settings& now,
                                 const Budget& budget) override {
    // Kernels and schedules are timed on the threads of one stream.
    std::optional<ThreadScope> threads;
    if (dimension == "kernels" || dimension == "codegen") threads.emplace(threads_of_stream(now));
    std::vector<Change> out;
    const auto add = [&](const char* key, const std::string& value) {
      if (now.at(key) != value) out.push_back({key, value});
    };
    if (dimension == "threads") {
      const int cores = available_cores();
      for (const int threads : {cores, (cores + 1) / 2, (cores + 3) / 4, 1})
        add("threads", std::to_string(threads));
    } else if (dimension == "precision") {
      if (!is_onnx_ && now.at("precision") == "float32")
        for (const char* precision : {"bfloat16", "float16"}) add("precision", precision);
    } else if (dimension == "batch") {
      constexpr int64_t kMax = 1024;
      const int64_t next = 2 * std::stoll(now.at("batch"));
      if (has_batch_ && next <= kMax) add("batch", std::to_string(next));
    } else if (dimension == "streams") {
      const int64_t next = 2 * std::stoll(now.at("streams"));
      if (has_streams_ &&
          next <= std::min<int64_t>(std::stoll(now.at("threads")), infer::Streams::kMax))
        add("streams", std::to_string(next));
    } else if (dimension == "kernels") {
      if (!budget.measures)
        out.push_back({"kernels", "a table of faster alternatives"});
      else if (const std::string table = kernels_.find(problems(now), budget); !table.empty())
        add("kernels", table);
      for (const char* key : {"no-batch-tiling", "no-codegen", "no-winograd"}) add(key, "true");
    } else if (dimension == "codegen") {
      if (!budget.measures)
        out.push_back({kSchedules, "a table of faster alternatives"});
      else if (now.at("no-codegen") == "false")
        if (const std::string table = schedules_.find(groups(now), budget); !table.empty())
          add(kSchedules, table);
    }
    return out;
  }

  std::unique_ptr<Runner> open(const Settings& settings) override {
    auto model = load(settings, kernels_.table(settings.at("kernels")));
    const int64_t batch = std::stoll(settings.at("batch"));
    std::vector<Array> arrays = inputs(*model, batch);
    if (const int64_t streams = std::stoll(settings.at("streams")); streams > 1)
      return std::make_unique<StreamsRunner>(*model, std::move(arrays), streams,
                                             std::stoi(settings.at("threads")),
                                             schedules(settings));
    return std::make_unique<ModelRunner>(std::move(model), std::move(arrays),
                                         std::stoi(settings.at("threads")), schedules(settings));
  }

  std::optional<std::string> rejection_reason(const Settings& now, const Change& change,
                                              const Budget&) override {
    if (change.key != "precision") return "";
    Settings settings = now;
    settings[change.key] = change.value;
    const double error = difference(results(now), results(settings));
    if (error <= options_.tolerance) return "";
    return str("outputs move by ", std::round(1000 * error) / 10, "% of their norm, more than ",
               100 * options_.tolerance, "%");
  }
  bool same_bits(const Settings& a, const Settings& b) override {
    return are_same(results(a), results(b));
  }

  std::string publish(const Change& change, const std::string& folder) override {
    if (change.key == kSchedules) {
      schedules_.publish(change.value);
      return "";
    }
    return change.key == "kernels"
               ? (std::filesystem::path(folder) / kernels_.publish(change.value, folder)).string()
               : change.value;
  }
  std::string state() const override {
    return state_text(kernels_.findings(), schedules_.findings());
  }
  void restore(const std::string& state) override {
    read_state(state, kernels_.findings(), schedules_.findings());
  }

 private:
  static bool can_clone(const program::Model& model) {
    try {
      model.clone();
      return true;
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kUsage) throw;
      return false;
    }
  }
  static int threads_of_stream(const Settings& settings) {
    return infer::threads_of_stream(std::stoi(settings.at("threads")), 0,
                                    std::stoll(settings.at("streams")));
  }
  static bool are_same(const std::vector<Array>& x, const std::vector<Array>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Array& p, const Array& q) {
      return p.dtype == q.dtype && p.shape == q.shape &&
             std::memcmp(p.raw(), q.raw(), static_cast<size_t>(storage_bytes(p.dtype, p.size()))) ==
                 0;
    });
  }

  std::unique_ptr<program::Model> load(const Settings& settings, KernelChoices* choices) {
    set_thread_count(std::stoi(settings.at("threads")));
    program::LoadOptions load = options_.load;
    const DType precision = *parse_dtype(settings.at("precision"));
    if (precision == DType::kBF16 || precision == DType::kF16) load.precision = precision;
    load.compile.prepare.codegen = settings.at("no-codegen") == "false";
    load.compile.batch_tiling = settings.at("no-batch-tiling") == "false";
    load.compile.prepare.allow_winograd = settings.at("no-winograd") == "false";
    load.compile.prepare.choices = choices;
    return program::load_model(options_.model, load);
  }

  static std::vector<Array> packed_results(program::Model& model,
                                           const std::vector<Array>& inputs) {
    std::vector<Array> out;
    for (const Array& y : model.run(inputs)) out.push_back(runtime::copied(y));
    return out;
  }

  /// Results on random inputs, packed; if a stream's differ from those of one stream, then these.
  std::vector<Array> results(const Settings& settings) {
    const auto model = load(settings, kernels_.table(settings.at("kernels")));
    codegen::ScheduleHook* const hook = schedules(settings);
    const codegen::ScheduleHookScope scope(hook);
    const std::vector<Array> random = inputs(*model, options_.batch);
    std::vector<Array> out = packed_results(*model, random);
    const int64_t count = std::stoll(settings.at("streams"));
    if (count == 1) return out;
    infer::Streams streams(*model, count, std::stoi(settings.at("threads")));
    std::vector<std::vector<Array>> of_streams(streams.size());
    streams.run([&](size_t i) {
      const codegen::ScheduleHookScope scope(hook);
      of_streams[i] = packed_results(streams.model(i), random);
    });
    for (const std::vector<Array>& each : of_streams)
      if (!are_same(each, out)) return each;
    return out;
  }

  /// The largest difference of an output, relative to its norm; infinite where one is not finite.
  static double difference(const std::vector<Array>& exact, const std::vector<Array>& other) {
    double largest = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      if (exact[i].dtype != DType::kF32) continue;
      double error = 0, norm = 0;
      for (int64_t j = 0; j < exact[i].size(); ++j) {
        const double x = exact[i].data<float>()[j], d = other[i].data<float>()[j] - x;
        error += d * d;
        norm += x * x;
      }
      const double relative = std::sqrt(error / std::max(norm, 1e-30));
      largest = std::max(largest, std::isfinite(relative) ? relative : INFINITY);
    }
    return largest;
  }

  std::vector<Array> inputs(const program::Model& model, int64_t batch) const {
    return infer::random_inputs(model, infer::dim_sizes(model, batch, options_.dims));
  }

  std::vector<KernelProblem> problems(const Settings& settings) {
    if (kernels_of_ == settings) return {};
    kernels_of_ = settings;
    KernelRecorder recorder(kernels_.table(settings.at("kernels")));
    const auto model = load(settings, &recorder);
    model->run(inputs(*model, std::stoll(settings.at("batch"))));
    return recorder.problems();
  }

  codegen::ScheduleHook* schedules(const Settings& settings) {
    return schedules_.hook(settings.at(kSchedules));
  }

  /// The groups that the model has under these settings.
  std::vector<GroupProblem> groups(const Settings& settings) {
    if (groups_of_ == settings) return {};
    groups_of_ = settings;
    GroupRecorder recorder(schedules(settings));
    const auto model = load(settings, kernels_.table(settings.at("kernels")));
    const codegen::ScheduleHookScope scope(&recorder);
    model->run(inputs(*model, std::stoll(settings.at("batch"))));
    return recorder.problems();
  }

  InferenceOptions options_;
  std::string name_;
  bool has_batch_ = false, is_onnx_ = false, has_streams_ = false;
  Settings start_;
  KernelSearch kernels_;
  ScheduleSearch schedules_;
  Settings kernels_of_, groups_of_;  ///< whose problems were recorded last
};

}  // namespace

std::unique_ptr<TuningTarget> inference_target(InferenceOptions options) {
  return std::make_unique<InferenceTarget>(std::move(options));
}

}  // namespace paddle::tune
