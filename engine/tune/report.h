#pragma once
// The results of a search: `tuned.yaml`, a config patch for a run and settings for a model,
// `report.json`, and `trials.json`, from which an interrupted search resumes.

#include <string>
#include <vector>

#include "tune/search.h"

namespace paddle::tune {

/// The subject of a search, as a user named it.
struct Request {
  std::string subject;                 ///< config or model
  std::vector<std::string> arguments;  ///< overrides and options that change the measurement
  std::string family = {};             ///< the model file of a language model; empty: by its type
};

/// A config that extends the tuned one by the accepted changes, with the gain of each.
std::string tuned_yaml(const Request& request, TuningTarget& subject, const Result& result,
                       const std::string& folder);
/// The settings of a model or a language model, with the gain of each; tuned_settings.h reads it.
/// Writes what they refer to into the folder.
std::string tuned_settings_yaml(const Request& request, TuningTarget& subject, const Result& result,
                                const std::string& folder);
/// The command that predicts with the settings in `file`; for several texts at a time also those
/// that answer requests.
std::string tuned_command(const Request& request, const TuningTarget& subject, const Result& result,
                          const std::string& file);
/// The unit of gains: "samples per second" or "tokens per second".
std::string rate(const TuningTarget& subject);
std::string report_json(const Request& request, const TuningTarget& subject, const Result& result);

/// `state` is TuningTarget::state().
void write_trials(const Request& request, const std::vector<Trial>& trials,
                  const std::string& state, const std::string& folder);
/// The trials of an interrupted search, whose state the subject takes; none if there is no file.
/// kUsage if they are of another request or another machine, kData if the file is damaged.
std::vector<Trial> read_trials(const Request& request, const std::string& folder,
                               TuningTarget& subject);

}  // namespace paddle::tune
