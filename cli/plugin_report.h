#pragma once
// The results of `paddle plugin check`: a table for the terminal, a JSON object and a page.

#include <map>
#include <string>
#include <utility>

#include "config/schema.h"
#include "conformance/check.h"

namespace paddle::cli {

/// Groups with their counts, and what failed or was skipped.
std::string report_table(const conformance::Report& report);
/// One JSON object; `indent` -1: on one line.
std::string report_json(const conformance::Report& report, int indent);
/// A page without other files.
std::string report_html(const conformance::Report& report);
/// The contents of the report.json of an earlier check.
struct EarlierReport {
  struct Outcome {
    std::string status, message;
  };
  std::string plugin, version, level;
  bool quick = false;
  std::map<std::pair<std::string, std::string>, Outcome> cases;  ///< by group and name
};
/// Throws kUsage if the file does not exist, kConfig if it is not a report.
EarlierReport read_report(const std::string& path);
/// The cases whose status has changed, and those that are new or gone.
std::string report_changes(const conformance::Report& report, const EarlierReport& before);
/// The form of report.json.
config::Schema report_schema();

}  // namespace paddle::cli
