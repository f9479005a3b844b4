// paddle-train CONFIG [key=value…]: trains, evaluates, checkpoints and resumes.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/phase.h"
#include "comm/join.h"
#include "comm/simulation.h"
#include "commands.h"
#include "common.h"
#include "common_device.h"
#include "common_model_files.h"
#include "common_options.h"
#include "common_progress.h"
#include "common_ranks.h"
#include "common_table.h"
#include "config/document.h"
#include "ir/module.h"
#include "profile/report.h"
#include "sections/sections.h"
#include "train/job/trainer.h"
#include "train/records/metrics_log.h"
#include "train/runs/check_numerics.h"
#include "train/runs/find_nonfinite.h"
#include "train/runs/run_folder.h"
#include "train_check_data.h"
#include "train_servers.h"

namespace {

using namespace paddle;

/// Plain lines; on a terminal a bar on the last line as well, elsewhere a line at least every
/// half minute. With --quiet only warnings.
class Console final : public train::TrainObserver {
 public:
  void note(const std::string& line) override { put(line); }
  void warn(const std::string& line) override {
    bar_.clear();
    cli::print_warning(line);
  }
  void log(const train::LogLine& l) override {
    std::string line = str(l.kind, std::string(7 - l.kind.size(), ' '), "step ", l.step, "  epoch ",
                           l.epoch, "  loss ", cli::short_number(l.loss));
    for (const auto& [name, value] : l.metrics)
      line += str("  ", name, " ", cli::short_number(value));
    if (l.kind == "train") line += str("  lr ", cli::short_number(l.learning_rate));
    if (l.loss_scale) line += str("  loss scale ", cli::short_number(*l.loss_scale));
    line += str("  ", static_cast<int64_t>(l.samples_per_second), " samples/s");
    if (l.kind == "train" && last_.total_steps > 0)
      line += str("  data ", percent(last_.data_share), "  ",
                  cli::short_duration(last_.seconds_left), " left");
    put(line);
  }
  void progress(const train::Progress& p) override {
    last_ = p;
    if (p.total_steps <= 0) return;
    if (!bar_.is_on_terminal()) {
      if (Clock::now() - last_line_ > kMaxSilence)
        put(str("at     step ", p.step, " of ", p.total_steps, "  loss ", cli::short_number(p.loss),
                "  ", static_cast<int64_t>(p.samples_per_second), " samples/s  data ",
                percent(p.data_share), "  ", cli::short_duration(p.seconds_left), " left"));
      return;
    }
    bar_.draw(static_cast<double>(p.step) / static_cast<double>(p.total_steps),
              str("step ", p.step, "/", p.total_steps, "  loss ", cli::short_number(p.loss), "  ",
                  static_cast<int64_t>(p.samples_per_second), " samples/s  ",
                  cli::short_duration(p.seconds_left), " left  data ", percent(p.data_share)));
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kMaxSilence = std::chrono::seconds(30);
  static std::string percent(double share) {
    return std::to_string(std::lround(100 * share)) + "%";
  }
  void put(const std::string& line) {
    if (cli::is_quiet()) return;
    bar_.clear();
    cli::print(line + "\n");
    last_line_ = Clock::now();
  }
  cli::ProgressBar bar_;
  Clock::time_point last_line_ = Clock::now();
  train::Progress last_;
};

void print_benchmark(const train::BenchmarkResult& r, const train::RunConfig& config) {
  nlohmann::ordered_json o;
  o["median_ms"] = r.median_ms;
  o["min_ms"] = r.min_ms;
  o["peak_mib"] = static_cast<double>(r.peak_bytes) / (1 << 20);
  o["samples_per_second"] = r.samples_per_second;
  o["steps"] = r.steps;
  o["threads"] = thread_count();
  o["device"] = config.compile.target.device.text();
  o["dtype"] = train::precision_name(config);
  o["first_loss"] = r.first_loss;
  o["last_loss"] = r.last_loss;
  o["parameters"] = r.parameters;
  o["flops"] = r.flops;
  cli::print(o.dump() + "\n");
}

/// The table goes to stderr, so that stdout stays what scripts read.
void print_profile(const runtime::Profile& profile, const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "trace.json").string();
  ensure_directory(folder);
  profile::write_trace({profile::timeline_of(profile, {}, 0)}, path);
  const std::string table = profile::table(profile, profile::measure_peaks());
  std::fputs((table + "timeline: " + path + " (open in a trace viewer)\n").c_str(), stderr);
}

bool is_same_path(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  return fs::weakly_canonical(a, ignored) == fs::weakly_canonical(b, ignored);
}

/// The flags that say what a rank does with its run.
struct RankJob {
  bool dry_run = false;
  bool json = false;  ///< print a JSON object on the last line
};

nlohmann::ordered_json json_of(const train::LogLine& line) {
  nlohmann::ordered_json out = {{"step", line.step},
                                {"loss", train::number_or_null<nlohmann::ordered_json>(line.loss)}};
  for (const auto& [name, value] : line.metrics)
    out[name] = train::number_or_null<nlohmann::ordered_json>(value);
  return out;
}

void print_json(const std::string& folder, const train::TrainResult& result) {
  nlohmann::ordered_json out = {{"run", folder}, {"steps", result.steps}};
  if (result.stopped_by) out["stopped_by_signal"] = result.stopped_by;
  if (!result.checkpoint.empty()) out["checkpoint"] = result.checkpoint;
  if (!result.model_folder.empty()) out["model"] = result.model_folder;
  if (!result.best.empty()) out["best"] = result.best_folder;
  if (result.last_valid) out["valid"] = json_of(*result.last_valid);
  if (result.test) out["test"] = json_of(*result.test);
  cli::print(out.dump() + "\n");
}

/// Prepares and runs one rank of a training run, and prints its results.
int train_rank(train::RunConfig config, const train::TrainOptions& options, const RankJob& job,
               train::TrainObserver& observer) {
  const bool is_root = !options.communicator || options.communicator->is_root();
  const std::string name = config.name;
  train::Trainer trainer(std::move(config), options, observer);
  if (!job.dry_run) trainer.claim_folder();
  const train::MemoryPlan plan = trainer.prepare();
  observer.note(str(name, ": ", trainer.parameter_count(), " parameters"));
  for (const std::string& line : trainer.run_summary()) observer.note("  " + line);
  if (job.dry_run) {
    for (const ir::Slot& p : trainer.module().parameters)
      observer.note(str("  ", p.name, "  ", p.type, "  ", p.initializer));
    for (const std::string& line : trainer.placement_lines()) observer.note("  " + line);
    observer.note("memory plan\n" + plan.text());
    if (const std::string ranks = trainer.memory_by_rank(); !ranks.empty())
      observer.note("memory by rank\n" + ranks);
    if (job.json && is_root)
      cli::print(nlohmann::ordered_json({{"name", name},
                                         {"parameters", trainer.parameter_count()},
                                         {"memory_bytes", plan.total()},
                                         {"available_bytes", plan.available},
                                         {"fits", plan.fits()}})
                     .dump() +
                 "\n");
    plan.require_fit();
    return 0;
  }
  const train::TrainResult result = trainer.run();
  if (result.stopped_by) {
    observer.note(str("stopped by signal ", result.stopped_by, " after step ", result.steps,
                      "; to continue: paddle-train --resume ", options.output));
    if (job.json && is_root) print_json(options.output, result);
    return 128 + result.stopped_by;
  }
  if (!is_root) return 0;
  if (result.profile) print_profile(*result.profile, options.output);
  observer.note("checkpoint: " + result.checkpoint);
  observer.note("model: " + result.model_folder);
  if (!result.best.empty()) observer.note("best: " + result.best_folder + " (" + result.best + ")");
  if (job.json) print_json(options.output, result);
  return 0;
}

int benchmark_rank(train::RunConfig config, const train::TrainOptions& options,
                   train::TrainObserver& observer) {
  train::RunConfig shown;
  shown.use_float64 = config.use_float64;
  shown.mixed = config.mixed;
  shown.compile.target.device = config.compile.target.device;
  train::Trainer trainer(std::move(config), options, observer);
  const train::TrainResult result = trainer.run();
  if (result.stopped_by) return 128 + result.stopped_by;
  if (options.communicator && !options.communicator->is_root()) return 0;
  print_benchmark(result.benchmark, shown);
  if (result.profile) print_profile(*result.profile, options.output);
  return 0;
}

int run_rank(train::RunConfig config, const train::TrainOptions& options, const RankJob& job,
             train::TrainObserver& observer) {
  return options.benchmark > 0 ? benchmark_rank(std::move(config), options, observer)
                               : train_rank(std::move(config), options, job, observer);
}

/// Trains on one rank, and says where a loss that is not finite comes from.
int run_one_rank(train::RunConfig config, const std::function<train::RunConfig()>& read_config,
                 const train::TrainOptions& options, const RankJob& job,
                 train::TrainObserver& observer) {
  try {
    return run_rank(std::move(config), options, job, observer);
  } catch (const train::NonFiniteLoss& e) {
    constexpr double kMaxSeconds = 60;
    std::string origin, hint = ". A lower optimizer.lr or clip.global_norm may help";
    try {
      train::TrainObserver silent;
      const train::NonFiniteSearch found = train::find_nonfinite(
          options.output, read_config(), e.step(), kMaxSeconds, options, silent);
      if (found.origin)
        origin = str(". At step ", found.step, " ", train::text(*found.origin));
      else if (found.was_stopped)
        hint = ". `paddle train --resume " + options.output +
               " --find-nonfinite` names the operation that it comes from";
    } catch (const Error&) {  // the search is an extra
    }
    throw Error(e.code(), e.message() + origin + hint);
  }
}

/// For --check-numerics.
int report_numerics(train::RunConfig config, const train::TrainOptions& options, bool json) {
  train::TrainObserver silent;
  const train::StepNumerics found = train::check_numerics(options.resume ? options.output : "",
                                                          std::move(config), options, silent);
  cli::Table table({"layer", "pass", "values", "NaN", "infinite", "zeros", "largest", "in"});
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const train::LayerNumerics& each : found.layers) {
    const char* const pass = each.gradient ? "backward" : "forward";
    const infer::Numerics& n = each.numerics;
    table.add_row({each.layer.empty() ? "fields" : each.layer, pass, str(each.values), str(n.nan),
                   str(n.infinite), str(n.zeros), cli::short_number(n.largest), each.largest_in});
    layers.push_back({{"layer", each.layer},
                      {"pass", pass},
                      {"values", each.values},
                      {"elements", n.elements},
                      {"nan", n.nan},
                      {"infinite", n.infinite},
                      {"zeros", n.zeros},
                      {"largest", n.largest},
                      {"largest_in", each.largest_in}});
  }
  cli::print(str("step ", found.step, "\n") + table.text());
  if (json)
    cli::print(nlohmann::ordered_json({{"step", found.step}, {"layers", layers}}).dump() + "\n");
  return 0;
}

