// The number of threads follows the time that runs take.

#include "runtime/thread_choice.h"

#include <gtest/gtest.h>

namespace paddle::runtime {
namespace {

/// A machine on which a run takes these seconds on several threads and on one.
struct Machine {
  double several, waiting, one;
};

/// Runs on one thread among `count` on this machine.
int single_runs(ThreadChoice& choice, const Machine& machine, int count) {
  int single = 0;
  for (int i = 0; i < count; ++i) {
    const bool on_one = choice.single();
    single += on_one ? 1 : 0;
    const double wall = on_one ? machine.one : machine.several;
    choice.record(wall, on_one ? wall : wall * (1 - machine.waiting));
  }
  return single;
}

constexpr Machine kQuiet{1e-3, 0.05, 1.8e-3};
constexpr Machine kBusy{26e-3, 0.9, 2e-3};

TEST(ThreadChoice, QuietMachinesUseAllThreads) {
  ThreadChoice choice;
  EXPECT_EQ(single_runs(choice, kQuiet, 1000), 0);
}

TEST(ThreadChoice, BusyMachinesUseOneThread) {
  ThreadChoice choice;
  EXPECT_GE(single_runs(choice, kBusy, 100), 90);
  // Later probes become rare.
  EXPECT_GE(single_runs(choice, kBusy, 10000), 9950);
}

TEST(ThreadChoice, AFewShortRunsAreNotWorthAnotherPlan) {
  ThreadChoice choice;
  EXPECT_EQ(single_runs(choice, {20e-6, 0.9, 10e-6}, 100), 0);
}

TEST(ThreadChoice, ReturnsWhenTheMachineIsQuietAgain) {
  ThreadChoice choice;
  single_runs(choice, kBusy, 200);
  EXPECT_TRUE(choice.single());
  single_runs(choice, kQuiet, 400);
  EXPECT_EQ(single_runs(choice, kQuiet, 100), 0);
}

TEST(ThreadChoice, FewOfShortRunsAreTimed) {
  ThreadChoice choice;
  int timed = 0;
  for (int i = 0; i < 1600; ++i)
    if (choice.measures()) {
      ++timed;
      choice.record(15e-6, 14e-6);
    }
  EXPECT_EQ(timed, 100);
  // Waiting in the runs that are not timed counts as much.
  int64_t runs = 0;
  for (; runs < 100'000 && !choice.single(); ++runs)
    if (choice.measures()) choice.record(100e-6, 10e-6);
  EXPECT_LE(runs, 1000);
}

TEST(ThreadChoice, ATrialThatIsMuchSlowerIsShort) {
  ThreadChoice choice;
  // Long steps that share the cores fairly with other programs.
  EXPECT_EQ(single_runs(choice, {2.0, 0.5, 3.9}, 20), 3);
}

TEST(ThreadChoice, WaitingThatOneThreadDoesNotAvoidChangesLittle) {
  ThreadChoice choice;
  // Not balanced: the caller waits half of the time, and still several threads are faster.
  EXPECT_LE(single_runs(choice, {1e-3, 0.5, 1.7e-3}, 10000), 200);
}

}  // namespace
}  // namespace paddle::runtime
