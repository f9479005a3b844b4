#include "conformance/report.h"

#include <algorithm>

namespace paddle::conformance {

const char* text(Level level) {
  switch (level) {
    case Level::kNone:
      break;
    case Level::kLoads:
      return "loads";
    case Level::kComputes:
      return "computes";
    case Level::kTrains:
      return "trains";
    case Level::kDistributed:
      return "distributed";
    case Level::kComplete:
      return "complete";
  }
  return "none";
}

Coverage coverage_of(const Report& report, const std::string& group) {
  Coverage out;
  for (const Case& c : report.cases)
    if (const auto part = parse_coverage(c.message);
        part && c.group == group && c.status == Status::kPassed) {
      out.operations += part->operations;
      out.all += part->all;
    }
  return out;
}

Level level_of(const Report& report) {
  const auto fails = [&](const std::vector<std::string>& groups) {
    return std::ranges::any_of(
        groups, [&](const std::string& group) { return report.count(Status::kFailed, group) > 0; });
  };
  const auto passes = [&](const std::vector<std::string>& groups) {
    return std::ranges::any_of(
        groups, [&](const std::string& group) { return report.count(Status::kPassed, group) > 0; });
  };
  const std::vector<std::string> trains = {"gradients", "training"},
                                 between = {"collectives", "transports"};
  std::vector<std::string> computes;
  for (const std::string& group : groups())
    if (group != "load" && std::ranges::find(trains, group) == trains.end() &&
        std::ranges::find(between, group) == between.end())
      computes.push_back(group);
  if (fails({"load"}) || !passes({"load"})) return Level::kNone;
  if (!report.is_whole || fails(computes)) return Level::kLoads;
  if (fails(trains)) return Level::kComputes;
  if (fails(between)) return Level::kTrains;
  if (report.count(Status::kSkipped) == 0) return Level::kComplete;
  return passes(between) ? Level::kDistributed : Level::kTrains;
}

const char* text(Status status) {
  switch (status) {
    case Status::kPassed:
      return "passed";
    case Status::kFailed:
      return "failed";
    case Status::kSkipped:
      break;
  }
  return "skipped";
}

size_t Report::count(Status status, const std::string& group) const {
  return static_cast<size_t>(std::ranges::count_if(cases, [&](const Case& c) {
    return c.status == status && (group.empty() || c.group == group);
  }));
}

const std::vector<std::string>& groups() {
  static const std::vector<std::string> all = {
      "load",         //
      "memory",       //
      "streams",      //
      "schedules",    //
      "operators",    //
      "fuzz",         //
      "gradients",    //
      "training",     //
      "optimizers",   //
      "lr_schedule",  //
      "metrics",      //
      "transforms",   //
      "traits",       //
      "repeat",       //
      "plans",        //
      "errors",       //
      "collectives",  //
      "passes",       //
      "rules",        //
      "compilers",    //
      "transports",   //
      "tables",       //
      "readers",      //
      "speed",
  };
  return all;
}

}  // namespace paddle::conformance
