#pragma once
// Learning-rate schedules: the rate of each update as a function of its number alone, so that
// resuming needs no state. Any schedule may begin with a linear warm-up.

#include <cstdint>
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
  kPiecewise
};

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
  double end_factor = 0;             ///< final rate over base rate
  int64_t warmup = 0;                ///< updates of linear warm-up before the schedule begins
  double warmup_start = 0;           ///< factor at the first of them
};

/// Factor on the base rate for update `step` (from 0) of a run of `total` updates.
double schedule_factor(const ScheduleOptions& options, int64_t step, int64_t total);

}  // namespace paddle::optim
