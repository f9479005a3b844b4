#pragma once
// report.html of a run folder: curves, the last numbers, the data and the config on one page that
// needs nothing else.

#include <string>

namespace paddle::train {

/// Reads metrics.jsonl, run.json and config.yaml of the folder and writes report.html.
void write_run_report(const std::string& folder);

}  // namespace paddle::train
