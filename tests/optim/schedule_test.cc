// Schedules against values worked out by hand.

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace paddle::optim
