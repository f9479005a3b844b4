// paddle-op list|show|run|check|bench|fuzz|export: the operations, one by one.

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/parallel.h"
#include "commands.h"
#include "common.h"
#include "common_device.h"
#include "common_options.h"
#include "inspect/bench.h"
#include "inspect/check.h"
#include "inspect/export_cases.h"
#include "inspect/fuzz.h"
#include "inspect/peer.h"
#include "inspect/reference.h"
#include "inspect/run_op.h"
#include "ops/core/kernel.h"

namespace {

using namespace paddle;

struct CheckArguments {
  std::string file, filter, backend;
  Device device = {};
  bool eager = false, compiled = false, numeric = false, strided = false;
  int order = 1;
  double timeout = 120;
};

int check(const CheckArguments& a) {
  if (a.numeric == !a.file.empty())
    fail(ErrorCode::kUsage, "check: give either a table of cases (FILE.jsonl) or --numeric");
  if (a.order < 1 || a.order > 3)
    fail(ErrorCode::kUsage, "--order: expected 1, 2 or 3, found ", a.order);
  inspect::CheckOptions options;
  if (a.eager != a.compiled)
    options.cases.modes = {a.eager ? inspect::Mode::kEager : inspect::Mode::kCompiled};
  options.cases.strided = a.strided;
  options.cases.device = a.device;
  options.filter = a.filter;
  options.isolation = {thread_count(), a.timeout};
  std::optional<BackendScope> scope;
  if (!a.backend.empty()) scope.emplace(a.backend);
  const auto report = [](const std::string& line) { cli::print(line + "\n"); };
  const auto result = a.numeric ? inspect::check_gradients(a.order, options, report)
                                : inspect::check_table(a.file, options, report);
  cli::print(str(result.passed, " passed, ", result.failed, " failed\n"));
  return result.failed ? static_cast<int>(ErrorCode::kDifference) : 0;
}

int run_one(const inspect::NamedCall& call, inspect::Mode mode, bool grad, Device device,
            const std::string& output) {
  const auto arrays = inspect::run_named(call, mode, grad, device);
  if (!output.empty()) {
    formats::write_npz(output, arrays);
    return 0;
  }
  for (const auto& [name, array] : arrays)
    cli::print(str(name, ": ", text(array.dtype), str(array.shape), "\n", text(array), "\n"));
  return 0;
}

int fuzz(const std::string& family, inspect::FuzzOptions options) {
  options.workers = thread_count();
  const auto result =
      inspect::fuzz(family, options, [](const std::string& line) { cli::print(line + "\n"); });
  cli::print(
      str(result.calls, " calls, ", result.rejected, " rejected, ", result.failed, " failed\n"));
  if (!result.only_rejected.empty())
    cli::print("no call accepted: " + join(result.only_rejected, ", ") + "\n");
  return result.failed ? static_cast<int>(ErrorCode::kDifference) : 0;
}

/// The calls of the table compared with torch: a line for each as it is done, or one page at the
/// end.
int bench_peer(inspect::PeerOptions options, bool as_page) {
  const char* const set = std::getenv("PADDLE_PYTHON");
  if (options.python.empty() && set) options.python = set;
  const std::string version = inspect::peer_version(options);
  if (!as_page) cli::print(inspect::peer_head());
  const auto results = inspect::bench_beside_torch(options, [&](const inspect::PeerResult& r) {
    if (!as_page) cli::print(inspect::text(r));
  });
  cli::print(as_page ? inspect::page(results, version)
                     : version + ": " + inspect::summary(results));
  return 0;
}

int run_op(int argc, char** argv) {
  cli::App app{"Lists, shows, runs, checks and times operations."};
  app.require_subcommand(1);

  bool json = false;
  auto* list = app.add_subcommand("list", "every operation, a line each");
  list->add_flag("--json", json, "as one JSON array, with parameters, backends and traits");

  std::string name;
  auto* show = app.add_subcommand("show", "the reference page of an operation");
  show->add_option("NAME", name, "operation")->required();

  std::vector<std::string> words;
  std::string output;
  bool overwrite = false;
  bool grad = false, compiled = false;
  inspect::BenchOptions timing;
  auto* run_command = app.add_subcommand("run", "run one operation");
  auto* bench_command = app.add_subcommand("bench", "time one operation");
  for (auto* command : {run_command, bench_command}) {
    auto* option = command->add_option("NAME", name, "operation");
    if (command == run_command) option->required();
    command->add_option("ARGUMENTS", words, "name=value: x=@x.npy, x=f32[2,3], x=i64(0,2), axis=1");
  }
  run_command->add_option("-o,--output", output, "NPZ for the results (default: print them)");
  cli::add_overwrite(*run_command, overwrite);
  run_command->add_flag("--grad", grad, "also the gradients of the sum of the results");
  run_command->add_flag("--compiled", compiled, "in compiled mode (default: eager)");
  cli::DeviceOptions device;
  cli::add_device_options(*run_command, device);
  bench_command->add_flag("--json", json, "one JSON line");
  bench_command->add_option("--seconds", timing.seconds, "how long to measure: 0.5, 500ms, 1m")
      ->check(cli::duration(0, 1e6));
  bench_command
      ->add_option(
          "--backend", timing.backends,
          "backend whose kernels run (cpu, onednn; several are timed in turn; default: the faster)")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(cli::one_of({"cpu", "onednn"}));
  bench_command->add_flag("--first-result", timing.first_result,
                          "read only the first result, as inference does");

  std::string peer;
  bool as_page = false;
  inspect::PeerOptions peer_options;
  bench_command
      ->add_option("--peer", peer,
                   "instead of NAME: a table of calls compared with torch's in the same run")
      ->check(cli::one_of({"torch"}));
  bench_command->add_option("--python", peer_options.python,
                            "with --peer: an interpreter that has torch (default: PADDLE_PYTHON)");
  bench_command->add_option("--filter", peer_options.filter,
                            "with --peer: only operations that match this regular expression");
  bench_command->add_flag("--page", as_page, "with --peer: print a page of documentation");

  std::string family;
  inspect::FuzzOptions fuzzing;
  auto* fuzz_command = app.add_subcommand(
      "fuzz", "random calls of a family of operations: each must end in a result or a typed error");
  fuzz_command->add_option("FAMILY", family, "folder of engine/ops (math, nn, …), or all")
      ->required();
  fuzz_command->add_option("--time", fuzzing.seconds, "time until it ends: 60, 10m")
      ->check(cli::duration(0.001, 1e7));
  fuzz_command->add_option("--seed", fuzzing.seed, "seed of the calls");
  fuzz_command->add_option("--filter", fuzzing.filter,
                           "only operations that match this regular expression");
  fuzz_command->add_option("--timeout", fuzzing.timeout, "processor time that one call may take")
      ->check(cli::duration(0.001, 1e6));
  fuzz_command->add_flag("--keep-going", fuzzing.keep_going,
                         "continue after a failure, without the operation that failed");

  CheckArguments checks;
  auto* check_command = app.add_subcommand(
      "check", "compare operations with a table of cases, or gradients with differences");
  check_command->add_option("FILE", checks.file,
                            "cases: JSON lines next to an .npz of the same base name");
  check_command->add_flag("--eager", checks.eager, "eager mode only (default: both)");
  check_command->add_flag("--compiled", checks.compiled, "compiled mode only (default: both)");
  check_command->add_option("--filter", checks.filter,
                            "only names that match this regular expression");
  check_command
      ->add_option("--backend", checks.backend,
                   "prefer the kernels of this backend: cpu or onednn, or of an NVIDIA GPU: cuda, "
                   "cublaslt or cudnn")
      ->check(cli::one_of({"cpu", "onednn", "cuda", "cublaslt", "cudnn"}));
  cli::add_device_options(*check_command, device);
  check_command->add_flag("--strided", checks.strided, "inputs are transposed in memory");
  check_command->add_flag("--numeric", checks.numeric,
                          "every gradient against finite differences in float64");
  check_command->add_option("--order", checks.order, "highest order of the derivatives: 1, 2 or 3");
  check_command
      ->add_option("--timeout", checks.timeout,
                   "processor time that one case may take: 20, 500ms, 1m")
      ->check(cli::duration(0.001, 1e6));

  std::string table, folder;
  inspect::ExportCaseOptions exporting;
  auto* export_command =
      app.add_subcommand("export", "write an ONNX file for each case of a table");
  export_command->add_option("FILE", table, "cases, as for check")->required();
  export_command->add_option("-o,--output", folder, "folder for the files")->required();
  cli::add_overwrite(*export_command, overwrite);
  export_command->add_option("--filter", exporting.filter,
                             "only names that match this regular expression");
  export_command
      ->add_option("--opset", exporting.opset, "opset to write for (default: the lowest that fits)")
      ->check(cli::in_range(int64_t{17}, int64_t{26}));
  export_command->add_flag("--check", exporting.check,
                           "read the files back, run them and compare with the operation");
  export_command->add_flag("--dry-run", exporting.dry_run,
                           "print what has an ONNX form, write nothing");
  export_command->add_flag("--json", json, "print a JSON object on the last line: the counts");

  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  cli::check_output(run_command->parsed() ? output : "", overwrite);
  if (export_command->parsed()) {
    if (!exporting.dry_run) cli::check_output(folder, overwrite);
    if (exporting.dry_run && exporting.check)
      fail(ErrorCode::kUsage, "--check reads the files back, which --dry-run does not write");
    const auto report = [](const std::string& line) { cli::print(line + "\n"); };
    const auto counts = inspect::export_cases(table, folder, exporting, report);
    cli::print(str(counts.exported, " exported, ", counts.no_form, " without ONNX form, ",
                   counts.failed, " failed\n"));
    if (json)
      cli::print(nlohmann::ordered_json({{"exported", counts.exported},
                                         {"no_onnx_form", counts.no_form},
                                         {"failed", counts.failed},
                                         {"skipped", counts.skipped}})
                     .dump() +
                 "\n");
    return counts.failed ? static_cast<int>(ErrorCode::kDifference) : 0;
  }
  if (list->parsed()) {
    cli::print(json ? inspect::list_json() : inspect::list_text());
    return 0;
  }
  if (show->parsed()) {
    cli::print(inspect::page(get_op(name)));
    return 0;
  }
  if (run_command->parsed()) {
    const auto mode = compiled ? inspect::Mode::kCompiled : inspect::Mode::kEager;
    return run_one(inspect::parse_call(get_op(name), words), mode, grad, cli::open_device(device),
                   output);
  }
  if (fuzz_command->parsed()) return fuzz(family, fuzzing);
  if (bench_command->parsed() && !peer.empty()) {
    if (!name.empty())
      fail(ErrorCode::kUsage, "bench: give either NAME or --peer, found '", name, "' with --peer");
    peer_options.seconds =
        bench_command->count("--seconds") ? timing.seconds : peer_options.seconds;
    return bench_peer(peer_options, as_page);
  }
  if (bench_command->parsed() &&
      (as_page || !peer_options.python.empty() || !peer_options.filter.empty()))
    fail(ErrorCode::kUsage, "bench: --python, --filter and --page need --peer");
  if (bench_command->parsed() && name.empty())
    fail(ErrorCode::kUsage, "bench: give NAME or --peer torch");
  if (bench_command->parsed()) {
    for (const auto& result : inspect::bench(inspect::parse_call(get_op(name), words), timing))
      cli::print(json ? inspect::json(result, name) : inspect::text(result));
    return 0;
  }
  checks.device = cli::open_device_in_children(device);
  return check(checks);
}

}  // namespace

namespace paddle::cli {

int op_command(int argc, char** argv) {
  return run_tool([&] { return run_op(argc, argv); });
}

}  // namespace paddle::cli
