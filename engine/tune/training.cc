#include "tune/training.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/limits.h"
#include "base/parallel.h"
#include "base/text.h"
#include "train/job/trainer.h"
#include "tune/comparison.h"
#include "tune/kernel_search.h"
#include "tune/schedule_search.h"

namespace paddle::tune {
namespace {

/// Requests of the plans of a run: for kernels and for schedules of fusion groups.
struct Requests {
  Requests(KernelChoices* choices, codegen::ScheduleHook* schedules)
      : kernels(choices), groups(schedules) {}
  KernelRecorder kernels;
  GroupRecorder groups;
};

/// A trainer that only makes steps. Plans and scratch are made for a number of threads, which is
/// set again before each use.
class Training {
 public:
  Training(train::RunConfig config, int threads, std::shared_ptr<Requests> requests)
      : threads_(threads), requests_(std::move(requests)) {
    set_thread_count(threads_);
    const codegen::ScheduleHookScope scope(&requests_->groups);
    // A table that the config names is opened by the trainer, and not searched for.
    if (config.kernel_table.empty()) config.compile.prepare.choices = &requests_->kernels;
    train::TrainOptions options;
    options.benchmark = 1;  // no folder, no validation data
    trainer_ = std::make_unique<train::Trainer>(std::move(config), options, observer_);
    const train::MemoryPlan plan = trainer_->prepare();
    plan.require_fit();
    if (2 * plan.total() > plan.available)
      fail(ErrorCode::kDevice, "two copies of the run, to be compared, need ",
           human_bytes(2 * plan.total()), " of memory; there are ", human_bytes(plan.available));
  }
  train::TimedStep step() {
    set_thread_count(threads_);
    const codegen::ScheduleHookScope scope(&requests_->groups);
    return trainer_->timed_step();
  }
  const program::ParameterStore& store() const { return trainer_->store(); }

 private:
  train::TrainObserver observer_;
  int threads_;
  std::shared_ptr<Requests> requests_;
  std::unique_ptr<train::Trainer> trainer_;
};

bool has_same_bits(const Array& a, const Array& b) {
  const Array x = a.on_host().contiguous(), y = b.on_host().contiguous();
  return x.dtype == y.dtype && x.shape == y.shape &&
         std::memcmp(x.raw(), y.raw(), static_cast<size_t>(storage_bytes(x.dtype, x.size()))) == 0;
}

/// Whether parameters, optimizer states and running statistics are the same.
bool has_same_bits(const program::ParameterStore& a, const program::ParameterStore& b) {
  return std::ranges::equal(a.parameters, b.parameters,
                            [](const auto& x, const auto& y) {
                              return x.first == y.first &&
                                     has_same_bits(x.second.value, y.second.value);
                            }) &&
         std::ranges::equal(a.states, b.states, [](const auto& x, const auto& y) {
           return x.first == y.first && has_same_bits(x.second, y.second);
         });
}

class TrainingRunner final : public Runner {
 public:
  explicit TrainingRunner(std::unique_ptr<Training> training) : training_(std::move(training)) {
    for (int i = 0; i < 3; ++i) {
      const train::TimedStep step = training_->step();
      const double seconds = static_cast<double>(step.end - step.begin) * 1e-9;
      if (seconds < kSlow) continue;
      if (i == 0) first_ = {seconds, seconds / static_cast<double>(step.samples)};
      break;
    }
  }
  FirstRun first_run() const override { return first_; }
  double block(double seconds) override {
    int64_t time = 0, samples = 0;
    while (samples == 0 || static_cast<double>(time) < seconds * 1e9) {
      const train::TimedStep step = training_->step();
      time += step.end - step.begin;
      samples += step.samples;
    }
    return static_cast<double>(time) * 1e-9 / static_cast<double>(samples);
  }

