#include "optim/schedule.h"

#include <algorithm>
#include <utility>

#include "base/update_count.h"

namespace paddle::optim {
namespace {

/// Replaces the lengths in epochs by numbers of updates; whether there were any.
bool replace_epochs(config::Node& section, int64_t updates_per_epoch) {
  bool found = false;
  const auto replace = [&](config::Node& value) {
    if (!value.is_scalar()) return;
    const auto count = parse_update_count(value.text);
    if (!count || value.try_int()) return;
    value.text = str(count->count(updates_per_epoch));
    value.quote = config::Node::Quote::kPlain;
    found |= count->is_in_epochs();
  };
  for (config::Entry& entry : section.entries) {
    replace(entry.value);
    for (config::Node& item : entry.value.items) replace(item);
  }
  return found;
}

/// The schedule of a section without lengths in epochs.
Schedule make_from(const config::Section& s) {
  const auto kind = schedule_kinds().find(s.text("name"));
  if (!kind)
    throw Error(ErrorCode::kConfig, str("unknown schedule '", s.text("name"), "'"),
                s.node().location());
  Schedule out = kind->make(s);
  if (kind->has_length) out.steps = s.integer("steps");
  out.warmup = s.integer("warmup");
  out.warmup_start = s.real("warmup_start");
  return out;
}

}  // namespace

using config::Schema;
using config::Section;
using config::Spec;

double schedule_factor(const Schedule& s, int64_t step, int64_t total) {
  if (step < s.warmup)
    return s.warmup_start +
           (1 - s.warmup_start) * static_cast<double>(step + 1) / static_cast<double>(s.warmup);
  const int64_t length = std::max<int64_t>(1, s.steps > 0 ? s.steps : total - s.warmup);
  return s.factor ? s.factor(step - s.warmup, length) : 1;
}

Spec schedule_spec() {
  std::vector<std::pair<std::string, Schema>> schemas;
  for (const auto& kind : schedule_kinds().all()) {
    Schema s = kind->keys;
    if (kind->has_length) {
      s.add("steps", Spec::updates().at_least(0).fallback("0").doc("length; 0 is the whole run"));
      s.add("end_factor", Spec::real().at_least(0).fallback("0").doc("final rate over base rate"));
    }
    s.add("warmup", Spec::updates().at_least(0).fallback("0").doc("length of the linear warm-up"));
    s.add("warmup_start", Spec::real().at_least(0).at_most(1).fallback("0").doc(
                              "factor of the rate at the first update"));
    schemas.emplace_back(kind->name, std::move(s));
  }
  return Spec::choice("name", std::move(schemas)).doc("learning rate over the run");
}

Schedule read_schedule(const Section& s) {
  config::Node in_updates = s.node();
  const bool has_epochs = replace_epochs(in_updates, 1);
  Schedule out = make_from(Section(in_updates));
  if (has_epochs) out.in_epochs = std::make_shared<config::Node>(s.node());
  return out;
}

Schedule with_epoch_length(const Schedule& schedule, int64_t updates_per_epoch) {
  if (!schedule.in_epochs) return schedule;
  config::Node in_updates = *schedule.in_epochs;
  replace_epochs(in_updates, updates_per_epoch);
  Schedule out = make_from(Section(in_updates));
  out.plateau = schedule.plateau;
  return out;
}

Schedule make_schedule(const std::string& yaml) {
  config::Diagnostics diagnostics;
  config::Node node = config::parse_document(yaml, "schedule");
  schedule_spec().resolve(node, "schedule", diagnostics);
  diagnostics.raise();
  return read_schedule(Section(node));
}

}  // namespace paddle::optim
