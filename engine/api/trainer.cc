#include "paddle/trainer.h"

#include "api/access.h"
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
    if (std::exchange(used_, true))
      fail(paddle::ErrorCode::kUsage,
           "Trainer::run: the run is over; make another Trainer with resume = true to continue it");
    train::TrainOptions train;
    train.output = options_.output.empty() ? "runs/" + name_ : options_.output;
    train.resume = options_.resume;
    train.overwrite = options_.overwrite;
    train.eager = options_.eager;
    train.initial_weights = options_.initial_weights;
    train.allow_missing = options_.allow_missing;
    train.allow_unused = options_.allow_unused;
    if (train.resume && train.overwrite)
      fail(paddle::ErrorCode::kUsage, "TrainOptions: resume and overwrite exclude each other");
    Observer observer(options_);
    train::Trainer trainer(std::move(config_), train, observer);
    trainer.claim_folder();
    trainer.prepare();
    const train::TrainResult result = trainer.run();
    TrainResult out;
    out.steps = result.steps;
    out.run_folder = train.output;
    out.model_folder = result.model_folder;
    out.checkpoint = result.checkpoint;
    out.log = std::move(observer.lines);
    if (result.last_valid) out.last_valid = public_line(*result.last_valid);
    return out;
  }

 private:
  TrainOptions options_;
  train::RunConfig config_;
  std::string name_, yaml_;
  bool used_ = false;
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

}  // namespace paddle::v0