 private:
  std::unique_ptr<Training> training_;
  FirstRun first_;
};

class TrainingTarget final : public TuningTarget {
 public:
  explicit TrainingTarget(TrainingOptions options) : options_(std::move(options)) {
    const train::RunConfig config = read({});
    name_ = config.name;
    start_["train.threads"] = std::to_string(thread_count());
    start_["data.workers"] = std::to_string(config.data.loader.workers);
    start_["data.prefetch_bytes"] = std::to_string(config.data.loader.prefetch_bytes);
    start_["data.batch_size"] = std::to_string(config.data.loader.batch_size);
    start_["precision"] = train::precision_name(config);
    start_["compile.layout"] = config.compile.layout ? "true" : "false";
    start_["compile.codegen"] = config.compile.prepare.codegen ? "true" : "false";
    start_["compile.fusion"] = config.compile.fusion ? "true" : "false";
    start_["compile.kernels"] = config.kernel_table;
    start_[kSchedules] = kAsCached;
    start_["parallel.recompute"] = !config.parallel.recompute                  ? "none"
                                   : config.parallel.recompute_budget          ? "a budget"
                                   : config.parallel.recompute->layers.empty() ? "full"
                                                                               : "layers";
  }

  std::string name() const override { return name_; }
  std::string kind() const override { return "training"; }
  std::vector<std::string> dimensions() const override {
    return {"threads", "precision", "batch", "kernels", "codegen", "recompute", "loader"};
  }
  Settings start() const override { return start_; }

  std::vector<Change> candidates(const std::string& dimension, const Settings& now,
                                 const Budget& budget) override {
    std::vector<Change> out;
    const auto number = [&](const char* key) { return std::stoll(now.at(key)); };
    const auto add = [&](const char* key, const std::string& value) {
      if (now.at(key) != value) out.push_back({key, value});
    };
    if (dimension == "threads") {
      const int cores = available_cores();
      for (const int threads : {cores, (cores + 1) / 2, (cores + 3) / 4, 1})
        add("train.threads", std::to_string(threads));
    } else if (dimension == "loader") {
      const int64_t cores = available_cores(), start = std::stoll(start_.at("data.workers"));
      for (const int64_t workers : {start + 1, 2 * start, cores, int64_t{0}})
        if (workers <= std::max<int64_t>(2 * cores, start))
          add("data.workers", std::to_string(workers));
      if (now.at("data.workers") != "0")
        add("data.prefetch_bytes",
            std::to_string(4 * std::stoll(start_.at("data.prefetch_bytes"))));
    } else if (dimension == "precision") {
      if (now.at("precision") == "float32") add("precision", "bfloat16");
    } else if (dimension == "batch") {
      add("data.batch_size", std::to_string(2 * number("data.batch_size")));
    } else if (dimension == "kernels") {
      if (!budget.measures)
        out.push_back({"compile.kernels", "a table of faster alternatives"});
      else if (start_.at("compile.kernels").empty())
        if (const std::string table = kernels_.find(requests(now).kernels.problems(), budget);
            !table.empty())
          add("compile.kernels", table);
      for (const char* key : {"compile.layout", "compile.codegen", "compile.fusion"})
        add(key, start_.at(key) == "true" ? "false" : "true");
    } else if (dimension == "recompute") {
      // As little as memory allows: what fits is a matter of trying.
      if (start_.at("parallel.recompute") == "none") return out;
      add("parallel.recompute", "none");
      if (now.at("parallel.recompute") != "none")
        for (const double share : {0.45, 0.3, 0.2})
          add("parallel.recompute",
              str("{budget: ",
                  static_cast<int64_t>(share * static_cast<double>(limits().memory)) >> 20,
                  " MiB}"));
    } else if (dimension == "codegen") {
      if (!budget.measures)
        out.push_back({kSchedules, "a table of faster alternatives"});
      else if (now.at("compile.codegen") == "true")
        if (const std::string table = schedules_.find(requests(now).groups.problems(), budget);
            !table.empty())
          add(kSchedules, table);
    }
    return out;
  }

