#pragma once
// The cost model against published training runs: a CSV file with a row for each run (shape,
// devices, strategy, speed, memory), as tests/tune/published_runs.csv.

#include <string>
#include <vector>

namespace paddle::tune {

struct PublishedRun {
  std::string id, set, device, precision;
  /// Runs of a group differ in their strategies only.
  std::string group;
  double sequences = 0;                     ///< of a step
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

/// The choices among published runs: whether the strategy that the model prefers is as fast as the
/// best one that was measured.
struct PublishedChoices {
  int groups = 0;         ///< of at least two strategies
  int within = 0;         ///< whose preferred run takes at most 2% longer than the best
  int best = 0;           ///< whose preferred run is the best
  double worst = 0;       ///< loss of the worst choice, as a share of the best time
  std::string worst_run;  ///< that was preferred
};
PublishedChoices choices_of(const PublishedRuns& runs);

/// A JSON object with each run and the choices.
std::string published_json(const PublishedRuns& runs);

/// Markdown: errors by set, in all, and choices.
std::string published_text(const PublishedRuns& runs);

}  // namespace paddle::tune
