#include "paddle/trainer.h"

#include <utility>

#include "api/access.h"
#include "api/compile_options.h"
#include "config/document.h"
#include "sections/sections.h"
#include "train/job/trainer.h"

namespace paddle::v0 {
namespace {

/// The sections of tools that the library does not have are checked all the same.
train::RunConfig read(const std::string& path, const std::vector<std::string>& overrides) {
  register_sections();
  return train::read_config(path, overrides);
}

LogLine public_line(const train::LogLine& line) {
  LogLine out;
  out.kind = line.kind;
  out.step = line.step;
  out.epoch = line.epoch;
  out.loss = line.loss;
  out.learning_rate = line.learning_rate;
  out.samples_per_second = line.samples_per_second;
  out.seconds = line.seconds;
  out.metrics = line.metrics;
  return out;
}

TrainStep public_step(const train::StepReport& report) {
  TrainStep out;
  out.step = report.step;
  out.epoch = report.epoch;
  out.loss = report.loss;
  out.learning_rate = report.learning_rate;
  if (report.evaluation) out.evaluation = public_line(*report.evaluation);
  return out;
}

/// Collects the log and hands each line to the caller's function.
class Observer final : public train::TrainObserver {
 public:
  explicit Observer(const TrainOptions& options) : options_(options) {}
  void note(const std::string& line) override {
    if (options_.on_note) options_.on_note(line);
  }
  void warn(const std::string& line) override {
    if (options_.on_warning) options_.on_warning(line);
  }
  void log(const train::LogLine& line) override {
    lines.push_back(public_line(line));
    if (options_.on_log) options_.on_log(lines.back());
  }
  bool wants_steps() const override { return options_.on_step != nullptr; }
  void step(const train::StepReport& report) override { options_.on_step(public_step(report)); }
  void checkpoint(const std::string& folder) override {
    if (options_.on_checkpoint) options_.on_checkpoint(folder);
  }
  std::vector<LogLine> lines;

 private:
  const TrainOptions& options_;
};

}  // namespace

class Trainer::Impl {
 public:
  Impl(const std::string& path, TrainOptions options)
      : options_(std::move(options)), config_(read(path, options_.overrides)) {
    name_ = config_.name;
    yaml_ = config::dump_yaml(config_.document);
    for (const std::string& line : config_.warnings)
      if (options_.on_warning) options_.on_warning(line);
  }

  const std::string& name() const { return name_; }
  const std::string& yaml() const { return yaml_; }

  TrainResult run() {
    open();
    const train::TrainResult result = trainer_->run();
    trainer_.reset();  // another run may use the folder
    return result_of(result);
  }

  std::optional<TrainStep> step() {
    if (!trainer_) {
      open();
      trainer_->begin();
    }
    const auto report = trainer_->step();
    if (!report) return std::nullopt;
    return public_step(*report);
  }

  std::string save() { return started().save(); }
  TrainResult finish() {
    const train::TrainResult result = started().finish();
    trainer_.reset();
    return result_of(result);
  }

 private:
  train::Trainer& started() {
    if (!trainer_)
      fail(paddle::ErrorCode::kUsage,
           used_ ? "Trainer: the run is over" : "Trainer: the run has no steps yet");
    return *trainer_;
  }

  /// Makes the trainer of the run, and locks its folder.
  void open() {
    if (std::exchange(used_, true))
      fail(paddle::ErrorCode::kUsage,
           "Trainer::run: the run is over; make another Trainer with resume = true to continue it");
    train::TrainOptions train;
    train.output = output();
    train.resume = options_.resume;
    train.overwrite = options_.overwrite;
    train.eager = options_.eager;
    train.initial_weights = options_.initial_weights;
    train.allow_missing = options_.allow_missing;
    train.allow_unused = options_.allow_unused;
    if (train.resume && train.overwrite)
      fail(paddle::ErrorCode::kUsage, "TrainOptions: resume and overwrite are mutually exclusive");
    config_.compile.target = target_of(options_.device, options_.memory);
    trainer_ = std::make_unique<train::Trainer>(std::move(config_), train, observer_);
  }

  std::string output() const { return options_.output.empty() ? "runs/" + name_ : options_.output; }

  TrainResult result_of(const train::TrainResult& result) {
    TrainResult out;
    out.steps = result.steps;
    out.run_folder = output();
    out.model_folder = result.model_folder;
    out.checkpoint = result.checkpoint;
    out.log = std::move(observer_.lines);
    if (result.last_valid) out.last_valid = public_line(*result.last_valid);
    return out;
  }

  TrainOptions options_;
  train::RunConfig config_;
  std::string name_, yaml_;
  bool used_ = false;
  Observer observer_{options_};
  std::unique_ptr<train::Trainer> trainer_;  ///< last: it uses the observer
};

Trainer::Trainer(const std::string& config, TrainOptions options)
    : impl_(translated([&] { return std::make_unique<Impl>(config, std::move(options)); })) {}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

const std::string& Trainer::name() const { return impl_->name(); }
std::string Trainer::resolved_config() const { return impl_->yaml(); }
TrainResult Trainer::run() {
  return translated([&] { return impl_->run(); });
}
std::optional<TrainStep> Trainer::step() {
  return translated([&] { return impl_->step(); });
}
std::string Trainer::save() {
  return translated([&] { return impl_->save(); });
}
TrainResult Trainer::finish() {
  return translated([&] { return impl_->finish(); });
}

}  // namespace paddle::v0
