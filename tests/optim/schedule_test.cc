// Schedules against values worked out by hand.

#include <gtest/gtest.h>

#include <cmath>

#include "optim/schedule.h"

namespace paddle::optim {
namespace {

TEST(Schedule, Shapes) {
  EXPECT_EQ(schedule_factor({}, 5, 10), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(make_schedule("{name: step, step_size: 3, gamma: 0.5}"), 7, 10),
                   0.25);
  EXPECT_DOUBLE_EQ(
      schedule_factor(make_schedule("{name: multi_step, milestones: [2, 6], gamma: 0.1}"), 6, 10),
      0.01);
  EXPECT_DOUBLE_EQ(schedule_factor(make_schedule("{name: exponential, gamma: 0.9}"), 2, 10), 0.81);
  EXPECT_NEAR(schedule_factor(make_schedule("{name: cosine, end_factor: 0.2}"), 5, 10), 0.6, 1e-12);
  EXPECT_NEAR(schedule_factor(make_schedule("{name: linear, end_factor: 0}"), 4, 10), 0.6, 1e-12);
  EXPECT_NEAR(schedule_factor(make_schedule("{name: polynomial, power: 2}"), 5, 10), 0.25, 1e-12);
  EXPECT_EQ(schedule_factor(make_schedule("{name: cosine}"), 99, 10), 0);
}

TEST(Schedule, WarmUpComesBeforeAny) {
  const Schedule o = make_schedule("{name: linear, warmup: 4}");
  EXPECT_DOUBLE_EQ(schedule_factor(o, 0, 14), 0.25);
  EXPECT_DOUBLE_EQ(schedule_factor(o, 3, 14), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(o, 4, 14), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(o, 9, 14), 0.5);
}

// Values of PyTorch's CosineAnnealingWarmRestarts(T_0=4, T_mult=2), OneCycleLR(total_steps=10,
// div_factor=25, final_div_factor=100) and CyclicLR(step_size_up=3, step_size_down=2), over the
// base rate or the highest one.
TEST(Schedule, CyclesAreAsInPyTorch) {
  const Schedule restarts = make_schedule("{name: cosine_restarts, period: 4, period_factor: 2}");
  EXPECT_NEAR(schedule_factor(restarts, 1, 20), 0.8535533905932737, 1e-12);
  EXPECT_NEAR(schedule_factor(restarts, 4, 20), 1, 1e-12);
  EXPECT_NEAR(schedule_factor(restarts, 8, 20), 0.5, 1e-12);
  EXPECT_NEAR(schedule_factor(restarts, 12, 20), 1, 1e-12);
  const Schedule one = make_schedule("{name: one_cycle, start_factor: 0.04, end_factor: 0.0004}");
  EXPECT_NEAR(schedule_factor(one, 0, 10), 0.04, 1e-12);
  EXPECT_NEAR(schedule_factor(one, 1, 10), 0.52, 1e-12);
  EXPECT_NEAR(schedule_factor(one, 2, 10), 1, 1e-12);
  EXPECT_NEAR(schedule_factor(one, 3, 10), 0.950504240177629, 1e-12);
  EXPECT_NEAR(schedule_factor(one, 9, 10), 0.0004, 1e-12);
  const Schedule cyclic = make_schedule("{name: cyclic, gamma: 1, up: 3, down: 2, peak_factor: 4}");
  EXPECT_NEAR(schedule_factor(cyclic, 0, 20), 1, 1e-12);
  EXPECT_NEAR(schedule_factor(cyclic, 2, 20), 3, 1e-12);
  EXPECT_NEAR(schedule_factor(cyclic, 3, 20), 4, 1e-12);
  EXPECT_NEAR(schedule_factor(cyclic, 4, 20), 2.5, 1e-12);
  EXPECT_NEAR(schedule_factor(cyclic, 5, 20), 1, 1e-12);
}

TEST(Schedule, DecaysByFormula) {
  const Schedule noam = make_schedule("{name: noam, width: 16, warmup_steps: 4}");
  EXPECT_NEAR(schedule_factor(noam, 0, 20), 0.25 / 8, 1e-12);
  EXPECT_NEAR(schedule_factor(noam, 3, 20), 0.25 / 2, 1e-12);
  EXPECT_NEAR(schedule_factor(noam, 15, 20), 0.25 / 4, 1e-12);
  EXPECT_NEAR(schedule_factor(make_schedule("{name: natural_exp, gamma: 0.1}"), 5, 20),
              std::exp(-0.5), 1e-12);
  EXPECT_NEAR(schedule_factor(make_schedule("{name: inverse_time, gamma: 0.5}"), 6, 20), 0.25,
              1e-12);
  const Schedule piecewise =
      make_schedule("{name: piecewise, milestones: [2, 5], factors: [1, 0.5, 0.1]}");
  EXPECT_EQ(schedule_factor(piecewise, 1, 20), 1);
  EXPECT_EQ(schedule_factor(piecewise, 2, 20), 0.5);
  EXPECT_EQ(schedule_factor(piecewise, 9, 20), 0.1);
}

TEST(Schedule, LengthsInEpochs) {
  const Schedule by_epochs =
      make_schedule("{name: multi_step, milestones: [2 epochs, 45], warmup: 0.5 epochs}");
  const Schedule in_updates = with_epoch_length(by_epochs, 20);
  const Schedule expected = make_schedule("{name: multi_step, milestones: [40, 45], warmup: 10}");
  EXPECT_EQ(in_updates.warmup, 10);
  for (int64_t step = 0; step < 80; ++step)
    EXPECT_EQ(schedule_factor(in_updates, step, 80), schedule_factor(expected, step, 80)) << step;
  const Schedule wsd = with_epoch_length(
      make_schedule("{name: wsd, steps: 3 epochs, decay: 1 epoch, warmup: 5 steps}"), 7);
  EXPECT_EQ(wsd.steps, 21);
  EXPECT_EQ(wsd.warmup, 5);
  EXPECT_EQ(schedule_factor(wsd, 5 + 14, 100), 1);
  EXPECT_LT(schedule_factor(wsd, 5 + 15, 100), 1);
  EXPECT_THROW(make_schedule("{name: step, step_size: 2 hours}"), Error);
  EXPECT_THROW(make_schedule("{name: step, step_size: -1 epochs}"), Error);
  EXPECT_THROW(make_schedule("{name: step, step_size: 0 epochs}"), Error);
}

TEST(Schedule, MayBeAddedAtRunTime) {
  config::Schema keys;
  keys.add("drop",
           config::Spec::real().at_least(0).fallback("0.5").doc("factor of the second half"));
  const ScheduleKind two_halves{
      .name = "two_halves", .keys = keys, .has_length = true, .make = [](const config::Section& s) {
        return Schedule{.factor = [drop = s.real("drop")](int64_t step, int64_t length) {
          return step < length / 2 ? 1.0 : drop;
        }};
      }};
  schedule_kinds().add({two_halves}, {"plugin.so"});
  EXPECT_THROW(schedule_kinds().add({two_halves}, {"other.so"}), Error);
  const Schedule schedule = make_schedule("{name: two_halves, drop: 0.25, warmup: 2}");
  EXPECT_EQ(schedule_factor(schedule, 0, 12), 0.5);
  EXPECT_EQ(schedule_factor(schedule, 6, 12), 1);
  EXPECT_EQ(schedule_factor(schedule, 7, 12), 0.25);
  EXPECT_THROW(make_schedule("{name: two_halves, drop: -1}"), Error);
  schedule_kinds().remove({"two_halves"});
  EXPECT_THROW(make_schedule("{name: two_halves}"), Error);
}

}  // namespace
}  // namespace paddle::optim
