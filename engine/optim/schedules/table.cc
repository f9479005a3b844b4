// The table of the built-in schedules, in the order of the reference.

#include "optim/schedule.h"

namespace paddle::optim {

// decays.cc
ScheduleKind constant_schedule();
ScheduleKind exponential_schedule();
ScheduleKind natural_exp_schedule();
ScheduleKind inverse_time_schedule();
ScheduleKind inverse_sqrt_schedule();
ScheduleKind noam_schedule();
// steps.cc
ScheduleKind step_schedule();
ScheduleKind multi_step_schedule();
ScheduleKind piecewise_schedule();
// to_end.cc
ScheduleKind polynomial_schedule();
ScheduleKind cosine_schedule();
ScheduleKind linear_schedule();
ScheduleKind one_cycle_schedule();
ScheduleKind wsd_schedule();
// cycles.cc
ScheduleKind cosine_restarts_schedule();
ScheduleKind cyclic_schedule();
// plateau.cc
ScheduleKind reduce_on_plateau_schedule();

Registry<ScheduleKind>& schedule_kinds() {
  static Registry<ScheduleKind> kinds(
      "schedule",
      {constant_schedule(), step_schedule(), multi_step_schedule(), exponential_schedule(),
       polynomial_schedule(), cosine_schedule(), linear_schedule(), cosine_restarts_schedule(),
       one_cycle_schedule(), cyclic_schedule(), noam_schedule(), natural_exp_schedule(),
       inverse_time_schedule(), piecewise_schedule(), inverse_sqrt_schedule(), wsd_schedule(),
       reduce_on_plateau_schedule()});
  return kinds;
}

}  // namespace paddle::optim
