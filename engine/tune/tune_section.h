#pragma once
// The section `tune:` of a run's config: what paddle-tune tries, where its command line does not
// say.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"

namespace paddle::tune {

/// Defaults where neither the command line nor the section sets a value.
inline constexpr double kTimeLimit = 300, kLossTolerance = 0.02;
inline constexpr int64_t kPlans = 10;

struct TuneSection {
  std::vector<std::string> what = {};  ///< dimensions; empty: those that keep the results
  std::optional<double> time_limit, loss_tolerance;
  std::string output = {};   ///< folder of the results; "": not stated
  std::string cluster = {};  ///< of planning
  std::vector<std::string> fix = {};
  std::optional<int64_t> plans = {};
};

config::Schema tune_schema();
/// Registers the section (config/sections.h).
void register_section();
/// The section of a checked document; without one, nothing is stated.
TuneSection read_tune_section(const config::Node& document);

}  // namespace paddle::tune
