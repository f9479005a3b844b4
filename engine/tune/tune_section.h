#pragma once
// The section `tune:` of a run's config: what paddle-tune tries, where its command line does not
// say.

#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"

namespace paddle::tune {

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
