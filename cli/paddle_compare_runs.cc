// paddle-compare-runs A B: the first step, and the first operation, at which two runs part.

#include <nlohmann/json.hpp>

#include "base/interrupt.h"
#include "commands.h"
#include "common.h"
#include "common_observer.h"
#include "common_options.h"
#include "common_table.h"
#include "sections/sections.h"
#include "train/config/run_config.h"
#include "train/runs/compare_runs.h"
#include "train/runs/digests.h"
#include "train/runs/run_folder.h"

namespace {

using namespace paddle;
using nlohmann::ordered_json;

/// The relative difference of losses that rounding explains, by the precision of a run.
double default_bound(const std::string& run) {
  const std::string precision =
      train::precision_name(train::read_config(train::config_of_run(run), {}));
  return precision == "float64" ? 1e-10 : precision == "float32" ? 1e-5 : 1e-2;
}

ordered_json json_of(const train::RunDifference::At& at) {
  return {{"step", at.a.step},
          {"losses", {at.a.loss, at.b.loss}},
          {"relative", train::relative_difference(at.a.loss, at.b.loss)},
          {"parameters", at.parameters}};
}

ordered_json json_of(const train::ValueDifference& value) {
  return {{"operation", value.operation}, {"location", value.location}, {"type", value.type},
          {"different", value.different}, {"count", value.count},       {"largest", value.largest},
          {"scale", value.scale}};
}

template <class T>
ordered_json json_of(const std::optional<T>& value) {
  return value ? json_of(*value) : ordered_json();
}

std::string text_of(const train::RunDifference::At& at) {
  const double apart = train::relative_difference(at.a.loss, at.b.loss);
  std::string out = str("step ", at.a.step, ", ");
  if (apart == 0)
    out += str("loss ", format_double(at.a.loss), " in both");
  else
    out += str("losses ", format_double(at.a.loss), " and ", format_double(at.b.loss),
               " (relative difference ", cli::short_number(apart), ")");
  if (at.a.parameters.empty() || at.b.parameters.empty()) return out;
  out += str("; ", at.parameters.size(), " of ", at.a.parameters.size(), " parameters differ");
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(kShown, at.parameters.size()); ++i)
    out += (i == 0 ? ": " : ", ") + at.parameters[i];
  return out + (at.parameters.size() > kShown ? ", …" : "");
}

std::string text_of(const train::ValueDifference& value) {
  return str(value.operation, value.location.empty() ? "" : " at " + value.location, " : ",
             value.type, ": ", value.different, " of ", value.count,
             " elements, the largest difference ", cli::short_number(value.largest), " of ",
             cli::short_number(value.scale));
}

void print_steps(const train::RunDifference& steps, double bound) {
  if (steps.compared == 0) {
    cli::print("steps: the runs have no logged step in common\n");
    return;
  }
  cli::print(str("steps: ", steps.compared, " compared, by ",
                 steps.has_parameters ? "losses and digests of all parameters"
                                      : "logged losses only (train.digests: true records more)",
                 "\n"));
  cli::print(
      str("first other bits: ", steps.first_bits ? text_of(*steps.first_bits) : "none", "\n"));
  cli::print(str("first beyond ", format_double(bound), ": ",
                 steps.first_beyond ? text_of(*steps.first_beyond) : "none", "\n"));
}

void print_operations(const train::StepComparison& operations) {
  cli::print(str("operations of step ", operations.step, ", both from ",
                 operations.checkpoint.empty() ? "the initial weights" : operations.checkpoint,
                 ": ", operations.same_bits, " of ", operations.values,
                 " values have the same bits\n"));
  cli::print(str("first operation with different bits: ",
                 operations.first_bits ? text_of(*operations.first_bits) : "none", "\n"));
  cli::print(str("first operation beyond rounding: ",
                 operations.first_beyond ? text_of(*operations.first_beyond) : "none", "\n"));
  if (!operations.parted.empty()) cli::print("the programs part: " + operations.parted + "\n");
}

int run_compare_runs(int argc, char** argv) {
  cli::App app{"Finds the first step, and the first operation, at which two runs part."};
  app.footer(
      "A and B are run folders. Exit status: 0 if all losses agree within the tolerance, 1 if "
      "not.");
  std::string a, b;
  double tolerance = -1;
  int64_t at_step = 0;
  bool operations = false, as_json = false;
  app.add_option("A", a, "a run folder")->required();
  app.add_option("B", b, "another one")->required();
  app.add_option("--tolerance", tolerance,
                 "relative difference of losses that counts as rounding (default by the precision "
                 "of A: 1e-10, 1e-5 or 1e-2)")
      ->check(cli::kNonNegative);
  app.add_flag(
      "--operations", operations,
      "compute one step of both again, from the last checkpoint of A before they diverge, and "
      "compare it operation by operation");
  app.add_option("--step", at_step,
                 "with --operations: the step, instead of the first that differs")
      ->check(cli::kPositive);
  app.add_flag("--json", as_json, "print one JSON object");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  if (at_step > 0 && !operations) fail(ErrorCode::kUsage, "--step needs --operations");
  const auto first = train::read_digests(a), second = train::read_digests(b);
  const double bound = tolerance >= 0 ? tolerance : default_bound(a);
  const train::RunDifference steps = train::compare_digests(first, second, bound);
  std::optional<train::StepComparison> values;
  if (operations) {
    watch_for_interrupts();
    int64_t before = at_step;
    if (before == 0) before = steps.first_bits ? steps.first_bits->a.step : int64_t{1} << 60;
    cli::WarningObserver messages;
    values = train::compare_step(a, b, before, messages);
  }
  const bool differ =
      steps.first_beyond || (values && (values->first_beyond || !values->parted.empty()));
  if (as_json) {
    ordered_json out = {{"runs", {a, b}},
                        {"steps", steps.compared},
                        {"tolerance", bound},
                        {"largest", steps.largest},
                        {"first_bits", json_of(steps.first_bits)},
                        {"first_beyond", json_of(steps.first_beyond)}};
    if (values)
      out["operations"] = {{"step", values->step},
                           {"checkpoint", values->checkpoint},
                           {"values", values->values},
                           {"same_bits", values->same_bits},
                           {"first_bits", json_of(values->first_bits)},
                           {"first_beyond", json_of(values->first_beyond)},
                           {"parted", values->parted}};
    cli::print(out.dump() + "\n");
    return differ ? 1 : 0;
  }
  print_steps(steps, bound);
  if (values) print_operations(*values);
  return differ ? 1 : 0;
}

}  // namespace

namespace paddle::cli {

int compare_runs_command(int argc, char** argv) {
  return run_tool([&] {
    register_sections();
    return run_compare_runs(argc, argv);
  });
}

}  // namespace paddle::cli
