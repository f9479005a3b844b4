// Parameter groups: what they freeze, and what is said of groups that do nothing.

#include <gtest/gtest.h>

#include "optim/optimizer.h"

namespace paddle::optim {
namespace {

using Lines = std::vector<std::string>;

ParameterGroup group(std::string key, std::vector<std::string> match, bool frozen) {
  ParameterGroup g;
  g.key = std::move(key);
  g.match = std::move(match);
  g.frozen = frozen;
  return g;
}

Optimizer with_groups(std::vector<ParameterGroup> groups) {
  OptimizerOptions options;
  options.groups = std::move(groups);
  return Optimizer(options);
}

TEST(ParameterGroups, LaterOnesWin) {
  const Optimizer o = with_groups(
      {group("frozen", {"body.*"}, true), group("optimizer.groups.0", {"*.bias"}, false)});
  EXPECT_TRUE(o.is_frozen("body.weight"));
  EXPECT_FALSE(o.is_frozen("body.bias"));
  EXPECT_FALSE(o.is_frozen("head.weight"));
  EXPECT_EQ(o.warnings({"body.weight", "body.bias", "head.weight"}), Lines());
}

TEST(ParameterGroups, NameEachPatternThatMatchesNothing) {
  const Optimizer o = with_groups(
      {group("optimizer.groups.0", {"*.bias", "norm?"}, false), group("frozen", {"boby.*"}, true)});
  EXPECT_EQ(o.warnings({"body.weight", "body.bias"}),
            Lines({"optimizer.groups.0: no parameter matches \"norm?\"",
                   "frozen: no parameter matches \"boby.*\""}));
}

TEST(ParameterGroups, SayThatNothingIsLeftToTrain) {
  const Optimizer all = with_groups({group("frozen", {"*"}, true)});
  EXPECT_EQ(all.warnings({"weight", "bias"}),
            Lines({"every parameter is frozen: the run changes none of them"}));
  EXPECT_EQ(all.warnings({}), Lines({"frozen: no parameter matches \"*\""}));
}

}  // namespace
}  // namespace paddle::optim
