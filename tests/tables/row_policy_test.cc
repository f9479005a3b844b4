// Entry, statistics and removal of rows: counting day by day against counting at the next use.

#include "tables/row_policy.h"

#include <gtest/gtest.h>

namespace paddle::tables {
namespace {

TEST(RowPolicy, AbsenceOfAPolicyKeepsNothing) {
  const RowPolicy none;
  EXPECT_FALSE(none.observes() || none.waits() || none.removes() || none.keeps_statistics());
  RowPolicy one;
  one.entry_count = 1;
  EXPECT_FALSE(one.waits());
  one.entry_count = 2;
  EXPECT_TRUE(one.waits() && one.counts_waiting() && !one.keeps_statistics());
  RowPolicy chance;
  chance.entry_chance = 0.5;
  EXPECT_TRUE(chance.waits() && !chance.counts_waiting());
}

TEST(RowPolicy, DecayAtTheNextUseHasTheBitsOfADailyPass) {
  RowPolicy policy;
  policy.show = SampleNumber{1, ""};
  policy.click = SampleNumber{0, "label"};
  policy.decay = 0.98F;
  RowStatistics late{7, 3, 2};
  float show = 7, click = 3;
  for (int day = 2; day < 33; ++day) {
    show *= 0.98F;
    click *= 0.98F;
  }
  EXPECT_EQ(policy.on_day(late, 33).show, show);
  policy.use(late, {4, 4, 1}, 33);
  EXPECT_EQ(late.show, show + 4);
  EXPECT_EQ(late.click, click + 1);
  EXPECT_EQ(late.day, 33);
  // Long absence costs no time.
  const RowStatistics old{1, 1, 0};
  EXPECT_LT(policy.on_day(old, int64_t{1} << 40).show, 1e-40F);
}

TEST(RowPolicy, RowsAreRemovedByScoreAndByUnusedDays) {
  RowPolicy policy;
  policy.show = policy.click = SampleNumber{1, ""};
  policy.score_below = 0.8;
  policy.decay = 0.98F;
  // 0.1 * (10 - 0) = 1; after a day 0.98, after 12 days 0.785.
  const RowStatistics shown{10, 0, 5};
  EXPECT_FALSE(policy.is_removed(shown, 5));
  EXPECT_FALSE(policy.is_removed(shown, 15));  // 11 days of decay: 0.8007
  EXPECT_TRUE(policy.is_removed(shown, 16));
  EXPECT_FALSE(policy.is_removed({1, 1, 5}, 5));
  RowPolicy unseen;
  unseen.unseen_days = 3;
  EXPECT_FALSE(unseen.is_removed({0, 0, 5}, 7));
  EXPECT_TRUE(unseen.is_removed({0, 0, 5}, 8));
}

TEST(RowPolicy, KeysWaitForCountAndScore) {
  RowPolicy policy;
  policy.entry_count = 3;
  Waiting key;
  EXPECT_FALSE(policy.use(key, {2, 2, 0}, 0));
  EXPECT_TRUE(policy.use(key, {1, 1, 0}, 0));
  policy.entry_score = 1.2;
  EXPECT_FALSE(policy.use(key, {1, 1, 0}, 1));  // 0.1 * 4
  EXPECT_TRUE(policy.use(key, {1, 1, 1}, 1));   // 0.1 * 4 + 1
}

}  // namespace
}  // namespace paddle::tables
