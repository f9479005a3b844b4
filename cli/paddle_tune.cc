// paddle-tune CONFIG|MODEL: measures changes of the settings that decide speed, and writes those
// that help as a config; --parallel plans a strategy for a described cluster.

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/phase.h"
#include "commands.h"
#include "common.h"
#include "common_dims.h"
#include "common_model_files.h"
#include "common_options.h"
#include "sections/sections.h"
#include "train/config/run_config.h"
#include "tune/inference.h"
#include "tune/language_model.h"
#include "tune/parallel/planner.h"
#include "tune/parallel/published.h"
#include "tune/parallel/run_shape.h"
#include "tune/report.h"
#include "tune/training.h"
#include "tune/tune_section.h"

namespace {

using namespace paddle;
namespace fs = std::filesystem;

struct TuneOptions {
  std::vector<std::string> arguments, what, dims;
  std::string output, weights, family;
  double time_limit = tune::kTimeLimit, loss_tolerance = tune::kLossTolerance;
  int64_t batch = 1;
  bool resume = false, overwrite = false, json = false, parallel = false, dry_run = false;
  std::string cluster, check_runs;  ///< of planning
  std::vector<std::string> fixed;
  int64_t plans = tune::kPlans;
};

std::string path_in(const std::string& folder, const char* file) {
  return (fs::path(folder) / file).string();
}

/// The dimensions to search: those that are asked for, or those that leave results as they are.
std::vector<std::string> dimensions(const tune::TuningTarget& subject, const TuneOptions& options) {
  const std::vector<std::string> known = subject.dimensions();
  if (options.what.empty()) {
    std::vector<std::string> out;
    for (const std::string& name : known)
      if (name != "precision" && name != "kv" && (name != "batch" || subject.kind() == "inference"))
        out.push_back(name);
    return out;
  }
  for (const std::string& name : options.what)
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail(ErrorCode::kUsage, "--what: '", name, "' cannot be tuned for ", subject.kind(),
           did_you_mean(name, known), "; expected some of ", join(known, ","));
  std::vector<std::string> out;
  for (const std::string& name : known)
    if (std::count(options.what.begin(), options.what.end(), name) > 0) out.push_back(name);
  return out;
}

/// TuneOptions that the config of a run states in `tune:` and the command line leaves out.
void take_section(TuneOptions& options, const std::vector<std::string>& overrides, cli::App& app) {
  if (options.arguments.size() != 1 || !train::is_config(options.arguments[0])) return;
  const tune::TuneSection section =
      tune::read_tune_section(train::read_config(options.arguments[0], overrides).document);
  const auto left_out = [&](const char* option) { return app.count(option) == 0; };
  if (left_out("--what")) options.what = section.what;
  if (left_out("--time-limit"))
    options.time_limit = section.time_limit.value_or(options.time_limit);
  if (left_out("--loss-tolerance"))
    options.loss_tolerance = section.loss_tolerance.value_or(options.loss_tolerance);
  if (left_out("--output") && !section.output.empty()) options.output = section.output;
  if (left_out("--plans")) options.plans = section.plans.value_or(options.plans);
  // Of planning, which other searches do not take.
  if (!options.parallel && std::count(options.what.begin(), options.what.end(), "parallel") == 0)
    return;
  if (left_out("--cluster")) options.cluster = section.cluster;
  if (left_out("--fix")) options.fixed = section.fix;
}

/// Plans a parallel strategy; measures nothing.
int plan(TuneOptions& options, const std::vector<std::string>& overrides) {
  if (options.arguments.size() != 1)
    fail(ErrorCode::kUsage, "one config, or a file with 'transformer:', is expected, found ",
         options.arguments.size());
  if (options.cluster.empty())
    fail(ErrorCode::kUsage, "planning needs the cluster: --cluster cluster.yaml");
  const std::string& subject = options.arguments[0];
  const bool is_config = train::is_config(subject);
  const tune::Transformer model =
      is_config ? tune::transformer_of_run(subject, overrides) : tune::read_transformer(subject);
  // Strategies that training does not have are planned for shapes only.
  if (is_config)
    for (const char* const key : {"context", "expert"})
      if (std::ranges::none_of(options.fixed, [&](const std::string& fixed) {
            return fixed.starts_with(std::string(key) + "=");
          }))
        options.fixed.push_back(std::string(key) + "=1");
  const tune::Cluster cluster = tune::read_cluster(options.cluster);
  const tune::PlanningResult result =
      tune::plan_parallel(model, cluster, options.fixed, static_cast<size_t>(options.plans));
  cli::print(options.json ? tune::plans_json(model, cluster, result)
                          : tune::plans_text(model, cluster, result));
  return 0;
}

/// The first candidates of each dimension; later ones follow from what wins.
std::string what_would_be_tried(tune::TuningTarget& subject, const std::vector<std::string>& names,
                                double time_limit, const std::string& folder) {
  std::string out = str(subject.name(), ", a ", subject.kind(), ": at most ", time_limit,
                        " seconds, results in ", folder, "\n");
  for (const std::string& name : names) {
    std::vector<std::string> changes;
    for (const tune::Change& c : subject.candidates(name, subject.start(), {.measures = false}))
      changes.push_back(str(c.key, "=", c.value));
    out += str("  ", name, ": ", changes.empty() ? "nothing to try" : join(changes, ", "), "\n");
  }
  return out;
}

int tune_subject(TuneOptions& options, const std::vector<std::string>& overrides) {
  if (options.arguments.size() != 1)
    fail(ErrorCode::kUsage, "one config or model is expected, found ", options.arguments.size(),
         " (see paddle-tune --help)");
  tune::Request request{options.arguments[0], overrides};
  const bool training = train::is_config(request.subject);
  const std::string folder = !options.output.empty()
                                 ? options.output
                                 : (fs::path("tuned") / fs::path(request.subject).stem()).string();
  std::optional<Phase> phase(std::in_place, "reading the subject");
  std::unique_ptr<tune::TuningTarget> subject;
  if (training) {
    if (!options.dims.empty() || !options.weights.empty() || !options.family.empty())
      fail(ErrorCode::kUsage, "--dim, --weights and --family are for models; ", request.subject,
           " is the config of a run");
    cli::use_config_threads(train::read_config(request.subject, overrides).threads);
    subject = tune::training_target({request.subject, overrides, options.loss_tolerance});
  } else if (llm::is_language_model(request.subject)) {
    if (!options.dims.empty() || !options.weights.empty() || options.batch != 1)
      fail(ErrorCode::kUsage, "--dim, --weights and --batch are for other models; ",
           request.subject, " is a language model");
    tune::LanguageModelOptions language{
        .model = request.subject, .load = {}, .loss_tolerance = options.loss_tolerance};
    language.load.load.overrides = overrides;
    language.load.family = options.family;
    request.family = options.family;
    if (!options.family.empty()) request.arguments.push_back("--family " + options.family);
    subject = tune::language_model_target(std::move(language));
  } else {
    if (!options.family.empty())
      fail(ErrorCode::kUsage, "--family is for Hugging Face folders and GGUF files");
    tune::InferenceOptions inference{request.subject, {}, options.batch, options.dims};
    inference.tolerance = options.loss_tolerance;
    inference.load.overrides = overrides;
    inference.load.weights = options.weights;
    for (const std::string& dim : options.dims) request.arguments.push_back("--dim " + dim);
    request.arguments.push_back(str("--batch ", options.batch));
    subject = tune::inference_target(std::move(inference));
  }
  if (options.dry_run) {
    cli::print(
        what_would_be_tried(*subject, dimensions(*subject, options), options.time_limit, folder));
    return 0;
  }
  if (!options.resume) cli::check_output(folder, options.overwrite);
  ensure_directory(folder);
  { const AtomicFile probe(path_in(folder, "report.json")); }
  tune::SearchOptions search;
  search.dimensions = dimensions(*subject, options);
  search.time_limit = options.time_limit;
  search.interrupted = [] { return pending_interrupt() != 0; };
  // The machine is described under the threads of the start, whatever a trial sets.
  const int threads = thread_count();
  search.note = [&](const std::string& line) {
    if (options.json)
      cli::print_error(line);
    else
      cli::print(line + "\n");
  };
  search.save = [&](const std::vector<tune::Trial>& trials) {
    const int now = thread_count();
    set_thread_count(threads);
    tune::write_trials(request, trials, subject->state(), folder);
    set_thread_count(now);
  };
  if (options.resume) search.known = tune::read_trials(request, folder, *subject);
  watch_for_interrupts();
  phase.emplace("searching");
  const tune::Result result = tune::search(*subject, search);
  set_thread_count(std::stoi(result.best.at(training ? "train.threads" : "threads")));
  const int signal = pending_interrupt();
  const std::string report = tune::report_json(request, *subject, result);
  write_file_atomically(path_in(folder, "report.json"), report);
  const std::string tuned = path_in(folder, "tuned.yaml");
  write_file_atomically(tuned, training
                                   ? tune::tuned_yaml(request, *subject, result, folder)
                                   : tune::tuned_settings_yaml(request, *subject, result, folder));
  const std::string outcome =
      training ? "paddle-train " + tuned : tune::tuned_command(request, *subject, result, tuned);
  if (options.json) {
    cli::print(report);
  } else {
    if (result.best == result.start)
      cli::print("nothing is faster beyond measurement noise\n");
    else
      cli::print(str("together: ", text(result.total.gain), " in ", tune::rate(*subject), ", ",
                     result.same_bits ? "same" : "other", " bits\n"));
    if (!result.finished && signal == 0)
      cli::print("the time limit ended the search; --resume continues it\n");
    cli::print(outcome + "\n");
  }
  if (signal == 0) return 0;
  cli::print_error(str("stopped by signal ", signal, "; --resume continues the search"));
  return 128 + signal;
}

int run_tune(int argc, char** argv) {
  cli::App app{"Measures settings that decide the speed of a run or model, and keeps what helps."};
  app.footer(
      "The result is DIR/tuned.yaml. For a run it is a config that extends the given one: "
      "paddle-train DIR/tuned.yaml. For a model it states settings: paddle-infer MODEL --tuned "
      "DIR/tuned.yaml, and for a language model also paddle-serve.");
  TuneOptions options;
  app.add_option(
      "SUBJECT", options.arguments,
      "a config, a model (folder, file or ONNX file) or a language model (Hugging Face folder or "
      "GGUF file), then key=value overrides");
  app.add_option(
         "--what", options.what,
         "dimensions: of a run threads, loader, kernels, codegen, recompute, precision, batch; "
         "of a model threads, precision, batch, streams, kernels, codegen; of a language model "
         "threads, chunk, streams, kv; or parallel (default: those that keep the batch of training "
         "and all "
         "precisions)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--time-limit", options.time_limit, "time for the search: 90, 30m, 1h30m")
      ->capture_default_str()
      ->check(cli::duration(0, 1e7));
  app.add_option("-o,--output", options.output, "folder of the results (default: tuned/<name>)");
  cli::add_overwrite(app, options.overwrite);
  app.add_flag("--resume", options.resume, "continue the search whose trials are in the folder");
  app.add_option(
         "--loss-tolerance", options.loss_tolerance,
         "precision, kv: how much the mean loss (of steps 41 to 50) or the outputs of a model may "
         "move")
      ->capture_default_str()
      ->check(cli::in_range(0.0, 1.0));
  app.add_option("--batch", options.batch, "of a model: samples of a prediction at the start")
      ->capture_default_str()
      ->check(cli::in_range(int64_t{1}, int64_t{1} << 20));
  app.add_option("--dim", options.dims, "of a model: NAME=SIZE…, sizes of symbolic dims");
  app.add_option("--weights", options.weights, "of a model file: its weights (safetensors)");
  app.add_option("--family", options.family,
                 "of a language model: its family, a model file (default: by its type)");
  app.add_flag("--parallel", options.parallel,
               "plan a parallel strategy for the transformer in SUBJECT (as --what parallel)");
  app.add_option("--cluster", options.cluster, "with --parallel: the cluster (YAML)");
  app.add_option("--fix", options.fixed,
                 "with --parallel: only such strategies, as tensor=8,micro_batch=2")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--plans", options.plans, "with --parallel: plans to print")
      ->capture_default_str()
      ->check(cli::in_range(int64_t{1}, int64_t{100000}));
  app.add_option("--check-runs", options.check_runs,
                 "print the errors of the cost model on published runs (CSV)");
  app.add_flag("--dry-run", options.dry_run, "say what would be tried; measure and write nothing");
  app.add_flag("--json", options.json, "print report.json, and progress to standard error");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  if (!options.check_runs.empty()) {
    const tune::PublishedRuns runs = tune::check_published(options.check_runs);
    cli::print(options.json ? tune::published_json(runs) : tune::published_text(runs));
    return 0;
  }
  for (std::string& each : cli::take_arguments(options.dims))
    options.arguments.push_back(std::move(each));
  std::vector<std::string> overrides = cli::take_overrides(options.arguments);
  if (options.arguments.size() == 1 && train::is_config(options.arguments[0]))
    overrides = cli::with_model_files(options.arguments[0], std::move(overrides));
  take_section(options, overrides, app);
  const bool plans = std::erase(options.what, "parallel") > 0;
  if (plans && !options.what.empty())
    fail(ErrorCode::kUsage,
         "--what: 'parallel' plans for a described cluster and cannot be "
         "combined with '",
         options.what[0], "', which is measured here");
  if (plans || options.parallel) return plan(options, overrides);
  if (!options.cluster.empty() || !options.fixed.empty())
    fail(ErrorCode::kUsage, "--cluster and --fix need --parallel");
  restart_with_short_spin_waits(argv);
  return tune_subject(options, overrides);
}

}  // namespace

namespace paddle::cli {

int tune_command(int argc, char** argv) {
  return run_tool([&] {
    register_sections();
    return run_tune(argc, argv);
  });
}

}  // namespace paddle::cli
