// Tables with a policy: which keys get rows, what is counted, which rows stay, and updates that a
// policy changes.

#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "program/memory_table.h"
#include "train/tables/tables.h"

namespace paddle::train {
namespace {

using program::MemoryTable;

using Keys = std::vector<uint64_t>;
constexpr uint64_t kLowest = uint64_t{1} << 63;  // int64's

std::shared_ptr<const optim::Optimizer> rule(const char* name) {
  return std::make_shared<optim::Optimizer>(
      optim::OptimizerOptions{.rule = optim::make_rule(name, "{}"), .lr = 0.1});
}

program::TableSpec spec(DType dtype = DType::kF32) {
  return {"emb", 3, dtype, {lang::Initializer::Kind::kNormal, 0, 0.5, {}}};
}

std::vector<double> values(const Array& array) {
  std::vector<double> out;
  for (int64_t i = 0; i < array.size(); ++i) out.push_back(array.number(i));
  return out;
}

std::vector<double> read(const RowTable& table, const Keys& keys,
                         MissingRow missing = MissingRow::kZero) {
  Array rows =
      Array::empty(table.spec().dtype, {static_cast<int64_t>(keys.size()), table.spec().width});
  table.read(keys, missing, static_cast<std::byte*>(rows.raw()));
  return values(rows);
}

program::TableSpec spec_of(const tables::RowPolicy& policy) {
  program::TableSpec out = spec();
  out.policy = policy;
  return out;
}

TEST(RowTable, KeysWaitForRowsThatTheNextStepReads) {
  tables::RowPolicy policy;
  policy.entry_count = 3;
  policy.show = policy.click = tables::SampleNumber{1, ""};
  MemoryTable table(spec_of(policy), rule("sgd"), 7), plain(spec(), rule("sgd"), 7);
  const std::vector<double> zeros = {0, 0, 0};
  const Array gradient = Array::from<float>({1, 1, 1}, {1, 3});
  const std::vector<tables::KeyUse> use = {{2, 2, 1}};
  for (int64_t step = 1; step <= 2; ++step) {
    EXPECT_EQ(read(table, {5}, MissingRow::kInitial), zeros);
    table.insert(Keys{5});
    table.update(Keys{5}, gradient, {.rate = 0.1, .step = step});
    table.observe(Keys{5}, use, step, 0);
    EXPECT_EQ(table.count(), step - 1);
    EXPECT_EQ(table.waiting_count(), 2 - step);
  }
  // The gradient of the step that gave it the row is dropped; the next one counts.
  EXPECT_EQ(read(table, {5}), read(plain, {5}, MissingRow::kInitial));
  plain.insert(Keys{5});
  for (RowTable* each : {static_cast<RowTable*>(&table), static_cast<RowTable*>(&plain)})
    each->update(Keys{5}, gradient, {.rate = 0.1, .step = 3});
  table.observe(Keys{5}, use, 3, 0);
  EXPECT_EQ(read(table, {5}), read(plain, {5}));
  const TableContent content = table.content();
  EXPECT_EQ(values(content.statistics.at(0).second), std::vector<double>{6});
  EXPECT_EQ(values(content.statistics.at(1).second), std::vector<double>{3});
}

TEST(RowTable, ChanceGivesRowsToItsShareOfKeys) {
  tables::RowPolicy policy;
  policy.entry_chance = 0.3;
  MemoryTable table(spec_of(policy), rule("sgd"), 7), again(spec_of(policy), rule("sgd"), 7);
  constexpr int64_t kKeys = 20000;
  Keys keys;
  for (int64_t i = 0; i < kKeys; ++i) keys.push_back(static_cast<uint64_t>(i) * 977);
  const std::vector<tables::KeyUse> uses(keys.size(), {1, 1, 0});
  table.observe(keys, uses, 1, 0);
  const double sigma = std::sqrt(kKeys * 0.3 * 0.7);
  EXPECT_NEAR(static_cast<double>(table.count()), 0.3 * kKeys, 4 * sigma);
  EXPECT_EQ(table.waiting_count(), 0);
  // One by one and in another order the same keys have rows.
  for (size_t i = keys.size(); i-- > 0;)
    again.observe(std::span(keys).subspan(i, 1), std::span(uses).subspan(i, 1), 1, 0);
  EXPECT_EQ(values(table.content().keys), values(again.content().keys));
  table.observe(keys, uses, 2, 0);
  EXPECT_NEAR(static_cast<double>(table.count()), 0.51 * kKeys, 4 * sigma);
}

TEST(RowTable, TheBestRowsStayByShard) {
  tables::RowPolicy policy;
  policy.show = policy.click = tables::SampleNumber{1, ""};
  policy.max_rows = 2 * tables::kShards;
  MemoryTable table(spec_of(policy), rule("sgd"), 7);
  Keys keys;
  std::vector<tables::KeyUse> uses;
  for (uint64_t key = 0; key < 10000; ++key) {
    keys.push_back(key);
    uses.push_back({1, static_cast<double>(key % 97), 0});
  }
  table.insert(keys);
  table.observe(keys, uses, 1, 0);
  const RowTable::Removed removed = table.end_day(0, {0, tables::kShards});
  EXPECT_EQ(removed.rows, 10000 - table.count());
  const TableContent content = table.content();
  std::map<int, std::vector<int64_t>> by_shard;
  for (const uint64_t key : keys)
    by_shard[tables::shard_of(key)].push_back(static_cast<int64_t>(key));
  std::vector<double> wanted;
  for (auto& [shard, some] : by_shard) {
    std::stable_sort(some.begin(), some.end(),
                     [](int64_t a, int64_t b) { return a % 97 > b % 97; });
    for (size_t i = 0; i < std::min<size_t>(2, some.size()); ++i)
      wanted.push_back(static_cast<double>(some[i]));
  }
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(values(content.keys), wanted);
}

TEST(RowTable, StatisticsAndWaitingKeysAreRestored) {
  tables::RowPolicy policy;
  policy.entry_count = 2;
  policy.show = policy.click = tables::SampleNumber{1, ""};
  policy.unseen_days = 2;
  MemoryTable table(spec_of(policy), rule("adam"), 7), again(spec_of(policy), rule("adam"), 1);
  const Keys keys = {1, 2, 3, kLowest};
  const std::vector<tables::KeyUse> uses = {{2, 2, 1}, {1, 1, 0}, {5, 5, 5}, {1, 1, 1}};
  table.observe(keys, uses, 1, 4);
  again.clear(7);
  for (int part = 0; part < 3; ++part) {
    again.add(table.content(), tables::shards_of_part(part, 3));
    again.add_waiting(table.waiting(), tables::shards_of_part(part, 3));
  }
  for (RowTable* each : {static_cast<RowTable*>(&table), static_cast<RowTable*>(&again)}) {
    EXPECT_EQ(each->count(), 2);
    EXPECT_EQ(each->waiting_count(), 2);
    each->observe(Keys{2}, std::vector<tables::KeyUse>{{1, 1, 1}}, 2, 5);
    EXPECT_EQ(each->end_day(6, {0, tables::kShards}).rows, 2);  // 1 and 3
    EXPECT_EQ(each->waiting_count(), 0);  // the lowest key, last used on day 4
    EXPECT_EQ(values(each->content().keys), std::vector<double>{2});
    EXPECT_EQ(values(each->content().statistics.at(0).second), std::vector<double>{2});
    EXPECT_EQ(values(each->content().statistics.at(2).second), std::vector<double>{5});
  }
}

TEST(RowTable, RemovedRowsAreAbsentBeforeTheyLeaveTheMemory) {
  tables::RowPolicy policy;
  policy.show = policy.click = tables::SampleNumber{1, ""};
  policy.unseen_days = 1;
  policy.decay = 0.5F;
  for (const int64_t count : {1, 2}) {
    policy.entry_count = count;
    const auto adam = rule("adam");
    MemoryTable lazy(spec_of(policy), adam, 7), at_once(spec_of(policy), adam, 7);
    Keys all;
    for (uint64_t key = 0; key < 4000; ++key) all.push_back(key);
    RowTable::Removed removed, wanted;
    int64_t step = 0;
    for (int64_t day = 0; day < 6; ++day) {
      // Some keys come every day, some now and then.
      Keys keys;
      for (const uint64_t key : all)
        if (key % 7 == 0 || (key + static_cast<uint64_t>(day)) % 3 == 0) keys.push_back(key);
      const std::vector<tables::KeyUse> uses(keys.size(), {1, 1, 1});
      const std::vector<float> gradients(keys.size() * 3, 0.5F);
      const Array gradient = Array::from<float>(gradients, {static_cast<int64_t>(keys.size()), 3});
      for (int64_t part = 0; part < 2; ++part) {
        ++step;
        for (RowTable* each : {static_cast<RowTable*>(&lazy), static_cast<RowTable*>(&at_once)}) {
          each->insert(keys);
          each->update(keys, gradient, {.rate = 0.1, .step = step});
          each->observe(keys, uses, step, day);
        }
        EXPECT_EQ(read(lazy, all, MissingRow::kInitial), read(at_once, all, MissingRow::kInitial));
        const RowTable::Removed some = lazy.sweep(100);
        removed.rows += some.rows;
        removed.waiting += some.waiting;
      }
      const RowTable::Removed rest = lazy.sweep(tables::kShards);
      removed.rows += rest.rows;
      removed.waiting += rest.waiting;
      lazy.begin_removal(day, {0, tables::kShards});
      const RowTable::Removed now = at_once.end_day(day, {0, tables::kShards});
      wanted.rows += now.rows;
      wanted.waiting += now.waiting;
      EXPECT_EQ(read(lazy, all), read(at_once, all)) << day;
    }
    const RowTable::Removed rest = lazy.sweep(tables::kShards);
    EXPECT_EQ(removed.rows + rest.rows, wanted.rows);
    EXPECT_EQ(removed.waiting + rest.waiting, wanted.waiting);
    EXPECT_GT(wanted.rows, 0);
    EXPECT_EQ(values(lazy.content().keys), values(at_once.content().keys));
    EXPECT_EQ(values(lazy.content().weight), values(at_once.content().weight));
    for (size_t i = 0; i < 3; ++i)
      EXPECT_EQ(values(lazy.content().statistics.at(i).second),
                values(at_once.content().statistics.at(i).second));
    EXPECT_EQ(values(lazy.waiting().keys), values(at_once.waiting().keys));
    EXPECT_EQ(values(lazy.waiting().weight), values(at_once.waiting().weight));
  }
}

TEST(RowTable, OneSumOfSquaresForARowIsThatOfTheFormula) {
  tables::RowPolicy policy;
  policy.row_moment = 3;
  policy.bounds = {-0.3, 0.2};
  program::TableSpec wanted = spec(DType::kF64);
  wanted.policy = policy;
  MemoryTable table(wanted, rule("adagrad"), 7), again(wanted, rule("adagrad"), 7);
  table.insert(Keys{4});
  std::vector<double> row = read(table, {4});
  double sum = 0;
  for (int64_t step = 1; step <= 5; ++step) {
    const std::vector<double> gradient = {0.5, -2.0 * static_cast<double>(step), 0.01};
    table.update(Keys{4}, Array::from<double>(gradient, {1, 3}), {.rate = 0.1, .step = step});
    const double factor = 0.1 * std::sqrt(3 / (3 + static_cast<double>(static_cast<float>(sum))));
    double squares = 0;
    for (size_t i = 0; i < 3; ++i) {
      row[i] = std::clamp(row[i] - factor * gradient[i], -0.3, 0.2);
      squares += gradient[i] * gradient[i];
    }
    sum += squares / 3;
  }
  const std::vector<double> got = read(table, {4});
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], row[i], 1e-6);
  EXPECT_EQ(got[1], 0.2) << "the bound";
  const TableContent content = table.content();
  EXPECT_TRUE(content.states.empty());
  ASSERT_EQ(content.statistics.size(), 1u);
  EXPECT_EQ(content.statistics[0].first, "moment");
  EXPECT_NEAR(content.statistics[0].second.number(0), sum, 1e-4);
  again.add(content, {0, tables::kShards});
  for (RowTable* each : {static_cast<RowTable*>(&table), static_cast<RowTable*>(&again)})
    each->update(Keys{4}, Array::from<double>({-1, 1, 1}, {1, 3}), {.rate = 0.1, .step = 6});
  EXPECT_EQ(read(table, {4}), read(again, {4}));
  EXPECT_THROW(MemoryTable(wanted, rule("sgd"), 7), Error);
}

