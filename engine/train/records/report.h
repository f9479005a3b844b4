#pragma once
// report.html of a run folder: curves, the last numbers, details of the last evaluation, times, the
// data and the config on one page that needs nothing else.

#include <string>

namespace paddle::train {

/// Reads metrics.jsonl, evaluation.json, run.json and config.yaml of the folder and writes
/// report.html. `ending`: how the run ended, in a sentence.
void write_run_report(const std::string& folder, const std::string& ending);

}  // namespace paddle::train
