#pragma once
// The search for a model that is accepted: layers go back to floats, the most sensitive first,
// until the user's terms hold. The best model so far is always on disk, and a search that was
// interrupted continues.

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/document.h"
#include "quant/function_runner.h"
#include "quant/layers.h"
#include "quant/progress.h"

namespace paddle::quant {

/// `quant.search`.
struct SearchOptions {
  Sensitivity sensitivity = Sensitivity::kSqnr;
  std::optional<double> seconds;  ///< after which the best model so far is taken
  /// When the whole job has to end; in the same way.
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  int64_t trials = 50;
};
/// Of a resolved configuration; nullopt without that section. kConfig for a time of another form.
std::optional<SearchOptions> read_search(const config::Node& document);

/// The signal-to-noise ratio of the model's first output when only one layer is quantized, on these
/// inputs; nullopt for layers that stay float, and for those that `seconds` leaves no time for.
std::vector<std::optional<double>> output_noise(Quantizable& model,
                                                const std::vector<Array>& inputs,
                                                const WeightSource& weight,
                                                const Progress& progress,
                                                std::optional<double> seconds = {});

/// The outcome of a trial.
struct Trial {
  int64_t kept_float = 0;  ///< the first layers of the order
  bool accepted = false;
  double accuracy_gap = 0;  ///< how far from the terms, smaller is better
};

/// Trials of a search, as progress.json keeps them.
struct SearchProgress {
  std::string fingerprint;  ///< of the model and the terms
  Sensitivity sensitivity = Sensitivity::kSqnr;
  std::vector<std::string> order;  ///< layers, the most sensitive first
  std::vector<double> values;      ///< their sensitivities
  /// Layers that were float before the search, with the reasons.
  std::vector<std::pair<std::string, std::string>> kept;
  std::vector<Trial> trials;
};
/// Nullopt if the file is missing or belongs to another search.
std::optional<SearchProgress> read_progress(const std::filesystem::path& file,
                                            const std::string& fingerprint);
void write_progress(const std::filesystem::path& file, const SearchProgress& progress);

/// Decisions about layers, with their times: a job that resumes decides the same.
void write_decisions(const std::filesystem::path& file, const std::vector<Layer>& layers);
/// False, without a change, if the file is missing or has other layers.
bool read_decisions(const std::filesystem::path& file, std::vector<Layer>& layers);

/// How many more trials a search runs at most, by what its trials so far leave open.
int64_t most_trials_left(const SearchProgress& progress, const SearchOptions& options);

/// Finds the fewest layers that have to be float, by halving; accepts what `run(kept_float)` says
/// and records it with `record`. Trials in `progress` are not run again. Returns the best trial.
Trial search(SearchProgress& progress, const SearchOptions& options,
             const std::function<Trial(int64_t kept_float)>& run,
             const std::function<void(const Trial& trial, bool best)>& record);

}  // namespace paddle::quant
