// paddle-eval RUN|MODEL: the loss and the metrics of a trained model, as the run computed them.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/interrupt.h"
#include "comm/join.h"
#include "comm/simulation.h"
#include "commands.h"
#include "common.h"
#include "common_model_files.h"
#include "common_observer.h"
#include "common_options.h"
#include "common_ranks.h"
#include "lang/syntax/program.h"
#include "llm/language_model.h"
#include "sections/sections.h"
#include "train/records/metrics_log.h"
#include "train/runs/evaluated_model.h"

namespace {

using namespace paddle;

/// The options of the command line, and the kind of its subject.
struct EvalRequest {
  std::string subject;  ///< a run, a model or its file
  std::vector<std::string> overrides;
  std::string words = "valid", details, config_file, weights;
  bool eager = false, dry_run = false, is_file = false, is_language_model = false;
};

train::EvaluatedModel open_subject(const EvalRequest& r, bool has_ranks, std::string& part) {
  train::EvaluatedModel out =
      r.is_language_model ? train::open_evaluated_config(r.config_file, r.overrides)
      : r.is_file ? train::open_evaluated_file(r.subject, r.config_file, r.overrides, r.weights)
                  : train::open_evaluated_folder(r.subject, r.overrides);
  if (r.is_language_model) out.model = r.subject;
  part = train::choose_evaluation_data(out.config, r.words, "--data");
  train::settle_for_evaluation(out.config, has_ranks);
  out.options.eager = r.eager;
  out.options.details = r.details;
  return out;
}

/// One rank of an evaluation; the first one prints.
int evaluate_rank(const EvalRequest& request, train::EvaluatedModel subject,
                  const std::string& part,
                  const std::shared_ptr<comm::Communicator>& communicator) {
  const bool is_root = communicator->is_root();
  subject.options.communicator = communicator;
  cli::WarningObserver warnings;
  train::TrainObserver silent;
  train::Trainer trainer(std::move(subject.config), subject.options,
                         is_root ? static_cast<train::TrainObserver&>(warnings) : silent);
  const train::MemoryPlan plan = trainer.prepare();
  if (request.dry_run && is_root)
    cli::print(nlohmann::ordered_json({{"model", subject.model},
                                       {"data", part},
                                       {"parameters", trainer.parameter_count()},
                                       {"memory_bytes", plan.total()},
                                       {"available_bytes", plan.available},
                                       {"fits", plan.fits()}})
                   .dump() +
               "\n");
  plan.require_fit();
  if (request.dry_run) return 0;
  const auto line = trainer.evaluate();
  if (!line) return 128 + pending_interrupt();
  if (!is_root) return 0;
  if (!request.details.empty() && !file_exists(request.details))
    fail(ErrorCode::kUsage,
         "--details: no metric of the config compares scores with classes (such ",
         "as accuracy(logits, label))");
  nlohmann::ordered_json out = {
      {"model", subject.model}, {"data", part}, {"samples", line->samples}};
  out["loss"] = train::number_or_null<nlohmann::ordered_json>(line->loss);
  for (const auto& [name, value] : line->metrics)
    out[name] = train::number_or_null<nlohmann::ordered_json>(value);
  for (const auto& [name, interval] : line->intervals)
    out["intervals"][name] = {interval.low, interval.high};
  cli::print(out.dump() + "\n");
  return 0;
}

/// All ranks as threads of this process. The model is opened for each of them.
int simulate(int ranks, const EvalRequest& request) {
  std::string part;
  std::vector<train::EvaluatedModel> subjects;
  for (int rank = 0; rank < ranks; ++rank) subjects.push_back(open_subject(request, true, part));
  int status = 0;
  comm::simulate(ranks, [&](const std::shared_ptr<comm::Communicator>& communicator) {
    const int ended =
        evaluate_rank(request, std::move(subjects[static_cast<size_t>(communicator->rank())]), part,
                      communicator);
    if (communicator->is_root()) status = ended;
  });
  return status;
}

int run_eval(int argc, char** argv) {
  cli::App app{"Computes the loss and the metrics of a trained model."};
  app.footer(
      "MODEL is a run folder, its model/ or a checkpoint; or, with --config, weights "
      "(.safetensors), an ONNX file, a model file[:variant] with --weights, a Hugging Face folder "
      "or a GGUF file. Prints one line of JSON.");
  std::vector<std::string> arguments;
  EvalRequest request;
  bool json = false;
  int simulated = 1;
  app.add_option("MODEL", arguments,
                 "the run, the model or its file, then key=value overrides of the config");
  app.add_option("--config", request.config_file,
                 "of a model without a config of its own: the config with loss, metrics and data");
  app.add_option("--weights", request.weights, "weights of a model file (safetensors)");
  app.add_option("--data", request.words,
                 "valid, test, train, CONFIG.yaml[:part], or a file or folder that is read as the "
                 "run's own data");
  app.add_option("--details", request.details,
                 "write the confusion matrix, a table of the classes, curves and the worst samples "
                 "as JSON to this file");
  app.add_flag("--eager", request.eager, "run operation by operation, as a run with --eager did");
  app.add_flag("--dry-run", request.dry_run,
               "check everything, print the memory that is needed, compute nothing");
  app.add_option("--simulate", simulated,
                 "run N ranks, which share the data as parallel.data=N says, as threads of this "
                 "process")
      ->check(cli::in_range(1, 1024));
  app.add_flag("--json", json, "accepted for scripts: the output is JSON in any case");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  request.overrides = cli::take_overrides(arguments);
  if (arguments.size() != 1)
    fail(ErrorCode::kUsage, arguments.empty() ? "no run is given" : "one run is expected",
         " (see paddle-eval --help)");
  request.subject = arguments[0];
  const std::string source = lang::split_variant(request.subject).first;
  request.is_language_model = llm::is_language_model(request.subject);
  request.is_file = (file_exists(source) && !is_directory(source)) || request.is_language_model;
  if (!request.weights.empty() && (!request.is_file || request.is_language_model))
    fail(ErrorCode::kUsage, "--weights is for model files; ", request.subject,
         " has its own weights");
  if (!request.is_file && !is_directory(request.subject))
    fail(ErrorCode::kUsage, request.subject, ": no such run or model folder");
  if (!request.is_file && !request.config_file.empty())
    fail(ErrorCode::kUsage, "--config: ", request.subject, " has a config of its own");
  if (request.is_file && request.config_file.empty())
    fail(ErrorCode::kUsage, request.subject,
         ": needs --config CONFIG, which names the loss, metrics and data");
  if (request.is_language_model)
    request.overrides.push_back("model=" + cli::quoted(std::filesystem::absolute(request.subject)));
  if (request.is_file)
    request.overrides = cli::with_model_files(request.config_file, std::move(request.overrides));
  watch_for_interrupts();
  const comm::Membership membership = comm::membership_from_environment();
  cli::check_simulated(membership, simulated);
  const bool has_ranks = membership.size > 1;
  for (const std::string& each : request.overrides)
    if (each.starts_with("parallel") && !has_ranks && simulated == 1)
      fail(ErrorCode::kUsage, each,
           " has no effect on one rank: start ranks with paddle-launch -n N, or --simulate N");
  if (simulated > 1) return simulate(simulated, request);
  const auto communicator = std::make_shared<comm::Communicator>(
      has_ranks ? comm::join(membership, comm::JoinOptions::from_environment()) : nullptr);
  cli::use_threads_of_rank(membership, 0);
  std::string part;
  train::EvaluatedModel subject = open_subject(request, has_ranks, part);
  return evaluate_rank(request, std::move(subject), part, communicator);
}

}  // namespace

namespace paddle::cli {

int eval_command(int argc, char** argv) {
  return run_tool([&] {
    register_sections();
    return run_eval(argc, argv);
  });
}

}  // namespace paddle::cli
