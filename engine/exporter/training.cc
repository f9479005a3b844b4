#include "exporter/training.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "exporter/exportable.h"
#include "exporter/onnxruntime.h"
#include "ir/replay.h"
#include "lang/syntax/program.h"
#include "runtime/execute.h"
#include "train/job/trainer.h"

namespace paddle::exporter {
namespace {

using Json = nlohmann::ordered_json;

class Notes final : public train::TrainObserver {
 public:
  explicit Notes(std::function<void(const std::string&)> note) : note_(std::move(note)) {}
  void warn(const std::string& line) override { note_(line); }

 private:
  std::function<void(const std::string&)> note_;
};

/// Rejects updates that happen at some steps only: the graph of a step is the same for all.
void reject_every(const lang::Expr& expression) {
  const bool updates = expression.kind == lang::ExprKind::kCall && !expression.children.empty() &&
                       expression.children[0] && expression.children[0]->text == "update";
  for (const lang::Argument& argument : expression.arguments) {
    const lang::Expr* value = argument.value.get();
    const bool each_step = value && value->kind == lang::ExprKind::kInteger && value->integer == 1;
    if (updates && argument.name == "every" && !each_step)
      throw Error(ErrorCode::kUsage,
                  "update: every= skips steps, which the graph of one step cannot do; --training "
                  "exports updates of each step (every=1)",
                  argument.where.location());
    if (value) reject_every(*value);
  }
  for (const lang::ExprPtr& child : expression.children)
    if (child) reject_every(*child);
}

void reject_every(const std::vector<lang::Stmt>& statements) {
  for (const lang::Stmt& statement : statements) {
    if (statement.value) reject_every(*statement.value);
    for (const lang::Branch& branch : statement.branches) reject_every(branch.body);
  }
}

train::RunConfig read(const ExportJob& job) {
  train::RunConfig config = train::read_config(job.model, job.load.overrides);
  if (config.accumulate > 1)
    fail(ErrorCode::kUsage, job.model, ": --training exports a step of one batch; this config ",
         "accumulates gradients of ", config.accumulate, " (train.accumulate=1)");
  reject_every(config.loss.statements);
  return config;
}

class Unchanged final : public ForwardingInterpreter {
 public:
  Tensors apply(const OpCall& call) override {
    const ScopedInterpreter below(next());
    return next().apply(call);
  }
};

/// A trainer that is prepared to run, with the function of its step as it was before passes changed
/// it for this machine.
class PreparedRun {
 public:
  PreparedRun(const ExportJob& job, bool dry_run,
              const std::function<void(const std::string&)>& note)
      : observer_(note) {
    train::TrainOptions options;
    options.benchmark = 1;  // no folder, no validation data
    options.dry_run = dry_run;
    options.initial_weights = job.load.weights;
    options.allow_missing = job.load.allow_missing;
    options.allow_unused = job.load.allow_unused;
    options.observe.stage = [this](const ir::Function& function, const std::string& stage) {
      if (function.name != "train" || stage != "trace" || step_) return;
      Unchanged unchanged;
      step_ = ir::retraced(function, unchanged);
    };
    train::RunConfig config = read(job);
    name_ = config.name;
    config.data.check_seconds = 0;  // nothing is trained
    trainer_ = std::make_unique<train::Trainer>(std::move(config), options, observer_);
    trainer_->prepare();
    if (!step_) fail(ErrorCode::kUsage, job.model, ": its step is not one function");
  }
  const std::string& name() const { return name_; }
  train::Trainer& trainer() { return *trainer_; }
  const ir::Function& step() const { return *step_; }

 private:
  Notes observer_;
  std::string name_;
  std::unique_ptr<ir::Function> step_;
  std::unique_ptr<train::Trainer> trainer_;
};

/// The inputs of the file for a step: fields by name, rates, the number of the step, and states.
std::vector<Array> inputs_for(const program::Model& file, const ir::Function& function,
                              const train::RecordedStep& step,
                              const std::map<std::string, Array>& states) {
  std::map<std::string, Array> given;
  size_t fields = 0, rates = 0;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const ir::Port& port = function.inputs[i];
    if (port.kind != ir::PortKind::kValue) continue;
    const DType dtype = function.body.arguments[i]->type.dtype;
    if (fields < step.fields.size())
      given[port.name] = step.fields[fields++].cast(dtype);
    else if (port.name.starts_with("learning_rate"))
      given[port.name] = Array::scalar(step.learning_rates.at(rates++)).cast(dtype);
    else if (port.name == "step")
      given[port.name] = Array::scalar(step.step);
    else
      given[port.name] = Array::scalar(1.0).cast(dtype);
  }
  std::vector<Array> out;
  for (const auto& [name, type] : file.inputs()) {
    const auto state = states.find(name);
    out.push_back(state == states.end() ? given.at(name) : state->second);
  }
  return out;
}

/// Losses of as many steps as the job asks for, by the trainer and by the file.
std::vector<CheckResult> check_steps(const ExportJob& job, const std::string& path,
                                     const onnx::ExportedModel& exported,
                                     const ir::Function& function, train::Trainer& trainer,
                                     const onnx::WeightLookup& first) {
  program::LoadOptions options;
  std::map<std::string, Array> states;
  for (const auto& [input, state] : exported.states) {
    states[input] = first(state);
    options.provided.insert(input);
  }
  const auto file = open_exported(job, path, options);
  const auto& names = file->outputs();
  const auto place = [&](const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name);
    ensure(at != names.end(), "the file has no output '", name, "'");
    return static_cast<size_t>(at - names.begin());
  };
  std::vector<CheckResult> out;
  for (int i = 0; i < job.checks; ++i) {
    const train::RecordedStep step = trainer.recorded_step();
    const auto& results = file->run(inputs_for(*file, function, step, states));
    CheckResult check;
    check.ran = true;
    check.dims["step"] = step.step;
    const double loss = results[place("loss")].number(0);
    const double allowed = 1e-5 + 1e-4 * std::abs(step.loss);
    check.largest_error = std::abs(loss - step.loss) / allowed;
    if (!(check.largest_error <= 1))
      check.difference = str("the loss is ", loss, ", that of the run ", step.loss);
    for (const auto& [input, output] : exported.next)
      states[input] = runtime::copied(results[place(output)]);
    out.push_back(check);
    if (!check.difference.empty()) break;
  }
  return out;
}

}  // namespace

std::vector<OperationForm> list_training_operations(const ExportJob& job) {
  return forms_of(PreparedRun(job, true, [](const std::string&) {}).step());
}

ExportResult run_training_export(const ExportJob& job,
                                 const std::function<void(const std::string&)>& note) {
  require_new_outputs(job, {job.output});
  PreparedRun run(job, false, note);
  train::Trainer& trainer = run.trainer();
  const ir::Function& function = run.step();
  // Steps change the values of the store.
  std::map<std::string, Array> first;
  for (const auto& [path, parameter] : trainer.store().parameters)
    first[path] = runtime::copied(parameter.value);
  for (const auto& [path, state] : trainer.store().states) first[path] = runtime::copied(state);
  const auto weight = [&](const std::string& path) { return first.at(path); };

  const auto check = [&](const std::string& file, const onnx::ExportedModel& exported) {
    return check_steps(job, file, exported, function, trainer, weight);
  };
  const Exportable step{job.output, run.name(), function, weight, job.metadata, check};
  return export_checked(job, {&step, 1})[0];
}

}  // namespace paddle::exporter