/// For --find-nonfinite.
int report_nonfinite(train::RunConfig config, const train::TrainOptions& options, bool json) {
  if (options.output.empty() || !options.resume)
    fail(ErrorCode::kUsage, "--find-nonfinite looks at a run: give --resume RUN");
  train::TrainObserver silent;
  const train::NonFiniteSearch found =
      train::find_nonfinite(options.output, std::move(config), 0, 0, options, silent);
  const std::string line = found.origin ? str("step ", found.step, ": ", train::text(*found.origin))
                                        : str("all values are finite up to step ", found.step);
  if (json) {
    nlohmann::ordered_json out = {{"step", found.step}, {"found", found.origin.has_value()}};
    if (const auto& o = found.origin)
      out.update({{"operation", o->operation},
                  {"location", o->location},
                  {"nan", o->count.nan},
                  {"infinite", o->count.infinite},
                  {"elements", o->count.elements}});
    cli::print(out.dump() + "\n");
  } else {
    cli::print_line(line);
  }
  if (found.was_stopped) return 128 + pending_interrupt();
  return found.origin ? static_cast<int>(ErrorCode::kDifference) : 0;
}

/// The options of one rank: further ranks dump into folders of their own and are not timed.
train::TrainOptions options_of_rank(train::TrainOptions options,
                                    const std::shared_ptr<comm::Communicator>& communicator) {
  options.communicator = communicator;
  if (communicator->is_root()) return options;
  options.profile = false;
  if (!options.dump_ir.empty()) options.dump_ir += "/rank" + std::to_string(communicator->rank());
  return options;
}

