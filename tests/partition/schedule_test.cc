// Job lists of pipelines: complete, free of deadlock, with the idle times that theory gives them.

#include "partition/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace paddle::partition {
namespace {

PipelineShape shape(Schedule schedule, int ranks, int micro_batches, int chunks = 1) {
  return {schedule, ranks, chunks, micro_batches};
}

TEST(Schedule, ListsHaveNoFault) {
  for (const int ranks : {1, 2, 3, 4, 8})
    for (const int micro_batches : {1, 2, 3, 4, 5, 8, 13}) {
      for (const Schedule schedule : {Schedule::kForwardThenBackward,
                                      Schedule::kOneForwardOneBackward, Schedule::kZeroBubble}) {
        const PipelineShape s = shape(schedule, ranks, micro_batches);
        EXPECT_EQ(find_fault(make_job_lists(s), s), std::nullopt) << ranks << " " << micro_batches;
      }
      for (const int chunks : {2, 3}) {
        const PipelineShape s = shape(Schedule::kInterleaved, ranks, micro_batches, chunks);
        EXPECT_EQ(find_fault(make_job_lists(s), s), std::nullopt) << ranks << " " << micro_batches;
      }
    }
}

TEST(Schedule, IdleTimesAreThoseOfTheory) {
  constexpr double kForward = 1, kBackward = 2, kWeights = 1;
  for (const int ranks : {2, 4, 8})
    for (const int times : {1, 2, 4}) {
      const int m = ranks * times;
      const auto bubble = [&](const PipelineShape& s) {
        return replay(make_job_lists(s), s, {kForward, kBackward, kWeights, 0}).bubble();
      };
      const double plain = static_cast<double>(ranks - 1) / m;
      const auto is_near = [](double found, double wanted) {
        return std::abs(found - wanted) <= 0.05 * wanted;
      };
      EXPECT_TRUE(is_near(bubble(shape(Schedule::kForwardThenBackward, ranks, m)), plain));
      EXPECT_TRUE(is_near(bubble(shape(Schedule::kOneForwardOneBackward, ranks, m)), plain));
      for (const int chunks : {2, 4})
        EXPECT_TRUE(
            is_near(bubble(shape(Schedule::kInterleaved, ranks, m, chunks)), plain / chunks))
            << ranks << " ranks, " << m << " micro-batches, " << chunks
            << " stages each: " << bubble(shape(Schedule::kInterleaved, ranks, m, chunks));
      // (p - 1)(F + B - W) idle time in m (F + B + W).
      const PipelineShape zero = shape(Schedule::kZeroBubble, ranks, m);
      EXPECT_TRUE(is_near(bubble(zero), plain / 3))
          << ranks << " ranks, " << m << " micro-batches: " << bubble(zero) << ", expected "
          << plain / 3;
    }
}

TEST(Schedule, OneForwardOneBackwardKeepsFewActivations) {
  const PipelineShape one = shape(Schedule::kOneForwardOneBackward, 4, 16);
  EXPECT_EQ(replay(make_job_lists(one), one, {}).most_active, (std::vector<int>{4, 3, 2, 1}));
  const PipelineShape all = shape(Schedule::kForwardThenBackward, 4, 16);
  EXPECT_EQ(replay(make_job_lists(all), all, {}).most_active, (std::vector<int>{16, 16, 16, 16}));
  const PipelineShape zero = shape(Schedule::kZeroBubble, 4, 16);
  for (const int active : replay(make_job_lists(zero), zero, {}).most_active) EXPECT_LE(active, 7);
}

TEST(Schedule, FaultsAreFound) {
  const PipelineShape s = shape(Schedule::kOneForwardOneBackward, 2, 2);
  const JobLists good = make_job_lists(s);
  const auto fault = [&](auto&& change) {
    JobLists lists = good;
    change(lists);
    return find_fault(lists, s).value_or("none");
  };
  EXPECT_EQ(fault([](JobLists&) {}), "none");
  EXPECT_EQ(fault([](JobLists& l) { l[1].pop_back(); }),
            "the job 'backward of micro-batch 1 in stage 1' is missing");
  EXPECT_EQ(fault([](JobLists& l) { l[0].push_back(l[0][0]); }),
            "duplicate job 'forward of micro-batch 0 in stage 0'");
  EXPECT_EQ(fault([](JobLists& l) { std::swap(l[0], l[1]); }),
            "rank 0 has the job 'forward of micro-batch 0 in stage 1', which is not its own");
  EXPECT_EQ(fault([](JobLists& l) { std::reverse(l[0].begin(), l[0].end()); }),
            "the ranks wait for each other: rank 0 at 'backward of micro-batch 1 in stage 0', rank "
            "1 at 'forward of micro-batch 0 in stage 1'");
  // Backward passes in another order than forward passes: no rank waits for ever, but messages of
  // one tag would be mixed up.
  const PipelineShape all = shape(Schedule::kForwardThenBackward, 1, 2);
  JobLists swapped = make_job_lists(all);
  std::swap(swapped[0][2], swapped[0][3]);
  EXPECT_EQ(
      find_fault(swapped, all),
      "rank 0 has the job 'backward of micro-batch 0 in stage 0' after that of micro-batch 1");
}

}  // namespace
}  // namespace paddle::partition
