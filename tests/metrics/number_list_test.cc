// Lists of numbers that are sorted in place, against std::sort.

#include "metrics/number_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace paddle::metrics {
namespace {

void expect_sorts(const std::vector<double>& numbers) {
  NumberList list;
  for (const double number : numbers) list.push_back(number);
  list.sort();
  std::vector<double> wanted = numbers;
  std::sort(wanted.begin(), wanted.end());
  const std::span<const double> found = list;
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(found[i], wanted[i]) << i;
}

TEST(NumberList, Sorts) {
  std::mt19937_64 random(0);
  std::normal_distribution<double> normal;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{4096}, size_t{100003}}) {
    std::vector<double> doubles(size), floats(size), coarse(size), tiny(size);
    for (size_t i = 0; i < size; ++i) {
      doubles[i] = normal(random);
      floats[i] = static_cast<float>(normal(random));
      // Numbers that share digits, so that the passes over the others are even or odd.
      coarse[i] = static_cast<double>(random() % 1024);
      tiny[i] = static_cast<double>(1 + random() % 512) * 0x1p-149;
    }
    if (size > 3) {
      floats[0] = -0.0;
      floats[1] = 0.0;
      floats[2] = infinity;
      floats[3] = -infinity;
    }
    for (const auto& numbers : {doubles, floats, coarse, tiny}) expect_sorts(numbers);
  }
}

TEST(NumberList, IsCopiedAndAppended) {
  NumberList list;
  list.append({3, 1});
  NumberList copy = list;
  copy.append(std::vector<double>{2});
  copy.sort();
  EXPECT_EQ(list.size(), 2U);
  const std::span<const double> found = copy;
  EXPECT_EQ(std::vector<double>(found.begin(), found.end()), (std::vector<double>{1, 2, 3}));
  list = copy;
  EXPECT_EQ(list.size(), 3U);
  list = {};
  EXPECT_EQ(list.size(), 0U);
}

}  // namespace
}  // namespace paddle::metrics