/// All ranks as threads of this process. The config is read for each of them.
int simulate(int ranks, const std::function<train::RunConfig()>& read_config,
             const train::TrainOptions& options, const RankJob& job,
             train::TrainObserver& console) {
  std::vector<train::RunConfig> configs;
  for (int rank = 0; rank < ranks; ++rank) configs.push_back(read_config());
  int status = 0;
  comm::simulate(ranks, [&](const std::shared_ptr<comm::Communicator>& communicator) {
    train::TrainObserver null_observer;
    const bool is_root = communicator->is_root();
    const int ended =
        run_rank(std::move(configs[static_cast<size_t>(communicator->rank())]),
                 options_of_rank(options, communicator), job, is_root ? console : null_observer);
    if (is_root) status = ended;
  });
  return status;
}

/// "400" is a step, "25%" a share of all steps.
void set_until(const std::string& text, train::TrainOptions& options) {
  size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const bool is_share = used > 0 && text.substr(used) == "%";
  const bool is_step = used == text.size() && value == std::floor(value) && value < 1e15;
  if (used == 0 || !(value > 0) || !(is_share ? value <= 100 : is_step))
    fail(ErrorCode::kUsage, "--until: expected a step such as 400 or a share such as 25%, found '",
         text, "'");
  if (is_share)
    options.until_share = value / 100;
  else
    options.until_step = static_cast<int64_t>(value);
}

