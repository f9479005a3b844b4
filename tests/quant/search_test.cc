// How many trials a search still runs at most, which is what the time left is made of.
#include "quant/search.h"

#include <gtest/gtest.h>

namespace paddle::quant {
namespace {

SearchProgress search_of(size_t layers) {
  SearchProgress out;
  for (size_t i = 0; i < layers; ++i) out.order.push_back(std::to_string(i));
  return out;
}

TEST(Search, TrialsLeftAreABoundThatWorstCasesReach) {
  SearchOptions options;
  options.trials = 1000;
  for (const size_t layers : {1, 2, 3, 5, 8, 17, 40}) {
    const auto most = static_cast<int64_t>(layers) - 1;
    int64_t longest = 0, first_bound = 0;
    for (int64_t needed = 0; needed <= most + 1; ++needed) {  // the last one: none is accepted
      SearchProgress state = search_of(layers);
      std::vector<int64_t> bounds;
      search(
          state, options,
          [&](int64_t kept) {
            bounds.push_back(most_trials_left(state, options));
            return Trial{kept, kept >= needed, static_cast<double>(needed - kept)};
          },
          [](const Trial&, bool) {});
      const auto count = static_cast<int64_t>(bounds.size());
      longest = std::max(longest, count);
      first_bound = bounds.front();
      for (int64_t i = 0; i < count; ++i)
        EXPECT_GE(bounds[static_cast<size_t>(i)], count - i) << layers << " layers, " << needed;
      for (size_t i = 1; i < bounds.size(); ++i) EXPECT_LT(bounds[i], bounds[i - 1]);
    }
    EXPECT_EQ(first_bound, longest) << layers << " layers";
  }
}

TEST(Search, TrialsLeftStayWithinTheBudget) {
  SearchOptions options;
  options.trials = 4;
  SearchProgress state = search_of(1000);
  EXPECT_EQ(most_trials_left(state, options), 4);
  state.trials = {{0, false, 1}, {1, false, 1}, {2, false, 1}};
  EXPECT_EQ(most_trials_left(state, options), 1);
  state.trials.push_back({4, true, 0});
  EXPECT_EQ(most_trials_left(state, options), 0);
}

}  // namespace
}  // namespace paddle::quant
