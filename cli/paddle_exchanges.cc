// paddle-exchanges RUN: the last exchanges of the ranks of a run, and where they diverge.

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "comm/flight_report.h"
#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "common_table.h"

namespace {

using namespace paddle;
using nlohmann::ordered_json;

std::string end_text(comm::FlightEnd end) {
  return end == comm::FlightEnd::kDone     ? "ended"
         : end == comm::FlightEnd::kFailed ? "failed"
                                           : "did not end";
}

ordered_json json_of(const comm::FlightLog& log, int64_t now) {
  ordered_json out = {{"rank", log.rank},
                      {"host", log.host},
                      {"process", log.process},
                      {"step", log.step},
                      {"records", log.exchanges},
                      {"end", end_text(log.end)},
                      {"state", comm::state_text(log, now)}};
  if (const comm::FlightRecord* const last = log.last_exchange())
    out["last"] = {
        {"exchange", comm::text(*last)}, {"complete", last->end != 0}, {"bytes", last->bytes}};
  return out;
}

int run_exchanges(int argc, char** argv) {
  cli::App app{"Shows the last exchanges of the ranks of a run, and where they diverge."};
  app.footer(
      "The exit code is 1 if a rank did not enter an exchange in which others wait, or is "
      "slow. Example: paddle-exchanges runs/digits");
  std::string run;
  bool json = false;
  app.add_option("RUN", run, "the folder of a run of several ranks, which may still run")
      ->required();
  app.add_flag("--json", json, "print one JSON object");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  const std::string folder = join_path(run, "ranks");
  const std::vector<comm::FlightLog> logs = comm::read_flights(folder);
  if (logs.empty())
    fail(ErrorCode::kUsage, run,
         ": has no records of exchanges (ranks/N.flight), which runs of several ranks keep");
  const int64_t now = comm::latest(logs);
  const auto divergence = comm::find_divergence(logs, now);
  const std::vector<comm::SlowPart> slow = comm::find_slow(logs);
  if (json) {
    ordered_json ranks = ordered_json::array(), parts = ordered_json::array();
    for (const comm::FlightLog& log : logs) ranks.push_back(json_of(log, now));
    for (const comm::SlowPart& part : slow)
      parts.push_back({{"name", part.name}, {"evidence", part.evidence}});
    ordered_json out = {{"ranks", ranks}, {"slow", parts}};
    out["divergence"] = divergence ? ordered_json(*divergence) : ordered_json();
    cli::print(out.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  } else {
    cli::Table table({"rank", "host", "step", "end", "state"});
    for (const comm::FlightLog& log : logs)
      table.add_row(
          {str(log.rank), log.host, str(log.step), end_text(log.end), comm::state_text(log, now)});
    cli::print(table.text());
    for (int rank = 0; rank < logs[0].size; ++rank)
      if (std::none_of(logs.begin(), logs.end(), [&](const auto& l) { return l.rank == rank; }))
        cli::print_line(str("rank ", rank, " has no record"));
    if (divergence) cli::print_line("first difference: " + *divergence);
    for (const comm::SlowPart& part : slow) cli::print_line(part.evidence);
  }
  return divergence || !slow.empty() ? static_cast<int>(ErrorCode::kDifference) : 0;
}

}  // namespace

namespace paddle::cli {

int exchanges_command(int argc, char** argv) {
  return run_tool([&] { return run_exchanges(argc, argv); });
}

}  // namespace paddle::cli
