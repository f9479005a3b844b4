#pragma once
// Learning-rate schedules: the rate of each update as a function of its number alone, so that
// resuming needs no state. Any schedule may begin with a linear warm-up. The exception is the
// reduction on plateaus, whose state is updated by evaluations. Each schedule is one object of a
// registry: its keys and the function that it makes of a config's values. optim/schedules/ has the
// built-in ones.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/registry.h"
#include "config/schema.h"

namespace paddle::optim {

/// Reduces the rate when a validation metric stops improving.
struct PlateauOptions {
  std::string metric = "loss";
  bool larger_is_better = false;
  double factor = 0.1;
  int64_t patience = 10;    ///< evaluations without improvement that are accepted
  double threshold = 1e-4;  ///< smallest improvement that counts, relative to the best
  bool is_relative = true;  ///< false: the threshold is a difference
  int64_t cooldown = 0;     ///< evaluations after a reduction in which none are counted
  double smallest_factor = 0;
};

/// The evaluations so far, in short. Part of checkpoints.
struct PlateauState {
  std::optional<double> best = {};
  int64_t waited = 0, cooldown = 0;
  double factor = 1;
};

/// Takes the value of an evaluation; true if the rate was reduced. Values that are not finite are
/// no improvement.
bool update_plateau(const PlateauOptions& options, double value, PlateauState& state);

/// A schedule with its warm-up.
struct Schedule {
  /// Factor on the base rate for update `step`, from 0 after the warm-up, of `length` updates,
  /// which are at least 1; steps may be past the end. None: 1.
  std::function<double(int64_t step, int64_t length)> factor = {};
  std::optional<PlateauOptions> plateau = {};  ///< then evaluations change the rate, too
  int64_t steps = 0;                           ///< length without warm-up; 0: the whole run
  int64_t warmup = 0;                          ///< updates of linear warm-up before it begins
  double warmup_start = 0;                     ///< factor at the first of them
  /// The section, if it states lengths in epochs: they count as one update each so far.
  std::shared_ptr<const config::Node> in_epochs = {};
};

/// The schedule of a run with epochs of that many updates: lengths in epochs become updates.
Schedule with_epoch_length(const Schedule& schedule, int64_t updates_per_epoch);

/// Factor on the base rate for update `step` (from 0) of a run of `total` updates.
double schedule_factor(const Schedule& schedule, int64_t step, int64_t total);

struct ScheduleKind {
  std::string name = {};
  /// Keys besides those of all schedules, `warmup` and `warmup_start`.
  config::Schema keys = {};
  /// Whether it has an end: then it also has the keys `steps` and `end_factor`.
  bool has_length = false;
  /// `factor` and `plateau` for the values of the keys, which are checked and complete.
  std::function<Schedule(const config::Section&)> make = {};
};

/// All schedules; more may be added while the program runs.
Registry<ScheduleKind>& schedule_kinds();

/// The section `schedule:`.
config::Spec schedule_spec();
/// The schedule of a section that fits `schedule_spec`.
Schedule read_schedule(const config::Section& section);
/// The schedule that YAML such as `{name: step, step_size: 7}` describes. kConfig for bad keys.
Schedule make_schedule(const std::string& yaml);

}  // namespace paddle::optim
