#pragma once
// Learning-rate schedules: the rate of each update as a function of its number alone, so that
// resuming needs no state. Any schedule may begin with a linear warm-up. The exception is the
// reduction on plateaus, whose state is updated by evaluations.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace paddle::optim {

enum class ScheduleKind {
  kConstant,
  kStep,
  kMultiStep,
  kExponential,
  kPolynomial,
  kCosine,
  kLinear,
  kCosineRestarts,
  kOneCycle,
  kCyclic,
  kNoam,
  kNaturalExponential,
  kInverseTime,
  kPiecewise,
  kInverseSqrt,
  kWarmupStableDecay,
  kReduceOnPlateau  ///< 1 here: evaluations decide, see PlateauOptions
};

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

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kConstant;
  int64_t steps = 0;      ///< length of polynomial, cosine and linear; 0: the whole run
  int64_t step_size = 0;  ///< step: updates between two reductions
  std::vector<int64_t> milestones = {};
  double gamma = 0.1;                ///< step, multi-step: factor; exponential: factor per update
  double power = 1;                  ///< polynomial
  int64_t period = 0;                ///< cosine restarts: updates of the first period
  int64_t period_factor = 1;         ///< and the factor from period to period
  double rise = 0.3;                 ///< one cycle: share of the run in which the rate grows
  double start_factor = 0.04;        ///< one cycle: initial rate over base rate
  int64_t up = 0, down = 0;          ///< cyclic: updates of each half
  double peak_factor = 1;            ///< cyclic: highest rate over base rate
  bool halving = false;              ///< cyclic: each cycle is half as high as the one before
  int64_t width = 0;                 ///< Noam: size of the model
  int64_t rising = 0;                ///< Noam: updates in which the rate grows
  std::vector<double> factors = {};  ///< piecewise: one more than there are milestones
  int64_t timescale =
      0;              ///< inverse square root: updates in which the rate falls to 0.7; 0: warmup
  int64_t decay = 0;  ///< warm-up, stable, decay: updates of the decay; 0: a tenth of the run
  enum class Shape { kLinear, kCosine, kSqrt };
  Shape shape = Shape::kLinear;  ///< of that decay
  PlateauOptions plateau = {};
  double end_factor = 0;    ///< final rate over base rate
  int64_t warmup = 0;       ///< updates of linear warm-up before the schedule begins
  double warmup_start = 0;  ///< factor at the first of them
};

/// Factor on the base rate for update `step` (from 0) of a run of `total` updates.
double schedule_factor(const ScheduleOptions& options, int64_t step, int64_t total);

}  // namespace paddle::optim
