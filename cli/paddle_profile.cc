// paddle-profile CONFIG|RUN|MODEL|FILE.onnx: measures where the time and the memory of a training
// step or a prediction go, and compares two such measurements.

#include <charconv>
#include <filesystem>

#include "base/files.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/phase.h"
#include "base/resident_memory.h"
#include "base/span.h"
#include "comm/clock.h"
#include "comm/join.h"
#include "comm/simulation.h"
#include "commands.h"
#include "common.h"
#include "common_device.h"
#include "common_dims.h"
#include "common_model_files.h"
#include "common_observer.h"
#include "common_options.h"
#include "common_ranks.h"
#include "infer/batches.h"
#include "infer/random_inputs.h"
#include "lang/syntax/program.h"
#include "llm/benchmark.h"
#include "llm/language_model.h"
#include "profile/diff.h"
#include "profile/report.h"
#include "sections/sections.h"
#include "train/job/trainer.h"
#include "train/runs/run_folder.h"

namespace {

using namespace paddle;
namespace fs = std::filesystem;

struct ProfileOptions {
  std::vector<std::string> arguments, dims, overrides;
  std::string output, steps = "5:25", input, weights;
  int64_t batch = 1, rows = 20, depth = 2, prompt = 0, generate = 0;
  int simulated = 1;
  bool json = false, dry_run = false, overwrite = false;
  cli::DeviceOptions device;
};

/// "A:B": A steps of warm-up, then the steps up to B are measured.
struct StepRange {
  int64_t first = 0, last = 0;
};

StepRange parse_steps(const std::string& text) {
  StepRange range;
  const size_t colon = text.find(':');
  const auto number = [&](size_t begin, size_t end, int64_t& value) {
    const auto [at, error] = std::from_chars(text.data() + begin, text.data() + end, value);
    return error == std::errc() && at == text.data() + end;
  };
  if (colon == std::string::npos || !number(0, colon, range.first) ||
      !number(colon + 1, text.size(), range.last) || range.first < 0 || range.last <= range.first ||
      range.last > 1'000'000)
    fail(ErrorCode::kUsage,
         "--steps: expected A:B with A < B, for A steps of warm-up and B - A "
         "measured ones, found '",
         text, "'");
  return range;
}

/// The exchanges of all ranks, in the order of ranks and kinds.
std::vector<profile::Communication> communication_of(
    const std::vector<comm::ExchangeCosts>& ranks) {
  std::vector<profile::Communication> out;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    for (size_t kind = 0; kind < comm::kExchangeKinds; ++kind) {
      const comm::ExchangeCost& cost = ranks[rank][kind];
      if (cost.calls > 0)
        out.push_back({static_cast<int>(rank), comm::text(static_cast<comm::Exchange>(kind)),
                       cost.calls, cost.bytes, static_cast<double>(cost.nanoseconds) * 1e-9});
    }
  return out;
}

/// The timeline of a rank, from its result.
profile::RankTimeline timeline_of_rank(const train::TrainResult& result,
                                       comm::Communicator* communicator, const SpanRecorder& spans,
                                       int rank, int spans_of) {
  profile::RankTimeline t = profile::timeline_of(*result.profile, spans.records(), spans_of);
  t.rank = rank;
  for (const train::TimedStep& s : result.benchmark.loaded)
    t.steps.push_back({s.begin, s.loaded, s.end, s.samples});
  if (!communicator) return t;
  for (const comm::ExchangeRecord& e : communicator->take_records())
    t.exchanges.push_back(
        {comm::text(e.kind), e.begin, e.end, e.bytes, e.group, e.sends_only, e.background});
  return t;
}

/// The timelines of all processes on the clock of rank 0, on rank 0; its own on the others.
std::vector<profile::RankTimeline> gather_timelines(comm::Communicator& communicator,
                                                    profile::RankTimeline own) {
  const std::vector<int64_t> offsets = comm::clock_offsets(communicator);
  const std::string bytes = communicator.is_root() ? "" : profile::to_bytes(own);
  std::vector<std::string> received;
  std::vector<std::span<std::byte>> places;
  for (const int64_t size : communicator.gather_numbers(static_cast<int64_t>(bytes.size())))
    received.emplace_back(communicator.is_root() ? static_cast<size_t>(size) : 0, '\0');
  for (std::string& text : received) places.push_back(std::as_writable_bytes(std::span(text)));
  communicator.gather(std::as_bytes(std::span(bytes)), places, 0);
  std::vector<profile::RankTimeline> out;
  out.push_back(std::move(own));
  for (size_t rank = 1; communicator.is_root() && rank < received.size(); ++rank) {
    out.push_back(profile::timeline_from_bytes(received[rank]));
    profile::shift(out.back(), offsets[rank]);
  }
  return out;
}

/// Runs the steps of a config on its ranks: of this process, with --simulate, or of several, where
/// this one is `transport`'s. The result is that of rank 0, with the timelines of all ranks.
train::TrainResult run_ranks(const std::string& path, const std::vector<std::string>& overrides,
                             const ProfileOptions& options,
                             const std::shared_ptr<comm::Transport>& transport,
                             train::RunConfig config, train::TrainOptions train_options,
                             train::TrainObserver& observer,
                             std::vector<profile::RankTimeline>& timelines) {
  train::TrainObserver null_observer;
  const SpanRecorder spans;
  const auto run = [&](train::RunConfig own,
                       const std::shared_ptr<comm::Communicator>& communicator) {
    train::TrainOptions mine = train_options;
    mine.communicator = communicator;
    const bool is_root = !communicator || communicator->is_root();
    train::Trainer trainer(std::move(own), mine, is_root ? observer : null_observer);
    return trainer.run();
  };
  if (transport) {
    const auto communicator = std::make_shared<comm::Communicator>(transport);
    try {
      train::TrainResult own = run(std::move(config), communicator);
      timelines = gather_timelines(
          *communicator,
          timeline_of_rank(own, communicator.get(), spans, communicator->rank(), span_rank()));
      return own;
    } catch (...) {
      communicator->abort("another rank has failed");
      throw;
    }
  }
  timelines.resize(static_cast<size_t>(options.simulated));
  if (options.simulated == 1) {
    train::TrainResult own = run(std::move(config), nullptr);
    timelines[0] = timeline_of_rank(own, nullptr, spans, 0, 0);
    return own;
  }
  std::vector<train::RunConfig> configs;
  for (int rank = 0; rank < options.simulated; ++rank)
    configs.push_back(train::read_config(path, overrides));
  train::TrainResult result;
  comm::simulate(options.simulated, [&](const std::shared_ptr<comm::Communicator>& communicator) {
    train::TrainResult own =
        run(std::move(configs[static_cast<size_t>(communicator->rank())]), communicator);
    timelines[static_cast<size_t>(communicator->rank())] = timeline_of_rank(
        own, communicator.get(), spans, communicator->rank(), communicator->rank());
    if (communicator->is_root()) result = std::move(own);
  });
  return result;
}

profile::Measurement measure_training(const std::string& path, const ProfileOptions& options,
                                      const std::vector<std::string>& overrides,
                                      const comm::Membership& membership,
                                      const std::shared_ptr<comm::Transport>& transport,
                                      runtime::Profile& profile,
                                      std::vector<profile::RankTimeline>& timelines) {
  std::optional<Phase> phase(std::in_place, "reading the config");
  train::RunConfig config = train::read_config(path, overrides);
  for (const std::string& w : config.warnings)
    if (membership.rank == 0) cli::print_warning(w);
  cli::use_threads_of_rank(membership, config.threads);
  config.compile.target.device = cli::open_device(options.device);
  if (membership.size > 1 || options.simulated > 1)
    cli::check_runs_ranks(config.compile.target.device);
  const StepRange range = parse_steps(options.steps);
  profile::Measurement m;
  m.subject = config.name;
  m.training = true;
  m.warm_up = range.first;
  m.loader_workers = config.data.loader.workers;
  m.dtype = train::precision_name(config);
  train::TrainOptions train_options;
  train_options.benchmark = range.last - range.first;
  train_options.loaded_warm_up = range.first;
  train_options.profile = true;
  cli::WarningObserver observer;
  phase.emplace("measuring");
  m.ranks = std::max(options.simulated, membership.size);
  const train::TrainResult result = run_ranks(
      path, overrides, options, transport, std::move(config), train_options, observer, timelines);
  m.communication = communication_of(result.benchmark.communication);
  m.steps = timelines[0].steps;
  m.spans = timelines[0].spans;
  profile::match(timelines);
  if (m.ranks > 1) m.shares = profile::share_of_ranks(timelines);
  profile = *result.profile;
  return m;
}

/// Runs the warm-up and the measured steps of a model; each has `samples` samples.
template <class F>
void measure_steps(const StepRange& range, int64_t samples, profile::Measurement& m,
                   runtime::Profile& recorded, F&& run) {
  m.warm_up = range.first;
  for (int64_t i = 0; i < range.last && pending_interrupt() == 0; ++i) {
    if (i == range.first) recorded.recording = true;
    profile::Step step;
    step.begin = step.loaded = steady_nanoseconds();
    {
      const Span span("step");
      run();
    }
    step.end = steady_nanoseconds();
    step.samples = samples;
    if (i >= range.first) m.steps.push_back(step);
  }
}

/// A step of a language model reads a prompt and generates tokens; its samples are these tokens.
profile::Measurement measure_language_model(const std::string& path, const ProfileOptions& options,
                                            const std::vector<std::string>& overrides,
                                            runtime::Profile& profile,
                                            std::vector<profile::RankTimeline>& timelines) {
  if (!options.input.empty() || !options.dims.empty() || !options.weights.empty() ||
      !overrides.empty() || options.batch != 1)
    fail(ErrorCode::kUsage, path,
         ": a language model has --prompt and --generate in place of --input, --dim, --weights, "
         "--batch and overrides");
  llm::ModelOptions load;
  load.load.compile.target.device = cli::open_device(options.device);
  cli::check_runs_language_models(load.load.compile.target.device);
  load.load.profile = std::make_shared<runtime::Profile>();
  load.load.profile->recording = false;
  std::optional<Phase> phase(std::in_place, "loading the model");
  const auto model = llm::load_shared(path, load);
  if (!model)
    fail(ErrorCode::kUsage, path,
         ": the model's family has no function 'step', which is what would be measured");
  const int64_t prompt = options.prompt > 0 ? options.prompt : 256;
  const int64_t generate = options.generate > 0 ? options.generate : 32;
  if (prompt + generate > model->context())
    fail(ErrorCode::kUsage, "--prompt ", prompt, " and --generate ", generate,
         " are more than the context of the model, ", model->context(), " tokens");
  llm::Runner runner(model, {.context = prompt + generate});
  const auto tokens = llm::any_tokens(prompt, runner.vocab_size());
  profile::Measurement m;
  m.subject = model->name().empty() ? fs::path(path).stem().string() : model->name();
  phase.emplace("measuring");
  const SpanRecorder spans;
  measure_steps(parse_steps(options.steps), prompt + generate, m, *load.load.profile, [&] {
    runner.truncate(0, 0);
    runner.append(0, tokens);
    for (int64_t i = 0; i < generate; ++i)
      runner.append(0, std::span(tokens).subspan(static_cast<size_t>(i % prompt), 1));
  });
  profile = std::move(*load.load.profile);
  timelines = {profile::timeline_of(profile, spans.records(), 0)};
  return m;
}

profile::Measurement measure_model(const std::string& path, const ProfileOptions& options,
                                   const std::vector<std::string>& overrides,
                                   runtime::Profile& profile,
                                   std::vector<profile::RankTimeline>& timelines) {
  if (options.prompt > 0 || options.generate > 0)
    fail(ErrorCode::kUsage, "--prompt and --generate are for language models; ", path,
         " is another model");
  program::LoadOptions load;
  load.overrides = overrides;
  load.weights = options.weights;
  load.compile.target.device = cli::open_device(options.device);
  load.profile = std::make_shared<runtime::Profile>();
  load.profile->recording = false;
  infer::InputOptions input;
  input.batch = options.batch;
  if (!options.input.empty()) input.paths.push_back(options.input);
  load.provided = infer::provided_arrays(path, input);
  std::optional<Phase> phase(std::in_place, "loading the model");
  const auto model = program::load_model(path, load);
  std::vector<Array> inputs;
  if (input.paths.empty()) {
    inputs = infer::random_inputs(*model, infer::dim_sizes(*model, options.batch, options.dims));
  } else {
    if (!options.dims.empty())
      fail(ErrorCode::kUsage,
           "--dim sets sizes of random inputs; with --input the sizes are those "
           "of the file");
    const auto batch = infer::open_inputs(*model, input)->next();
    if (!batch) fail(ErrorCode::kData, options.input, ": the input has no samples");
    inputs = batch->inputs;
  }
  profile::Measurement m;
  m.subject = model->name().empty() ? fs::path(path).stem().string() : model->name();
  const int64_t samples = inputs.empty() || inputs[0].shape.empty() ? 1 : inputs[0].shape[0];
  phase.emplace("measuring");
  const SpanRecorder spans;
  measure_steps(parse_steps(options.steps), samples, m, *load.profile, [&] { model->run(inputs); });
  if (model->onnx())
    for (const std::string& line : model->onnx()->fallbacks()) cli::print_note(line);
  profile = std::move(*load.profile);
  timelines = {profile::timeline_of(profile, spans.records(), 0)};
  return m;
}

/// Fails before the measurement if the files of the report cannot be written.
void check_writable(const std::string& folder) {
  ensure_directory(folder);
  const AtomicFile probe((fs::path(folder) / "profile.json").string());
}

/// For --dry-run; the config of a run is checked as a whole.
std::string what_would_be_measured(const std::string& subject, const ProfileOptions& options,
                                   bool training, const std::string& folder) {
  const StepRange range = parse_steps(options.steps);
  if (training) train::read_config(subject, options.overrides);
  return str("would measure ", range.last - range.first, training ? " steps" : " predictions",
             " of ", subject, " after ", range.first, " of warm-up and write ", folder, "\n");
}

int profile_subject(ProfileOptions& options) {
  for (std::string& each : cli::take_arguments(options.dims))
    options.arguments.push_back(std::move(each));
  options.overrides = cli::take_overrides(options.arguments);
  if (options.arguments.empty())
    fail(ErrorCode::kUsage, "no config or model is given (see paddle-profile --help)");
  if (options.arguments.size() > 1)
    fail(ErrorCode::kUsage, "one config or model is expected, found '", options.arguments[0],
         "' and '", options.arguments[1], "'");
  std::string subject = options.arguments[0];
  if (is_directory(subject) && file_exists((fs::path(subject) / "run.json").string()))
    subject = train::config_of_run(subject);
  const bool training = train::is_config(subject);
  if (training) options.overrides = cli::with_model_files(subject, std::move(options.overrides));
  const auto& overrides = options.overrides;
  const bool language_model = !training && llm::is_language_model(subject);
  if (training && (!options.input.empty() || !options.dims.empty() || !options.weights.empty() ||
                   options.prompt > 0 || options.generate > 0))
    fail(ErrorCode::kUsage, "--input, --dim, --weights, --prompt and --generate are for models; ",
         subject, " is the config of a run");
  const std::string folder =
      !options.output.empty()
          ? options.output
          : (fs::path("profiles") / fs::path(options.arguments[0]).stem()).string();
  parse_steps(options.steps);
  if (const std::string file = lang::split_variant(subject).first;
      !file_exists(file) && !is_directory(file))
    fail(ErrorCode::kUsage, file, ": no such file or folder");
  const comm::Membership membership = comm::membership_from_environment();
  const bool several = membership.size > 1 || options.simulated > 1;
  if (several && !training)
    fail(ErrorCode::kUsage, "ranks share training steps; ", subject, " is a model");
  cli::check_simulated(membership, options.simulated);
  const auto transport =
      membership.size > 1 ? comm::join(membership, comm::JoinOptions::from_environment()) : nullptr;
  if (options.dry_run) {
    if (membership.rank == 0)
      cli::print(what_would_be_measured(subject, options, training, folder));
    return 0;
  }
  if (membership.rank == 0) {
    cli::check_output(folder, options.overwrite, "profile.json");
    check_writable(folder);
  }
  watch_for_interrupts();
  runtime::Profile profile;
  std::vector<profile::RankTimeline> timelines;
  profile::Measurement m =
      training
          ? measure_training(subject, options, overrides, membership, transport, profile, timelines)
      : language_model ? measure_language_model(subject, options, overrides, profile, timelines)
                       : measure_model(subject, options, overrides, profile, timelines);
  const int signal = pending_interrupt();
  if (membership.rank > 0) return signal == 0 ? 0 : 128 + signal;
  if (m.steps.empty()) {
    cli::print_error("stopped before the first measured step; nothing was written");
    return 128 + signal;
  }
  const Phase phase("writing the report");
  m.threads = thread_count();
  m.resident = peak_resident_bytes();  // before the peaks are measured, which takes memory
  m.peaks = profile::measure_peaks();
  m.bfloat16_gflops = profile::measure_bfloat16_gflops();
  const profile::Analysis analysis = profile::analyze(std::move(m), profile);
  profile::write_folder(analysis, timelines, folder);
  if (options.json)
    cli::print(profile::json(analysis));
  else
    cli::print(profile::tables(analysis, static_cast<size_t>(options.rows), options.depth) +
               "\nwritten to " + (fs::path(folder) / "report.html").string() + "\n");
  cli::report_host_fallbacks();
  if (signal == 0) return 0;
  cli::print_error(str("stopped by signal ", signal, " after ", analysis.measured.steps.size(),
                       " measured steps; the report covers these"));
  return 128 + signal;
}

int run_profile(int argc, char** argv) {
  cli::App app{"Measures where the time and the memory of a training step or a prediction go."};
  app.footer(
      "The report is a folder: report.html, trace.json for Perfetto, operations.csv, "
      "memory.csv and profile.json.");
  ProfileOptions options;
  app.add_option("SUBJECT", options.arguments,
                 "a config or run folder (a training step), or a model, checkpoint, model file, "
                 "ONNX file or language model (a prediction), then key=value overrides");
  app.add_option("-o,--output", options.output,
                 "folder of the report (default: profiles/<name>); an earlier report there is "
                 "replaced");
  cli::add_overwrite(app, options.overwrite);
  app.add_option("--steps", options.steps, "A:B, measure the steps A to B after A of warm-up")
      ->capture_default_str();
  app.add_option("--batch", options.batch, "of a model: samples of a prediction")
      ->capture_default_str()
      ->check(cli::in_range(int64_t{1}, int64_t{1} << 30));
  app.add_option("--dim", options.dims, "of a model: NAME=SIZE…, sizes of symbolic dims");
  app.add_option("--input", options.input, "of a model: predict this file, not random numbers");
  app.add_option("--weights", options.weights, "of a model file: its weights (safetensors)");
  app.add_option("--prompt", options.prompt,
                 "of a language model: tokens of the prompt that each step reads (256)")
      ->check(cli::in_range(int64_t{1}, int64_t{1} << 20));
  app.add_option("--generate", options.generate,
                 "of a language model: tokens that each step generates after it (32)")
      ->check(cli::in_range(int64_t{1}, int64_t{1} << 20));
  cli::add_device_options(app, options.device);
  app.add_option("--depth", options.depth,
                 "parts of a layer's path in the table by module; 0: no such table")
      ->capture_default_str()
      ->check(cli::in_range(int64_t{0}, int64_t{100}));
  app.add_option("--rows", options.rows, "rows of each table")
      ->capture_default_str()
      ->check(cli::in_range(int64_t{1}, int64_t{100000}));
  app.add_option("--simulate", options.simulated,
                 "of a config: run N ranks as threads of this process; paddle-launch starts real "
                 "ones")
      ->check(cli::in_range(1, 1024));
  app.add_flag("--dry-run", options.dry_run, "say what would be measured; write nothing");
  app.add_flag("--json", options.json, "print profile.json in place of tables");
  cli::App* diff = app.add_subcommand("diff", "compare two reports: what became slower");
  std::string before, after;
  diff->add_option("BEFORE", before, "folder of a report")->required();
  diff->add_option("AFTER", after, "folder of another")->required();
  bool diff_json = false;
  diff->add_flag("--json", diff_json, "print a JSON object");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  if (diff->parsed()) {
    const profile::FolderSummary a = profile::read_folder(before), b = profile::read_folder(after);
    cli::print(diff_json ? profile::compare_json(a, b) : profile::compare(a, b));
    return 0;
  }
  restart_with_short_spin_waits(argv);
  return profile_subject(options);
}

}  // namespace

namespace paddle::cli {

int profile_command(int argc, char** argv) {
  return run_tool([&] {
    register_sections();
    return run_profile(argc, argv);
  });
}

}  // namespace paddle::cli