  std::unique_ptr<Runner> open(const Settings& settings) override {
    return std::make_unique<TrainingRunner>(training(settings));
  }

  std::optional<std::string> rejection_reason(const Settings& now, const Change& change,
                                              const Budget& budget) override {
    if (change.key != "precision") return "";
    Settings settings = now;
    settings[change.key] = change.value;
    const auto loss = late_loss(settings, budget), reference = late_loss(now, budget);
    if (!loss || !reference) return std::nullopt;
    const double before = *reference, after = *loss;
    const double moved = std::abs(after - before) / std::max(std::abs(before), 1e-12);
    if (moved <= options_.loss_tolerance) return "";
    return str("the loss of steps 41 to 50 moves by ", std::round(1000 * moved) / 10,
               "%, more than ", 100 * options_.loss_tolerance, "%");
  }

  bool same_bits(const Settings& a, const Settings& b) override {
    const auto x = training(a), y = training(b);
    for (int i = 0; i < 5; ++i)
      if (x->step().loss != y->step().loss) return false;
    return has_same_bits(x->store(), y->store());
  }

  std::string publish(const Change& change, const std::string& folder) override {
    if (change.key == kSchedules) {
      schedules_.publish(change.value);
      return "";
    }
    return change.key == "compile.kernels" ? kernels_.publish(change.value, folder) : change.value;
  }
  std::string state() const override {
    return state_text(kernels_.findings(), schedules_.findings());
  }
  void restore(const std::string& state) override {
    read_state(state, kernels_.findings(), schedules_.findings());
  }

 private:
  /// The config with these settings; those that are as at the start are not stated.
  train::RunConfig read(const Settings& settings) {
    std::vector<std::string> overrides = options_.overrides;
    for (const auto& [key, value] : settings)
      if (key != "compile.kernels" && key != kSchedules && value != start_.at(key))
        overrides.push_back(key + "=" + value);
    return train::read_config(options_.config, overrides);
  }

  std::unique_ptr<Training> training(const Settings& settings) {
    const auto requests = std::make_shared<Requests>(kernels_.table(settings.at("compile.kernels")),
                                                     schedules_.hook(settings.at(kSchedules)));
    auto out = std::make_unique<Training>(read(settings), std::stoi(settings.at("train.threads")),
                                          requests);
    requests_[settings] = requests;
    return out;
  }

  /// Requests of the plans of a step under these settings.
  const Requests& requests(const Settings& settings) {
    set_thread_count(std::stoi(settings.at("train.threads")));
    const auto it = requests_.find(settings);
    if (it != requests_.end()) return *it->second;
    training(settings)->step();
    return *requests_.at(settings);
  }

  /// Mean loss of steps 41 to 50; nothing if they would take longer than the budget.
  std::optional<double> late_loss(const Settings& settings, const Budget& budget) {
    constexpr int kSteps = 50, kCounted = 10;
    const auto known = losses_.find(settings);
    if (known != losses_.end()) return known->second;
    const auto run = training(settings);
    run->step();
    double sum = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 1; i < kSteps; ++i) {
      if (budget.stop()) return std::nullopt;
      const double loss = run->step().loss;
      if (i >= kSteps - kCounted) sum += loss / kCounted;
      if (i == 1 && (kSteps - 2) * seconds_since(begin) > budget.seconds) return std::nullopt;
    }
    return losses_[settings] = sum;
  }

  TrainingOptions options_;
  std::string name_;
  Settings start_;
  KernelSearch kernels_;
  ScheduleSearch schedules_;
  std::map<Settings, std::shared_ptr<Requests>> requests_;  ///< of runs that were opened
  std::map<Settings, double> losses_;                       ///< of steps 41 to 50
};

}  // namespace

std::unique_ptr<TuningTarget> training_target(TrainingOptions options) {
  return std::make_unique<TrainingTarget>(std::move(options));
}

}  // namespace paddle::tune
