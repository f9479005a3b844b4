// Attention to cached keys and values against the formula in double.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>

#include "base/error.h"
#include "ops/generated/generation.h"
#include "runtime/execute.h"

namespace paddle::llm {
namespace {

constexpr int64_t kHeads = 6, kGroups = 2, kWidth = 20, kSlots = 96;

struct Case {
  const char* name;
  DType cache;
  int64_t window = 0;
  double softcap = 0;
  float slope = 0;  // of the first head; those of the others are multiples
  double tolerance = 1e-5;
  std::optional<float> sink = {};  // of the first head; the next ones' are 1 higher each
};

class CachedAttention : public testing::TestWithParam<Case> {
 protected:
  CachedAttention() : scope_(executor_) {
    const int64_t stored = kWidth + (GetParam().cache == DType::kI8 ? 4 : 0);
    keys_ = Array::zeros(GetParam().cache, {kSlots / 16, kGroups, stored, 16});
    values_ = Array::zeros(GetParam().cache, {kSlots, kGroups, stored});
  }
  Array drawn(int64_t tokens, int64_t heads) {
    Array out = Array::empty(DType::kF32, {tokens, heads, kWidth});
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < out.size(); ++i) out.data<float>()[i] = normal(random_);
    return out;
  }
  void store(const Array& key, const Array& value, const std::vector<int64_t>& slots) {
    const Tensor where(Array::from(slots, {static_cast<int64_t>(slots.size())}));
    keys_ = ops::cache_append(Tensor(keys_), Tensor(key), where, blocks_, true).array();
    values_ = ops::cache_append(Tensor(values_), Tensor(value), where, blocks_).array();
  }
  Array attend(const Array& query, const std::vector<int64_t>& starts,
               const std::vector<int64_t>& lengths) {
    const int64_t tokens = query.shape[0];
    Tensor slopes;
    if (GetParam().slope > 0) {
      std::vector<float> each;
      for (int64_t h = 0; h < kHeads; ++h)
        each.push_back(GetParam().slope * static_cast<float>(h + 1));
      slopes = Tensor(Array::from(each, {kHeads}));
    }
    Tensor sinks;
    if (GetParam().sink) {
      std::vector<float> each;
      for (int64_t h = 0; h < kHeads; ++h) each.push_back(*GetParam().sink + static_cast<float>(h));
      sinks = Tensor(Array::from(each, {kHeads}));
    }
    return ops::cached_attention(Tensor(query), Tensor(keys_), Tensor(values_),
                                 Tensor(Array::from(starts, {tokens})),
                                 Tensor(Array::from(lengths, {tokens})), slopes, blocks_, sinks,
                                 0.3, GetParam().window, GetParam().softcap)
        .array()
        .contiguous();
  }
  runtime::EagerExecutor executor_;
  InterpreterScope scope_;
  std::mt19937 random_{2};
  Array keys_, values_;
  Tensor blocks_;  ///< of a paged cache
};

/// The row of one token and head, of keys and values [tokens, groups, width].
std::vector<double> formula(const Case& c, const float* query, const Array& keys,
                            const Array& values, int64_t head, int64_t length) {
  const int64_t group = head / (kHeads / kGroups);
  const int64_t first = c.window > 0 ? std::max<int64_t>(0, length - c.window) : 0;
  std::vector<double> weights, out(kWidth, 0.0);
  double sum = c.sink ? std::exp(static_cast<double>(*c.sink) + static_cast<double>(head)) : 0;
  for (int64_t k = first; k < length; ++k) {
    double score = 0;
    for (int64_t d = 0; d < kWidth; ++d)
      score +=
          static_cast<double>(query[d]) * keys.data<float>()[(k * kGroups + group) * kWidth + d];
    score *= 0.3;
    if (c.softcap > 0) score = c.softcap * std::tanh(score / c.softcap);
    score -= static_cast<double>(c.slope) * static_cast<double>((head + 1) * (length - 1 - k));
    weights.push_back(std::exp(score));
    sum += weights.back();
  }
  for (int64_t k = first; k < length; ++k)
    for (int64_t d = 0; d < kWidth; ++d)
      out[static_cast<size_t>(d)] += weights[static_cast<size_t>(k - first)] / sum *
                                     values.data<float>()[(k * kGroups + group) * kWidth + d];
  return out;
}

TEST_P(CachedAttention, IsTheFormulaAndATokenDoesNotDependOnItsCompany) {
  // Two sequences, one of them not at the beginning of the cache, in two steps with padding.
  const int64_t first_length = 21, second_length = 37, second_start = 48;
  const Array key1 = drawn(first_length, kGroups), value1 = drawn(first_length, kGroups);
  const Array key2 = drawn(second_length, kGroups), value2 = drawn(second_length, kGroups);
  std::vector<int64_t> slots1, slots2;
  for (int64_t i = 0; i < first_length; ++i) slots1.push_back(i);
  for (int64_t i = 0; i < second_length; ++i) slots2.push_back(second_start + i);
  store(key1, value1, slots1);
  store(key2, value2, slots2);
  store(drawn(2, kGroups), drawn(2, kGroups), {-1, -1});
  const int64_t tokens = first_length + second_length + 1;
  const Array query = drawn(tokens, kHeads);
  std::vector<int64_t> starts, lengths;
  for (int64_t i = 0; i < first_length; ++i) {
    starts.push_back(0);
    lengths.push_back(i + 1);
  }
  for (int64_t i = 0; i < second_length; ++i) {
    starts.push_back(second_start);
    lengths.push_back(i + 1);
  }
  starts.push_back(0);
  lengths.push_back(0);
  const Array out = attend(query, starts, lengths);
  for (int64_t t = 0; t < tokens; ++t) {
    const bool first = t < first_length;
    for (int64_t h = 0; h < kHeads; ++h) {
      const float* const row = out.data<float>() + (t * kHeads + h) * kWidth;
      if (lengths[static_cast<size_t>(t)] == 0) {
        EXPECT_TRUE(std::all_of(row, row + kWidth, [](float x) { return x == 0; }));
        continue;
      }
      const auto wanted =
          formula(GetParam(), query.data<float>() + (t * kHeads + h) * kWidth, first ? key1 : key2,
                  first ? value1 : value2, h, lengths[static_cast<size_t>(t)]);
      for (int64_t d = 0; d < kWidth; ++d)
        ASSERT_NEAR(row[d], wanted[static_cast<size_t>(d)], GetParam().tolerance)
            << t << " " << h << " " << d;
    }
    Array one = Array::empty(DType::kF32, {1, kHeads, kWidth});
    std::copy_n(query.data<float>() + t * kHeads * kWidth, kHeads * kWidth, one.data<float>());
    const auto at = static_cast<size_t>(t);
    const Array alone = attend(one, {starts[at]}, {lengths[at]});
    ASSERT_EQ(std::memcmp(alone.data<float>(), out.data<float>() + t * kHeads * kWidth,
                          kHeads * kWidth * sizeof(float)),
              0)
        << t;
  }
}

TEST_P(CachedAttention, OfAPagedCacheIsTheSame) {
  const int64_t tokens = 45;
  const Array key = drawn(tokens, kGroups), value = drawn(tokens, kGroups);
  const Array query = drawn(tokens, kHeads);
  std::vector<int64_t> slots, starts(tokens, 16), lengths;
  for (int64_t i = 0; i < tokens; ++i) {
    slots.push_back(16 + i);
    lengths.push_back(i + 1);
  }
  store(key, value, slots);
  const Array plain = attend(query, starts, lengths);
  blocks_ = Tensor(Array::from(std::vector<int64_t>{0, 5, 2, 4, 3, 3, 3, 3}, {8}));
  // The blocks hold other keys and values before.
  store(drawn(tokens, kGroups), drawn(tokens, kGroups), slots);
  store(key, value, slots);
  const Array paged = attend(query, starts, lengths);
  EXPECT_EQ(std::memcmp(paged.data<float>(), plain.data<float>(),
                        static_cast<size_t>(plain.size()) * sizeof(float)),
            0);
  // Two sequences share their first block.
  blocks_ = Tensor(Array::from(std::vector<int64_t>{5, 1, 1, 1, 5, 2, 4, 1}, {8}));
  Array last = Array::empty(DType::kF32, {1, kHeads, kWidth});
  std::copy_n(query.data<float>() + (tokens - 1) * kHeads * kWidth, kHeads * kWidth,
              last.data<float>());
  const Array shared = attend(last, {64}, {tokens});
  EXPECT_EQ(std::memcmp(shared.data<float>(), plain.data<float>() + (tokens - 1) * kHeads * kWidth,
                        kHeads * kWidth * sizeof(float)),
            0);
}

TEST_P(CachedAttention, BlocksOutsideOfTheCacheAreRejected) {
  const Array one = drawn(1, kGroups), query = drawn(1, kHeads);
  for (const int64_t block : {int64_t{-1}, kSlots / 16, int64_t{1} << 60}) {
    blocks_ = Tensor(Array::from(std::vector<int64_t>{0, block}, {2}));
    EXPECT_NO_THROW(store(one, one, {15}));
    EXPECT_THROW(store(one, one, {16}), Error);
    EXPECT_NO_THROW(attend(query, {0}, {16}));
    EXPECT_THROW(attend(query, {0}, {17}), Error);
  }
  EXPECT_THROW(store(one, one, {32}), Error);
  EXPECT_THROW(attend(query, {16}, {17}), Error);
}

TEST_P(CachedAttention, PlacesOutsideOfTheCacheAreRejected) {
  const Array one = drawn(1, kGroups), query = drawn(1, kHeads);
  EXPECT_THROW(store(one, one, {kSlots}), Error);
  EXPECT_THROW(attend(query, {0}, {kSlots + 1}), Error);
  EXPECT_THROW(attend(query, {80}, {17}), Error);
  EXPECT_THROW(attend(query, {8}, {1}), Error);
  EXPECT_THROW(attend(query, {0}, {-1}), Error);
}

INSTANTIATE_TEST_SUITE_P(Caches, CachedAttention,
                         testing::Values(Case{"f32", DType::kF32}, Case{"windowed", DType::kF32, 9},
                                         Case{"capped", DType::kF32, 0, 1.5},
                                         Case{"biased", DType::kF32, 9, 0, 0.1F},
                                         Case{"sinks", DType::kF32, 9, 0, 0, 1e-5, -1.5F},
                                         Case{"bf16", DType::kBF16, 0, 0, 0, 3e-2},
                                         Case{"int8", DType::kI8, 0, 0, 0, 3e-2}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace paddle::llm
