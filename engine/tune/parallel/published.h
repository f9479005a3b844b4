#pragma once
// The cost model against published training runs: a CSV file with a row for each run (shape,
// devices, strategy, speed, memory), as tests/tune/published_runs.csv.

#include <string>
#include <vector>

namespace paddle::tune {

struct PublishedRun {
  std::string id, set, device, precision;
  double seconds = 0, predicted = 0;        ///< of a step
  double memory = 0, predicted_memory = 0;  ///< bytes of a device; 0: not published
};

struct PublishedRuns {
  std::vector<PublishedRun> runs;
  /// Rows whose source states no shape of the model, or no speed.
  std::vector<std::string> without_shape;
};

/// kData with the line if the file is not such a table.
PublishedRuns check_published(const std::string& path);

/// Markdown: errors by set, and in all.
std::string published_text(const PublishedRuns& runs);

}  // namespace paddle::tune
