// The analysis of a profile, on a small one whose sums are known by hand.

#include "profile/analysis.h"

#include <gtest/gtest.h>

#include <map>

#include <nlohmann/json.hpp>

#include "profile/report.h"

namespace paddle::profile {
namespace {

constexpr int64_t kMs = 1'000'000;

/// Two steps of 10 ms after 2 ms of waiting. A convolution takes 6 ms of each, its gradient 3 ms,
/// an update 0.5 ms.
struct Example {
  runtime::Profile profile;
  Measurement measured;

  Example() {
    measured.subject = "small & \"quick\"";
    measured.training = true;
    measured.warm_up = 5;
    measured.threads = 1;
    measured.peaks = {100, 10};
    runtime::PlanInfo plan;
    plan.function = "train";
    plan.buffers = {{"conv2d", 400, 1, 2}, {"conv2d_weight_grad", 100, 2, 3}, {"sum", 50, 3, 3}};
    plan.arena = 512;
    using Kind = runtime::PlanInfo::Input::Kind;
    plan.held = {{"w", Kind::kParameter, 1000},         {"optimizer/w/m", Kind::kState, 1000},
                 {"optimizer/w/v", Kind::kState, 1000}, {"mean", Kind::kState, 30},
                 {"gradient/w", Kind::kState, 20},      {"image", Kind::kValue, 64}};
    plan.inputs = 3114;
    profile.plans.push_back(plan);
    const auto add = [&](const char* operation, const char* origin, double flops, double bytes,
                         int position) {
      return profile.add({.function = "train",
                          .operation = operation,
                          .implementation = "cpu",
                          .shapes = "float32[2, 3] -> float32[2, 3]",
                          .flops = flops,
                          .bytes = bytes,
                          .origin = origin,
                          .plan = 0,
                          .position = position});
    };
    const int conv = add("conv2d", "m.yaml:3:5 @block.conv2d", 3e8, 1e6, 1);
    const int gradient =
        add("conv2d_weight_grad", "m.yaml:3:5 @block.conv2d (gradient)", 3e7, 1e6, 2);
    const int update = add("adam_update", "", 1e3, 4e6, 3);
    for (int64_t step = 0; step < 2; ++step) {
      const int64_t at = step * 12 * kMs;
      profile.record(conv, at + 2 * kMs, at + 8 * kMs);
      profile.record(gradient, at + 8 * kMs, at + 11 * kMs);
      profile.record(update, at + 11 * kMs, at + 11 * kMs + kMs / 2);
      measured.steps.push_back({at, at + 2 * kMs, at + 12 * kMs, 8});
      measured.spans.push_back({"make batch", 1, at, at + 3 * kMs});
    }
    measured.spans.push_back({"make batch", 1, -50 * kMs, -40 * kMs});  // before the first step
  }
};

TEST(Analysis, TellsMemoryByKind) {
  Example e;
  const Analysis a = analyze(e.measured, e.profile);
  std::map<std::string, std::pair<uint64_t, uint64_t>> kinds;
  for (const MemoryKind& k : a.memory.kinds) kinds[k.kind] = {k.at_the_peak, k.most};
  const std::map<std::string, std::pair<uint64_t, uint64_t>> expected = {
      {"parameters", {1000, 1000}},
      {"optimizer states", {2000, 2000}},
      {"states of the model", {30, 30}},
      {"accumulated gradients", {20, 20}},
      {"data", {64, 64}},
      {"values kept for the backward pass", {400, 400}},
      {"values of the backward pass", {100, 100}},
      {"values of the update", {0, 50}}};  // the peak is before it
  EXPECT_EQ(kinds, expected);
  EXPECT_EQ(a.memory.kinds[0].kind, "optimizer states");
}

TEST(Analysis, TellsTimeAndMemoryByDevice) {
  Example e;
  e.profile.plans[0].device = "mirror:0";
  e.profile.instructions[0].device = e.profile.instructions[1].device = "mirror:0";
  e.profile.instructions[2].implementation = "host:cpu";
  const int copy = e.profile.add({.function = "train",
                                  .operation = "copy",
                                  .implementation = "copy to device",
                                  .shapes = "",
                                  .plan = 0,
                                  .position = 1,
                                  .device = "mirror:0"});
  e.profile.record(copy, 0, kMs / 4);
  const Analysis a = analyze(e.measured, e.profile);
  ASSERT_EQ(a.devices.size(), 2u);
  EXPECT_EQ(a.devices[0].device, "mirror:0");
  EXPECT_EQ(a.devices[0].calls, 5);
  EXPECT_DOUBLE_EQ(a.devices[0].seconds, 0.01825);
  EXPECT_DOUBLE_EQ(a.devices[0].copying, 0.00025);
  EXPECT_EQ(a.devices[0].memory, 512u + 3114u);
  EXPECT_EQ(a.devices[1].device, "cpu");
  EXPECT_EQ(a.devices[1].calls, 2);
  EXPECT_DOUBLE_EQ(a.devices[1].seconds, 0.001);
  EXPECT_EQ(a.devices[1].memory, 0u);
}

TEST(Analysis, SumsTimesOfOperationsAndOfTheLoader) {
  Example e;
  const Analysis a = analyze(e.measured, e.profile);
  EXPECT_DOUBLE_EQ(a.wall, 0.020);
  EXPECT_DOUBLE_EQ(a.waiting, 0.004);
  EXPECT_DOUBLE_EQ(a.operation_seconds(), 0.019);
  EXPECT_DOUBLE_EQ(a.median_step(), 0.010);
  EXPECT_EQ(a.samples, 16);
  EXPECT_EQ(a.batches, 2);
  EXPECT_DOUBLE_EQ(a.batch_seconds, 0.003);
  ASSERT_EQ(a.operations.size(), 3u);
  EXPECT_EQ(a.operations[0].operation, "conv2d");
  EXPECT_EQ(a.operations[0].calls, 2);
  EXPECT_EQ(a.operations[0].phase, "forward");
  EXPECT_EQ(a.operations[0].layer, "block.conv2d");
  EXPECT_EQ(a.operations[0].place, "m.yaml:3:5");
  EXPECT_EQ(a.operations[1].phase, "backward");
  EXPECT_EQ(a.operations[1].layer, "block.conv2d");
  EXPECT_EQ(a.operations[2].phase, "update");
}

TEST(Analysis, ComparesWithThePeaks) {
  Example e;
  const Analysis a = analyze(e.measured, e.profile);
  // 3e8 FLOP in 6 ms are 50 of 100 GFLOP/s; 4e6 bytes in 0.5 ms are 8 of 10 GB/s.
  Cost conv, update;
  conv.add(a.operations[0]);
  update.add(a.operations[2]);
  EXPECT_NEAR(share_of_peak(conv, e.measured.peaks), 0.5, 1e-12);
  EXPECT_NEAR(share_of_peak(update, e.measured.peaks), 0.8, 1e-12);
  EXPECT_DOUBLE_EQ(roofline_seconds(3e8, 1e6, e.measured.peaks), 3e-3);
}

TEST(Analysis, FollowsMemoryThroughTheStep) {
  Example e;
  const Memory memory = analyze(e.measured, e.profile).memory;
  ASSERT_EQ(memory.timeline.size(), 3u);
  EXPECT_EQ(memory.timeline[0].bytes, 400u);
  EXPECT_EQ(memory.timeline[1].bytes, 500u);
  EXPECT_EQ(memory.timeline[2].bytes, 150u);
  EXPECT_EQ(memory.peak, 1u);
  EXPECT_DOUBLE_EQ(memory.timeline[1].seconds, 0.006);  // after the convolution
  ASSERT_EQ(memory.at_the_peak.size(), 2u);
  EXPECT_EQ(memory.at_the_peak[0].label, "conv2d");
  EXPECT_EQ(memory.at_the_peak[0].layer, "block.conv2d");
  EXPECT_EQ(memory.at_the_peak[1].phase, "backward");
}

TEST(Analysis, RanksSuggestionsByPredictedGain) {
  Example e;
  e.measured.bfloat16_gflops = 400;
  const Analysis a = analyze(e.measured, e.profile);
  ASSERT_GE(a.suggestions.size(), 2u);
  for (size_t i = 1; i < a.suggestions.size(); ++i)
    EXPECT_GE(a.suggestions[i - 1].gain, a.suggestions[i].gain);
  const auto gain = [&](std::string_view start) {
    for (const Suggestion& s : a.suggestions)
      if (s.title.starts_with(start)) return s.gain;
    return 0.0;
  };
  // 18 of 24 ms are float32 products, which take a quarter of their time in bfloat16.
  EXPECT_NEAR(gain("train in mixed precision"), 18.0 / 24 * (1 - 100.0 / 400), 1e-9);
  EXPECT_NEAR(gain("set data.workers"), 4.0 / 24, 1e-9);
}

TEST(Analysis, CopiesBelongToTheOperationThatReadsThem) {
  Example e;
  const int copy = e.profile.add({.function = "train",
                                  .operation = "copy",
                                  .implementation = "cpu",
                                  .shapes = "float32[2] -> float32[2]",
                                  .plan = 0,
                                  .position = 2});
  e.profile.record(copy, 0, kMs);
  for (const OperationCost& c : analyze(e.measured, e.profile).operations)
    if (c.operation == "copy") {
      EXPECT_EQ(c.layer, "block.conv2d");
      EXPECT_EQ(c.phase, "backward");
      return;
    }
  FAIL() << "the copy is missing";
}

TEST(Report, JsonAndPageHoldTheSameNumbers) {
  Example e;
  const Analysis a = analyze(e.measured, e.profile);
  const auto o = nlohmann::json::parse(json(a));
  EXPECT_NEAR(o["operation_share"].get<double>(), 0.95, 1e-12);
  EXPECT_NEAR(o["data"]["waiting_share"].get<double>(), 4.0 / 24, 1e-12);
  EXPECT_NEAR(o["operations"][0]["ms"].get<double>(), 6, 1e-12);
  EXPECT_EQ(o["memory"]["peak_bytes"], 500);
  const std::string page = html(a);
  EXPECT_NE(page.find("small &amp; &quot;quick&quot;"), std::string::npos);
  EXPECT_NE(page.find("95.0% of the wall time"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
}

TEST(Report, WithoutStepsThePageSaysSo) {
  EXPECT_NE(html(analyze({}, {})).find("No step was measured"), std::string::npos);
}

}  // namespace
}  // namespace paddle::profile
