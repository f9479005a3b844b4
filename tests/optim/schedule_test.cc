// Schedules against values worked out by hand.

#include <gtest/gtest.h>

#include <cmath>

#include "optim/schedule.h"

namespace paddle::optim {
namespace {

TEST(Schedule, Shapes) {
  EXPECT_EQ(schedule_factor({}, 5, 10), 1);
  EXPECT_DOUBLE_EQ(
      schedule_factor({.kind = ScheduleKind::kStep, .step_size = 3, .gamma = 0.5}, 7, 10), 0.25);
  EXPECT_DOUBLE_EQ(
      schedule_factor({.kind = ScheduleKind::kMultiStep, .milestones = {2, 6}, .gamma = 0.1}, 6,
                      10),
      0.01);
  EXPECT_DOUBLE_EQ(schedule_factor({.kind = ScheduleKind::kExponential, .gamma = 0.9}, 2, 10),
                   0.81);
  EXPECT_NEAR(schedule_factor({.kind = ScheduleKind::kCosine, .end_factor = 0.2}, 5, 10), 0.6,
              1e-12);
  EXPECT_NEAR(schedule_factor({.kind = ScheduleKind::kLinear, .end_factor = 0}, 4, 10), 0.6, 1e-12);
  EXPECT_NEAR(schedule_factor({.kind = ScheduleKind::kPolynomial, .power = 2}, 5, 10), 0.25, 1e-12);
  EXPECT_EQ(schedule_factor({.kind = ScheduleKind::kCosine}, 99, 10), 0);
}

TEST(Schedule, WarmUpComesBeforeAny) {
  const ScheduleOptions o{.kind = ScheduleKind::kLinear, .warmup = 4};
  EXPECT_DOUBLE_EQ(schedule_factor(o, 0, 14), 0.25);
  EXPECT_DOUBLE_EQ(schedule_factor(o, 3, 14), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(o, 4, 14), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(o, 9, 14), 0.5);
}

// Values of PyTorch's CosineAnnealingWarmRestarts(T_0=4, T_mult=2), OneCycleLR(total_steps=10,
// div_factor=25, final_div_factor=100) and CyclicLR(step_size_up=3, step_size_down=2), over the
// base rate or the highest one.
TEST(Schedule, CyclesAreAsInPyTorch) {
  const ScheduleOptions restarts{
      .kind = ScheduleKind::kCosineRestarts, .period = 4, .period_factor = 2};
  EXPECT_NEAR(schedule_factor(restarts, 1, 20), 0.8535533905932737, 1e-12);
  EXPECT_NEAR(schedule_factor(restarts, 4, 20), 1, 1e-12);
  EXPECT_NEAR(schedule_factor(restarts, 8, 20), 0.5, 1e-12);
  EXPECT_NEAR(schedule_factor(restarts, 12, 20), 1, 1e-12);
  const ScheduleOptions one{
      .kind = ScheduleKind::kOneCycle, .start_factor = 0.04, .end_factor = 0.0004};
  EXPECT_NEAR(schedule_factor(one, 0, 10), 0.04, 1e-12);
  EXPECT_NEAR(schedule_factor(one, 1, 10), 0.52, 1e-12);
  EXPECT_NEAR(schedule_factor(one, 2, 10), 1, 1e-12);
  EXPECT_NEAR(schedule_factor(one, 3, 10), 0.950504240177629, 1e-12);
  EXPECT_NEAR(schedule_factor(one, 9, 10), 0.0004, 1e-12);
  const ScheduleOptions cyclic{
      .kind = ScheduleKind::kCyclic, .gamma = 1, .up = 3, .down = 2, .peak_factor = 4};
  EXPECT_NEAR(schedule_factor(cyclic, 0, 20), 1, 1e-12);
  EXPECT_NEAR(schedule_factor(cyclic, 2, 20), 3, 1e-12);
  EXPECT_NEAR(schedule_factor(cyclic, 3, 20), 4, 1e-12);
  EXPECT_NEAR(schedule_factor(cyclic, 4, 20), 2.5, 1e-12);
  EXPECT_NEAR(schedule_factor(cyclic, 5, 20), 1, 1e-12);
}

TEST(Schedule, DecaysByFormula) {
  const ScheduleOptions noam{.kind = ScheduleKind::kNoam, .width = 16, .rising = 4};
  EXPECT_NEAR(schedule_factor(noam, 0, 20), 0.25 / 8, 1e-12);
  EXPECT_NEAR(schedule_factor(noam, 3, 20), 0.25 / 2, 1e-12);
  EXPECT_NEAR(schedule_factor(noam, 15, 20), 0.25 / 4, 1e-12);
  EXPECT_NEAR(schedule_factor({.kind = ScheduleKind::kNaturalExponential, .gamma = 0.1}, 5, 20),
              std::exp(-0.5), 1e-12);
  EXPECT_NEAR(schedule_factor({.kind = ScheduleKind::kInverseTime, .gamma = 0.5}, 6, 20), 0.25,
              1e-12);
  const ScheduleOptions piecewise{
      .kind = ScheduleKind::kPiecewise, .milestones = {2, 5}, .factors = {1, 0.5, 0.1}};
  EXPECT_EQ(schedule_factor(piecewise, 1, 20), 1);
  EXPECT_EQ(schedule_factor(piecewise, 2, 20), 0.5);
  EXPECT_EQ(schedule_factor(piecewise, 9, 20), 0.1);
}

}  // namespace
}  // namespace paddle::optim