TEST(RowTable, WideColumnsAreZerosUntilTheScoreIsReached) {
  tables::RowPolicy policy;
  policy.show = policy.click = tables::SampleNumber{1, ""};
  policy.wide_columns = 2;
  policy.wide_score = 2;
  const auto adam = rule("adam");
  MemoryTable table(spec_of(policy), adam, 7), plain(spec(), adam, 7),
      again(spec_of(policy), adam, 1);
  const std::vector<double> begin = read(plain, {5}, MissingRow::kInitial);
  EXPECT_EQ(read(table, {5}, MissingRow::kInitial), (std::vector<double>{begin[0], 0, 0}));
  const Array gradient = Array::from<float>({1, 1, 1}, {1, 3});
  table.insert(Keys{5});
  const auto step = [&](RowTable& of, int64_t number, double clicks) {
    of.update(Keys{5}, gradient, {.rate = 0.1, .step = number});
    of.observe(Keys{5}, std::vector<tables::KeyUse>{{1, 1, clicks}}, number, 0);
  };
  step(table, 1, 1);
  std::vector<double> row = read(table, {5});
  EXPECT_NE(row[0], begin[0]);
  EXPECT_EQ(row[1], 0);
  EXPECT_EQ(row[2], 0);
  step(table, 2, 1);  // a score of 2: from the next step on the columns are there
  row = read(table, {5});
  EXPECT_EQ(row[1], begin[1]);
  EXPECT_EQ(row[2], begin[2]);
  again.clear(7);
  again.add(table.content(), {0, tables::kShards});
  step(table, 3, 0);
  step(again, 3, 0);
  EXPECT_NE(read(table, {5})[1], begin[1]);
  EXPECT_EQ(read(table, {5}), read(again, {5}));
  EXPECT_THROW(MemoryTable(spec_of(policy), rule("rmsprop"), 7), Error);
}

}  // namespace
}  // namespace paddle::train