/// The transport of a run of several processes, which the config may name; null for one.
std::shared_ptr<comm::Transport> join_run(const comm::Membership& membership,
                                          const KindChoice& transport) {
  if (membership.size == 1) return nullptr;
  if (!transport.name.empty()) ::setenv("PADDLE_TRANSPORT", transport.name.c_str(), 0);
  comm::JoinOptions options = comm::JoinOptions::from_environment();
  options.transport = transport;
  options.notice = [](const std::string& line) { cli::print_note(line); };
  if (!membership.source.empty() && membership.rank == 0)
    cli::print_note(str("rank 0 of ", membership.size, ", as ", membership.source,
                        " says; the ranks meet at ", membership.rendezvous));
  return comm::join(membership, options);
}

std::string folder_of_run(const std::string& output, const cli::ReplayOfRun& replay,
                          const train::RunConfig& config) {
  if (!output.empty()) return output;
  return replay.run.empty() ? "runs/" + config.name : replay.run + "-replay";
}

/// The launcher has started the run again: it continues from its last checkpoint, or starts over
/// where it had none.
void continue_after_restart(train::TrainOptions& options) {
  if (!options.resume) {
    const train::RunFolder folder(options.output);
    options.resume = folder.has_checkpoints();
    options.overwrite = !options.resume;
  }
}

