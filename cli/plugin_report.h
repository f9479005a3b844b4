#pragma once
// The results of `paddle plugin check`: a table for the terminal, a JSON object and a page.

#include <string>

#include "config/schema.h"
#include "conformance/check.h"

namespace paddle::cli {

/// Groups with their counts, and what failed or was skipped.
std::string report_table(const conformance::Report& report);
/// One JSON object; `indent` -1: on one line.
std::string report_json(const conformance::Report& report, int indent);
/// A page without other files.
std::string report_html(const conformance::Report& report);
/// The form of report.json.
config::Schema report_schema();

}  // namespace paddle::cli
