#pragma once
// Optimizers, schedules, metrics and transforms that a file NAME.plugin.yaml states: keys for
// configs, and code in the model language. Not for use outside the room.

#include <string>

#include "config/kind_keys.h"
#include "config/schema.h"
#include "data/transform_info.h"
#include "metrics/metric.h"
#include "optim/optimizer_kind.h"
#include "optim/schedule.h"
#include "plugin/text_code.h"

namespace paddle::plugin {

/// An entry of one of these sections, which fits its spec.
struct TextEntry {
  std::string name;  ///< "acme.signum", as in configs
  config::Section section;
  std::string file;                ///< for messages
  std::vector<StatedCode>& codes;  ///< that were read
};

/// The forms of the entries.
config::Spec optimizer_entry_spec();
config::Spec schedule_entry_spec();
config::Spec metric_entry_spec();
config::Spec transform_entry_spec();

/// An entry as the registries of the engine have it. kConfig with its place for code that does not
/// fit.
optim::OptimizerKind read_optimizer(const TextEntry& entry);
optim::ScheduleKind read_schedule(const TextEntry& entry);
metrics::MetricInfo read_metric(const TextEntry& entry);
data::TransformInfo read_transform(const TextEntry& entry);

/// The keys that an entry declares for configs; kConfig for one among `taken`, and for a path,
/// which code cannot read.
std::vector<KindKey> keys_of_entry(const TextEntry& entry, const std::vector<std::string>& taken);
/// Reads the code of a node, in which these names are known, and notes it in `codes`.
TextCode code_of_entry(const TextEntry& entry, const config::Node& node,
                       std::vector<std::string> names);
/// The names of a map in an entry: lower-case letters, digits and '_', none of them in `taken`.
/// kConfig names `what` they are.
void check_names(const config::Node& map, const char* what, const std::vector<std::string>& taken);

}  // namespace paddle::plugin