int run_train(int argc, char** argv) {
  cli::App app{"Trains a model as a YAML config describes it."};
  app.footer("Any value of the config can be set after it: optimizer.lr=3e-4 data.batch_size=64");
  std::vector<std::string> arguments;
  std::string output, resume, pictures, until, watched;
  train::TrainOptions options;
  RankJob job;
  bool only_data = false, dump_config = false, origin = false, finds_nonfinite = false,
       checks_numerics = false;
  int simulated = 1, servers = 0;
  cli::ReplayOfRun replay;
  app.add_option("CONFIG", arguments, "the config, then key=value overrides");
  app.add_option("-o,--output", output, "run folder (default: runs/<config name>)");
  app.add_option("--resume", resume, "continue from the newest checkpoint of this run folder");
  app.add_option("--until", until,
                 "evaluate and end after this step, or this share of the steps (25%); --resume "
                 "continues");
  cli::add_replay_options(app, replay);
  app.add_option("--watch", watched,
                 "write each update of the row TABLE:KEY, which is on a server, to "
                 "row-updates.jsonl in the run folder: step, worker, norm of the gradient, row");
  app.add_flag("--overwrite", options.overwrite, "replace a run that is in the output folder");
  app.add_flag("--eager", options.eager, "run operation by operation, without compiling the step");
  app.add_flag("--dry-run", job.dry_run,
               "check everything, print the model and the memory plan, train nothing");
  app.add_flag("--json", job.json,
               "print a JSON object on the last line: folders, steps, loss and metrics");
  app.add_flag("--check-data", only_data, "print what the data is, train nothing");
  app.add_option("--pictures", pictures,
                 "with --check-data: write a page of samples after all transforms to this folder");
  app.add_flag("--dump-config", dump_config, "print the resolved config");
  app.add_flag("--origin", origin, "with --dump-config: where each value came from");
  app.add_option("--dump-ir", options.dump_ir, "write the module after each pass into this folder");
  app.add_option("--init", options.initial_weights, "initial weights by name (safetensors)");
  app.add_option("--allow-missing", options.allow_missing,
                 "with --init: parameters that the file may lack (pattern)");
  app.add_option("--allow-unused", options.allow_unused,
                 "with --init: tensors that the model may not use (pattern)");
  app.add_option("--benchmark", options.benchmark, "time N steps and print one JSON line")
      ->check(cli::in_range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--simulate", simulated,
                 "run N ranks as threads of this process, with the results of N processes")
      ->check(cli::in_range(1, 1024));
  app.add_option("--servers", servers,
                 "keep the rows of tables on N servers, as parameter_server.servers says, which "
                 "are a part of this process; paddle-launch --servers starts processes")
      ->check(cli::in_range(1, 1024));
  app.add_flag("--find-nonfinite", finds_nonfinite,
               "with --resume: repeat the steps after the newest checkpoint and name the operation "
               "that first gives NaN or infinity; write nothing");
  app.add_flag("--check-numerics", checks_numerics,
               "compute one step (with --resume: the one after the newest checkpoint) and print "
               "counts of NaN, infinities and zeros and the largest magnitude by layer; write "
               "nothing");
  cli::DeviceOptions device;
  cli::add_device_options(app, device);
  app.add_flag("--profile", options.profile,
               "print where the time goes, per operation, and write a timeline");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  restart_with_short_spin_waits(argv);
  if (!until.empty()) set_until(until, options);
  cli::check_replay(replay, !resume.empty(), options);
  if (!resume.empty() && options.overwrite)
    fail(ErrorCode::kUsage, "--resume continues a run; --overwrite would replace it");
  if (!resume.empty() && !output.empty() && !is_same_path(resume, output))
    fail(ErrorCode::kUsage, "--resume continues in its own folder, ", resume,
         "; --output names another one, ", output);
  if (!resume.empty() && options.benchmark > 0)
    fail(ErrorCode::kUsage, "--benchmark times a new run; it cannot be given with --resume");
  if (options.profile && options.eager)
    fail(ErrorCode::kUsage,
         "--profile times the instructions of the compiled step; it cannot be given with --eager");
  options.version = cli::version_text();
  const auto place = ps::servers_from_environment();
  const bool is_server = place && place->is_server();
  const comm::Membership membership =
      is_server ? comm::Membership() : comm::membership_from_environment();
  cli::check_simulated(membership, simulated);
  auto overrides = cli::take_overrides(arguments);
  std::string config_path;
  train::RunConfig config;
  std::exception_ptr wrong;
  try {
    if (arguments.empty() && !resume.empty())
      config_path = train::config_of_run(resume);
    else if (arguments.empty() && !replay.run.empty())
      config_path = train::config_of_run(replay.run);
    else if (arguments.size() == 1)
      config_path = arguments[0];
    else if (arguments.empty())
      fail(ErrorCode::kUsage, "no config is given (see paddle-train --help)");
    else
      fail(ErrorCode::kUsage, "one config is expected, found '", arguments[0], "' and '",
           arguments[1], "'");
    const Phase phase("reading the config");
    overrides = cli::with_model_files(config_path, std::move(overrides));
    config = train::read_config(config_path, overrides);
    if (!replay.run.empty())
      cli::use_replay(config, options, replay,
                      is_server ? 0 : std::max(membership.size, simulated));
    if (!watched.empty()) config.parameter_server.watched = cli::parse_watched(watched);
  } catch (const Error&) {
    wrong = std::current_exception();
  }
  if (is_server) {
    if (wrong) std::rethrow_exception(wrong);
    const std::string run = !resume.empty() ? resume : folder_of_run(output, replay, config);
    cli::ServeOptions serve;
    serve.stays = place->source == "PADDLE_SERVERS";
    return cli::serve_tables(std::move(config), run, *place, serve);
  }
  // The other ranks learn of a wrong config from one that has joined.
  const auto transport = join_run(membership, config.parallel.transport);
  if (wrong) std::rethrow_exception(wrong);
  config.compile.target.device = cli::open_device(device);
  if (membership.size > 1 || simulated > 1) cli::check_runs_ranks(config.compile.target.device);
  if (simulated > 1 && !config.parallel.transport.name.empty())
    fail(ErrorCode::kUsage,
         "--simulate: parallel.transport is for ranks that are processes; leave "
         "one of them out");
  // paddle-launch shows what rank 0 writes and keeps the rest; others show all ranks at once.
  const bool is_shown = membership.source.empty() || membership.rank == 0;
  if (is_shown)
    for (const std::string& w : config.warnings) cli::print_warning(w);
  if (job.json && (dump_config || origin || only_data))
    fail(ErrorCode::kUsage, "--json describes a run or a --dry-run, not ",
         only_data ? "--check-data" : "--dump-config");
  if (dump_config || origin) {
    cli::print(config::dump_yaml(config.document, {origin}));
    return 0;
  }
  if (!pictures.empty() && !only_data) fail(ErrorCode::kUsage, "--pictures needs --check-data");
  if (only_data) {
    cli::check_data(config, pictures);
    return 0;
  }
  cli::use_threads_of_rank(membership, config.threads);
  options.resume = !resume.empty();
  options.output = options.resume ? resume : folder_of_run(output, replay, config);
  if (membership.attempt > 0) continue_after_restart(options);
  options.dry_run = job.dry_run && options.benchmark == 0;
  if (place) {
    if (servers > 0)
      fail(ErrorCode::kUsage, "--servers: the run has servers, as ", place->source, " says");
    servers = place->servers;
    options.servers = cli::servers_of(config, *place);
  }
  if (servers > 0) cli::use_servers(config, servers);
  Console console;
  watch_for_interrupts();
  if (checks_numerics) {
    if (membership.size > 1 || simulated > 1)
      fail(ErrorCode::kUsage, "--check-numerics: runs of one rank");
    return report_numerics(std::move(config), options, job.json);
  }
  if (finds_nonfinite) {
    if (membership.size > 1 || simulated > 1)
      fail(ErrorCode::kUsage, "--find-nonfinite: runs of one rank");
    return report_nonfinite(std::move(config), options, job.json);
  }
  if (membership.size > 1) {
    const auto communicator = std::make_shared<comm::Communicator>(transport);
    train::TrainObserver null_observer;
    try {
      return run_rank(std::move(config), options_of_rank(options, communicator), job,
                      is_shown ? static_cast<train::TrainObserver&>(console) : null_observer);
    } catch (...) {
      communicator->abort("another rank has failed");
      throw;
    }
  }
  if (simulated > 1 && config.parameter_server.on_servers && !options.servers)
    options.servers = train::servers_in_process(config, simulated, options.output);
  if (simulated > 1)
    return simulate(
        simulated,
        [&] {
          train::RunConfig own = train::read_config(config_path, overrides);
          own.compile.target.device = config.compile.target.device;
          own.parameter_server = config.parameter_server;
          return own;
        },
        options, job, console);
  const int status = run_one_rank(
      std::move(config), [&] { return train::read_config(config_path, overrides); }, options, job,
      console);
  cli::report_host_fallbacks();
  cli::report_graphs();
  return status;
}

}  // namespace

namespace paddle::cli {

int train_command(int argc, char** argv) {
  return run_tool([&] {
    register_sections();
    return run_train(argc, argv);
  });
}

}  // namespace paddle::cli
