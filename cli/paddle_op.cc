// paddle-op list|show|run|check|bench: the operations, one by one.

#include <CLI/CLI.hpp>

#include "base/parallel.h"
#include "common.h"
#include "inspect/check.h"
#include "inspect/reference.h"

namespace {

using namespace paddle;

struct CheckArguments {
  std::string file, filter;
  bool eager = false, compiled = false, numeric = false, strided = false;
  int order = 1;
  double timeout = 120;
};

int check(const CheckArguments& a) {
  if (a.numeric == !a.file.empty())
    fail(ErrorCode::kUsage, "check: give either a table of cases (FILE.jsonl) or --numeric");
  if (a.order != 1 && a.order != 2)
    fail(ErrorCode::kUsage, "--order: expected 1 or 2, found ", a.order);
  inspect::CheckOptions options;
  if (a.eager != a.compiled)
    options.cases.modes = {a.eager ? inspect::Mode::kEager : inspect::Mode::kCompiled};
  options.cases.strided = a.strided;
  options.filter = a.filter;
  options.isolation = {thread_count(), a.timeout};
  const auto report = [](const std::string& line) { cli::print(line + "\n"); };
  const auto result = a.numeric ? inspect::check_gradients(a.order, options, report)
                                : inspect::check_table(a.file, options, report);
  cli::print(str(result.passed, " passed, ", result.failed, " failed\n"));
  return result.failed ? static_cast<int>(ErrorCode::kDifference) : 0;
}

int run(int argc, char** argv) {
  CLI::App app{"Lists, shows, runs, checks and times operations."};
  app.require_subcommand(1);
  cli::CommonOptions common;
  app.add_option("--threads", common.threads, "threads (default: the cores this process may use)");
  app.add_flag("--debug", common.debug, "show more of an error");
  app.fallthrough();

  bool json = false;
  auto* list = app.add_subcommand("list", "every operation, a line each");
  list->add_flag("--json", json, "as one JSON array, with parameters, backends and traits");

  std::string name;
  auto* show = app.add_subcommand("show", "the reference page of an operation");
  show->add_option("NAME", name, "operation")->required();

  CheckArguments checks;
  auto* check_command = app.add_subcommand(
      "check", "compare operations with a table of cases, or gradients with differences");
  check_command->add_option("FILE", checks.file,
                            "cases: JSON lines beside an .npz of the same base name");
  check_command->add_flag("--eager", checks.eager, "eager mode alone (default: both)");
  check_command->add_flag("--compiled", checks.compiled, "compiled mode alone (default: both)");
  check_command->add_option("--filter", checks.filter,
                            "only names that match this regular expression");
  check_command->add_flag("--strided", checks.strided,
                          "inputs lie in memory with their axes turned round");
  check_command->add_flag("--numeric", checks.numeric,
                          "every gradient against finite differences in float64");
  check_command->add_option("--order", checks.order, "highest order of the differences: 1 or 2");
  check_command->add_option("--timeout", checks.timeout, "seconds that one case may take");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    fail(ErrorCode::kUsage, e.what(), " (see paddle-op --help)");
  }
  common.apply();
  if (*list) {
    cli::print(json ? inspect::list_json() : inspect::list_text());
    return 0;
  }
  if (*show) {
    cli::print(inspect::page(get_op(name)));
    return 0;
  }
  return check(checks);
}

}  // namespace

int main(int argc, char** argv) {
  return paddle::cli::run_tool([&] { return run(argc, argv); });
}
