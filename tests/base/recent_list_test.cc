#include "base/recent_list.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace paddle {
namespace {

std::vector<std::string> values_of(const RecentList<std::string>& list) {
  return {list.begin(), list.end()};
}

TEST(RecentList, DropsTheOneThatWasNotUsedForTheLongestTime) {
  RecentList<std::string> list;
  for (const char* each : {"a", "b", "c"}) list.add(each, 3);
  const auto is_a = [](const std::string& each) { return each == "a"; };
  ASSERT_NE(list.find(is_a), nullptr);
  EXPECT_EQ(values_of(list), (std::vector<std::string>{"a", "c", "b"}));
  list.add("d", 3);
  EXPECT_EQ(values_of(list), (std::vector<std::string>{"d", "a", "c"}));
  EXPECT_EQ(list.find([](const std::string& each) { return each == "b"; }), nullptr);
  EXPECT_EQ(values_of(list), (std::vector<std::string>{"d", "a", "c"}));
}

TEST(RecentList, CopiesInOrder) {
  RecentList<std::string> list, copy;
  for (const char* each : {"a", "b"}) list.add(each, 2);
  for (const std::string& each : list) copy.add_oldest(each);
  EXPECT_EQ(values_of(copy), values_of(list));
}

}  // namespace
}  // namespace paddle
