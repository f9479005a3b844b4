// Timelines of several ranks: exchanges that belong together, shares of a step that are known by
// hand, and the way to another process and back.

#include "profile/ranks.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/source_location.h"
#include "base/text.h"

namespace paddle::profile {
namespace {

constexpr int64_t kMs = 1'000'000;

/// A step of 10 ms: 1 ms of waiting for data, then an operation of 8 ms whose last part is an
/// exchange from `begin` to 9 ms.
RankTimeline rank(int number, int64_t begin) {
  RankTimeline t;
  t.rank = number;
  t.instructions.push_back({"train", "all_reduce", "cpu", ""});
  t.events.push_back({0, 1 * kMs, 9 * kMs});
  t.spans.push_back({"step", 0, 1 * kMs, 10 * kMs});
  t.exchanges.push_back(
      {.operation = "all_reduce", .begin = begin, .end = 9 * kMs, .bytes = 100, .group = 7});
  t.steps.push_back({0, 1 * kMs, 10 * kMs, 4});
  return t;
}

TEST(Ranks, WaitForTheLastOneOfAnExchange) {
  std::vector<RankTimeline> timelines = {rank(0, 4 * kMs), rank(1, 6 * kMs)};
  match(timelines);
  const std::vector<RankShare> shares = share_of_ranks(timelines);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_DOUBLE_EQ(shares[0].wall, 0.010);
  EXPECT_DOUBLE_EQ(shares[0].data, 0.001);
  EXPECT_DOUBLE_EQ(shares[0].computing, 0.003);
  EXPECT_DOUBLE_EQ(shares[0].waiting, 0.002);  // until rank 1 comes at 6 ms
  EXPECT_DOUBLE_EQ(shares[0].exchanging, 0.003);
  EXPECT_NEAR(shares[0].other(), 0.001, 1e-12);
  EXPECT_DOUBLE_EQ(shares[1].computing, 0.005);
  EXPECT_DOUBLE_EQ(shares[1].waiting, 0);
  EXPECT_DOUBLE_EQ(shares[1].exchanging, 0.003);
}

TEST(Ranks, MatchTheNthOfAGroupAndMessagesWithTheirSender) {
  std::vector<RankTimeline> timelines = {rank(0, 4 * kMs), rank(1, 6 * kMs)};
  // Second exchanges of the group, and a message of rank 0 that rank 1 awaits.
  for (const auto& [to, begin] : {std::pair(0, 20), std::pair(1, 15)})
    timelines[static_cast<size_t>(to)].exchanges.push_back(
        {.operation = "all_reduce", .begin = begin * kMs, .end = 22 * kMs, .group = 7});
  timelines[0].exchanges.push_back(
      {.operation = "message", .begin = 30 * kMs, .end = 31 * kMs, .group = 9, .sends_only = true});
  timelines[1].exchanges.push_back(
      {.operation = "message", .begin = 25 * kMs, .end = 32 * kMs, .group = 9});
  timelines[1].exchanges.push_back({.operation = "barrier", .begin = 40 * kMs, .end = 41 * kMs});
  match(timelines);
  EXPECT_EQ(timelines[0].exchanges[1].waits, 0);
  EXPECT_EQ(timelines[1].exchanges[1].waits, 5 * kMs);
  EXPECT_EQ(timelines[0].exchanges[2].waits, 0);
  EXPECT_EQ(timelines[1].exchanges[2].waits, 5 * kMs);
  EXPECT_EQ(timelines[1].exchanges[3].waits, 0);  // of no group
}

TEST(Ranks, ExchangesInTheBackgroundAreNoPartOfTheStep) {
  std::vector<RankTimeline> timelines = {rank(0, 4 * kMs)};
  timelines[0].exchanges[0].background = true;
  match(timelines);
  const RankShare share = share_of_ranks(timelines)[0];
  EXPECT_DOUBLE_EQ(share.hidden, 0.005);
  EXPECT_DOUBLE_EQ(share.computing, 0.008);
  EXPECT_DOUBLE_EQ(share.exchanging, 0);
}

TEST(Ranks, TimelinesTravelBetweenProcesses) {
  const RankTimeline sent = rank(3, 4 * kMs);
  RankTimeline t = timeline_from_bytes(to_bytes(sent));
  EXPECT_EQ(to_bytes(t), to_bytes(sent));
  shift(t, 5);
  EXPECT_EQ(t.events[0].begin, sent.events[0].begin + 5);
  EXPECT_EQ(t.exchanges[0].end, sent.exchanges[0].end + 5);
  EXPECT_EQ(t.spans[0].end, sent.spans[0].end + 5);
  EXPECT_EQ(t.steps[0].loaded, sent.steps[0].loaded + 5);
  const std::string bytes = to_bytes(sent);
  for (size_t cut = 0; cut < bytes.size(); cut += 7)
    EXPECT_THROW(timeline_from_bytes(bytes.substr(0, cut)), Error) << cut;
  RankTimeline wrong = sent;
  wrong.events[0].instruction = 5;
  EXPECT_THROW(timeline_from_bytes(to_bytes(wrong)), Error);
}

TEST(Ranks, TheTraceHasAProcessForEachRank) {
  std::vector<RankTimeline> timelines = {rank(0, 4 * kMs), rank(1, 6 * kMs)};
  match(timelines);
  const std::string path =
      (std::filesystem::temp_directory_path() / "paddle-ranks-test.json").string();
  write_trace(timelines, path);
  const auto trace = nlohmann::json::parse(read_file(path));
  std::filesystem::remove(path);
  int waits = 0;
  std::set<int> processes;
  for (const auto& e : trace.at("traceEvents")) {
    processes.insert(e.at("pid").get<int>());
    if (e.at("name") != "wait for other ranks") continue;
    ++waits;
    EXPECT_EQ(e.at("pid"), 1);
    EXPECT_DOUBLE_EQ(e.at("ts").get<double>(), 3000);  // the trace begins at 1 ms
    EXPECT_DOUBLE_EQ(e.at("dur").get<double>(), 2000);
  }
  EXPECT_EQ(waits, 1);
  EXPECT_EQ(processes, (std::set<int>{1, 2}));
}

TEST(Ranks, TheTraceNestsLayersAndEndsThemWithTheStep) {
  RankTimeline t;
  const auto operation = [&](const std::string& layer, bool gradient, int64_t begin, int64_t end) {
    t.instructions.push_back(
        {.function = "train",
         .operation = "matmul",
         .implementation = "cpu",
         .shapes = "",
         .origin = layer.empty() ? "" : text(Origin{"m.yaml:1:1", layer, gradient})});
    t.events.push_back({static_cast<int>(t.instructions.size()) - 1, begin * kMs, end * kMs});
  };
  operation("generator.linear", false, 0, 1);
  operation("", false, 1, 2);  // a copy does not interrupt what runs around it
  operation("generator.linear_2", false, 2, 3);
  operation("critic", false, 3, 4);
  operation("critic", true, 4, 5);
  operation("critic", true, 6, 7);  // of the next step
  t.spans.push_back({"step", 0, 0, 5 * kMs});
  t.spans.push_back({"step", 0, 6 * kMs, 7 * kMs});
  const std::string path =
      (std::filesystem::temp_directory_path() / "paddle-layers-test.json").string();
  write_trace({t}, path);
  const auto trace = nlohmann::json::parse(read_file(path));
  std::filesystem::remove(path);
  std::multiset<std::string> layers;
  for (const auto& e : trace.at("traceEvents"))
    if (e.value("cat", "") == "layer")
      layers.insert(str(e.at("name").get<std::string>(), " ", e.at("ts").get<double>() / 1000, " ",
                        e.at("dur").get<double>() / 1000));
  EXPECT_EQ(layers, (std::multiset<std::string>{"forward 0 4", "generator 0 3", "linear 0 1",
                                                "linear_2 2 1", "critic 3 1", "backward 4 1",
                                                "critic 4 1", "backward 6 1", "critic 6 1"}));
}

}  // namespace
}  // namespace paddle::profile
