// The planner: shapes and memory against hand arithmetic, times against published runs, and what
// its plans must satisfy.

#include "tune/parallel/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "tune/parallel/products.h"
#include "tune/parallel/published.h"
#include "tune/parallel/step_memory.h"

namespace paddle::tune {
namespace {

Transformer bloom() {
  Transformer m;
  m.name = "bloom";
  m.layers = 70;
  m.hidden = 14336;
  m.heads = m.kv_heads = 112;
  m.head_size = 128;
  m.ffn = 4 * m.hidden;
  m.vocabulary = 250880;
  m.sequence = 2048;
  m.batch = 2048;
  return m;
}

Cluster a100(int64_t hosts) {
  Cluster c = *known_device("A100-80GB");
  c.hosts = hosts;
  c.devices = 8;
  return c;
}

TEST(Transformer, ParametersAreThoseOfPublishedModels) {
  // 12 h² a layer and h a token: 70 * 12 * 14336² + 14336 * 250880 = 176.24e9; published 176B.
  EXPECT_NEAR(bloom().parameters(), 176.24e9, 0.01e9);
  Transformer llama;
  llama.layers = 32;
  llama.hidden = 4096;
  llama.heads = 32;
  llama.kv_heads = 8;
  llama.head_size = 128;
  llama.ffn = 14336;
  llama.gated = true;
  llama.vocabulary = 128256;
  // 8.03e9 with an output matrix of its own, which adds 0.525e9.
  EXPECT_NEAR(llama.parameters() + 4096.0 * 128256, 8.03e9, 0.01e9);
  Transformer qwen = llama;
  qwen.layers = 48;
  qwen.hidden = 2048;
  qwen.kv_heads = 4;
  qwen.ffn = 768;
  qwen.vocabulary = 151936;
  qwen.experts = 128;
  qwen.experts_per_token = 8;
  EXPECT_NEAR(qwen.parameters() + 2048.0 * 151936, 30.5e9, 0.1e9);  // published 30.5e9
}

TEST(Quantities, HaveUnitsAndPrefixes) {
  EXPECT_DOUBLE_EQ(parse_quantity("989 TFLOP/s", "FLOP/s"), 989e12);
  EXPECT_DOUBLE_EQ(parse_quantity("80 GiB", "B"), 80 * 1073741824.0);
  EXPECT_DOUBLE_EQ(parse_quantity("80GB", "B"), 80e9);
  EXPECT_DOUBLE_EQ(parse_quantity("3 us", "s"), 3e-6);
  for (const char* wrong : {"", "fast", "3 parsecs", "80 GiB/s", "nan s"})
    EXPECT_THROW(parse_quantity(wrong, "B"), Error) << wrong;
}

TEST(CostModel, StatesOfMixedPrecisionTake18BytesAParameter) {
  const Strategy whole{.data = 8, .pipeline = 12, .tensor = 4, .micro_batch = 2};
  // The first stage has six of the 70 layers, and the embedding.
  const double embedding = 14336.0 * 250880;
  const double parameters = ((bloom().parameters() - embedding) / 70 * 6 + embedding) / 4;
  EXPECT_NEAR(predict(bloom(), a100(48), whole).state_memory, 18 * parameters, 1);
  Strategy sharded = whole;
  sharded.sharding = 1;  // 12 bytes of states over 8 ranks
  EXPECT_NEAR(predict(bloom(), a100(48), sharded).state_memory, (6 + 12 / 8.0) * parameters, 1);
}

TEST(CostModel, TheBubbleIsTheTextbooks) {
  // (p - 1) / (v m) of the time without it; the batch of a data rank is 256, in 128 micro-batches.
  Transformer m = bloom();
  m.layers = 72;  // six for each stage
  m.vocabulary = 1;
  const Cluster c = a100(48);
  Strategy s{.data = 8, .pipeline = 12, .tensor = 4, .micro_batch = 2};
  const Prediction p = predict(m, c, s);
  EXPECT_EQ(p.micro_batches, 128);
  const double one = (p.compute + p.tensor) / 128;
  EXPECT_NEAR(p.pipeline, 11 * one, 0.05 * 11 * one);
  EXPECT_GT(predict(m, c, {.data = 8, .pipeline = 12, .tensor = 4, .micro_batch = 8}).pipeline,
            p.pipeline);
  // Stages have whole layers: 73 take as long as 84, but for filling and draining.
  m.layers = 73;
  const Prediction uneven = predict(m, c, s);
  EXPECT_GT(uneven.seconds, 1.1 * p.seconds);
  EXPECT_LT(uneven.compute, 1.02 * p.compute);
}

TEST(CostModel, FullRecomputationCostsAForwardPassAndSavesActivations) {
  const Cluster c = a100(48);
  Strategy s{.data = 8, .pipeline = 12, .tensor = 4, .micro_batch = 2};
  const Prediction none = predict(bloom(), c, s);
  s.recompute = Recompute::kFull;
  const Prediction full = predict(bloom(), c, s);
  EXPECT_NEAR(full.compute / none.compute, 4.0 / 3, 0.05);
  EXPECT_LT(full.activation_memory, 0.2 * none.activation_memory);
}

TEST(CostModel, SchedulesTradeWaitsForMemory) {
  const Cluster c = a100(48);
  Strategy s{.data = 8, .pipeline = 12, .tensor = 4, .micro_batch = 2};
  const Prediction plain = predict(bloom(), c, s);
  s.schedule = partition::Schedule::kZeroBubble;
  const Prediction filled = predict(bloom(), c, s);
  EXPECT_LT(filled.pipeline, 0.6 * plain.pipeline);
  EXPECT_NEAR(filled.compute, plain.compute, 1e-9 * plain.compute);
  EXPECT_GT(filled.activation_memory, 1.5 * plain.activation_memory);  // 23 micro-batches, not 12
  s.schedule = partition::Schedule::kForwardThenBackward;
  const Prediction all = predict(bloom(), c, s);
  EXPECT_DOUBLE_EQ(all.seconds, plain.seconds);
  EXPECT_GT(all.activation_memory, filled.activation_memory);
}

TEST(CostModel, ProductsAreThoseOfADevice) {
  Transformer m;
  m.hidden = 4096;
  m.heads = 32;
  m.kv_heads = 8;
  m.head_size = 128;
  m.ffn = 14336;
  m.gated = true;
  const auto products = products_of_layer(m, {.tensor = 4}, 2048);
  const std::vector<std::array<double, 3>> expected = {
      {2048, 4096, 1536}, {2048, 1024, 4096}, {2048, 4096, 7168}, {2048, 3584, 4096}};
  ASSERT_EQ(products.size(), expected.size());
  double flops = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::array<double, 3> shape = {products[i].tokens, products[i].inner, products[i].outer};
    EXPECT_EQ(shape, expected[i]) << i;
    flops += products[i].flops();
  }
  EXPECT_DOUBLE_EQ(flops, 2 * 2048 * (m.attention_parameters() + m.feed_forward_parameters()) / 4);
  // Experts see their share of the tokens of all ranks that share them.
  m.experts = 64;
  m.experts_per_token = 4;
  const Product expert = products_of_layer(m, {.data = 16, .expert = 8}, 2048)[2];
  EXPECT_EQ(expert.tokens, 2048.0 * 4 * 8 / 64);
  EXPECT_EQ(expert.count, 8);
  EXPECT_TRUE(expert.grouped);
}

TEST(CostModel, SmallProductsReachLessOfThePeak) {
  const Product large{65536, 16384, 16384};
  EXPECT_GT(shape_efficiency(large), 0.95);
  EXPECT_LT(shape_efficiency(large), 1);
  for (double Product::*size : {&Product::tokens, &Product::inner, &Product::outer}) {
    Product less = large;
    less.*size /= 32;
    EXPECT_LT(shape_efficiency(less), shape_efficiency(large) - 0.05);
  }
  // So the same work on twice the ranks of tensor parallelism takes more than half of the time.
  const Cluster c = a100(1);
  const double one = predict(bloom(), c, {.data = 4, .tensor = 2}).compute,
               two = predict(bloom(), c, {.data = 4, .tensor = 4}).compute;
  EXPECT_GT(two, 0.5 * one);
  EXPECT_LT(two, 0.6 * one);
}

TEST(CostModel, MicroBatchesInFlightAreThoseOfTheJobLists) {
  using Counts = std::vector<double>;
  using partition::Schedule;
  const auto count = [](Schedule schedule, int64_t chunks, double micro_batches) {
    return micro_batches_in_flight({.pipeline = 4, .chunks = chunks, .schedule = schedule},
                                   micro_batches);
  };
  EXPECT_EQ(count(Schedule::kOneForwardOneBackward, 1, 100), (Counts{4, 3, 2, 1}));
  EXPECT_EQ(count(Schedule::kOneForwardOneBackward, 1, 2), (Counts{2, 2, 2, 1}));
  EXPECT_EQ(count(Schedule::kForwardThenBackward, 1, 100), (Counts{100, 100, 100, 100}));
  const Counts interleaved = count(Schedule::kInterleaved, 2, 64);
  EXPECT_DOUBLE_EQ(interleaved[0], 11 / 2.0);  // 2 (4 - 1) + (2 - 1) 4 ahead, and one that runs
  EXPECT_DOUBLE_EQ(interleaved[3], 5 / 2.0);
  for (const double each : count(Schedule::kZeroBubble, 1, 100)) EXPECT_LE(each, 7);
  EXPECT_EQ(micro_batches_in_flight({}, 100), Counts{1});
}

TEST(CostModel, TheFullestStageSetsTheMemory) {
  Transformer m = bloom();
  Strategy s{.data = 8, .pipeline = 12, .tensor = 4, .micro_batch = 2};
  EXPECT_EQ(memory_of_step(m, s, 128).rank, 0);  // twelve micro-batches, and the embedding
  s.recompute = Recompute::kFull;
  m.vocabulary *= 8;  // whose logits take more than the activations of twelve micro-batches
  const StepMemory last = memory_of_step(m, s, 128);
  EXPECT_EQ(last.rank, 11);
  EXPECT_GT(last.activations, 4096.0 * static_cast<double>(m.vocabulary) * 10 / 4);
}

TEST(Planner, FixesASchedule) {
  for (const std::string name : {"f_then_b", "zero_bubble", "interleaved"}) {
    const PlanningResult result = plan_parallel(bloom(), a100(32), {"schedule=" + name}, 3);
    for (const Plan& plan : result.plans)
      EXPECT_EQ(partition::name_of(plan.strategy.schedule), name);
    EXPECT_NE(plans_json(bloom(), a100(32), result).find("\"schedule\":\"" + name + "\""),
              std::string::npos);
  }
  try {
    plan_parallel(bloom(), a100(48), {"schedule=2f2b"}, 1);
    FAIL() << "an unknown schedule";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("schedule is one of 1f1b, f_then_b"), std::string::npos);
  }
}

TEST(Planner, PlansOfATeamThatSearchedAreAmongTheBest) {
  // BLOOM trained with tensor 4, pipeline 12, data 8, micro-batch 2 and full recomputation.
  const Transformer m = bloom();
  const std::vector<std::string> full = {"recompute=full", "schedule=1f1b"};
  Cluster theirs_hosts = *known_device("A100-80GB (Jean Zay)");
  theirs_hosts.hosts = 48;
  theirs_hosts.devices = 8;
  const double best = plan_parallel(m, theirs_hosts, full, 1).plans[0].prediction.seconds;
  const Plan theirs = plan_parallel(m, theirs_hosts,
                                    {"recompute=full", "tensor=4", "pipeline=12", "data=8",
                                     "micro_batch=2", "schedule=1f1b"},
                                    1)
                          .plans[0];
  EXPECT_TRUE(theirs.fits);
  EXPECT_LE(theirs.prediction.seconds, 1.03 * best);
}

TEST(Cluster, ARingSharesTheAdaptersOfAHost) {
  const Cluster c = a100(4);
  EXPECT_DOUBLE_EQ(c.ring(8, 1), c.host_link);     // within a host
  EXPECT_DOUBLE_EQ(c.ring(4, 8), c.network);       // one device of each host
  EXPECT_DOUBLE_EQ(c.ring(8, 4), 2 * c.network);   // two of each
  EXPECT_DOUBLE_EQ(c.ring(32, 1), 8 * c.network);  // all
  EXPECT_DOUBLE_EQ(c.link(32, 1), c.network);      // where each sends for itself
  Cluster slow = c;
  slow.host_link = 2 * slow.network;
  EXPECT_DOUBLE_EQ(slow.ring(32, 1), slow.host_link);
}

TEST(CostModel, APipelineOutermostLetsGradientsTravelWithinHosts) {
  // With tensor 4, two neighboring ranks of data share a host.
  Strategy s{.data = 8, .pipeline = 12, .tensor = 4, .sharding = 1, .micro_batch = 2};
  s.overlap = false;
  const Prediction inside = predict(bloom(), a100(48), s);
  s.pipeline_outermost = true;
  const Prediction outside = predict(bloom(), a100(48), s);
  EXPECT_NEAR(outside.data, inside.data / 2, 1e-9 * inside.data);
  s.overlap = true;
  EXPECT_LT(predict(bloom(), a100(48), s).data, outside.data);
}

PublishedRun run_of(const char* group, double seconds, double predicted) {
  PublishedRun run;
  run.id = str(group, "-", seconds);
  run.group = group;
  run.sequences = 1;
  run.seconds = seconds;
  run.predicted = predicted;
  return run;
}

TEST(PublishedRuns, TellHowGoodTheChoicesAre) {
  PublishedRuns runs;
  runs.runs = {run_of("a", 10, 8),   run_of("a", 11, 9),  // the best one
               run_of("b", 10.1, 8), run_of("b", 10, 9),  // within 2%
               run_of("c", 12, 8),   run_of("c", 10, 9),  // 20% more
               run_of("d", 10, 8),   run_of("d", 20, 8),  // one strategy: no choice
               run_of("e", 10, 8)};
  const PublishedChoices c = choices_of(runs);
  EXPECT_EQ(c.groups, 3);
  EXPECT_EQ(c.best, 1);
  EXPECT_EQ(c.within, 2);
  EXPECT_NEAR(c.worst, 0.2, 1e-12);
  EXPECT_EQ(c.worst_run, "c-12");
  EXPECT_NE(published_text(runs).find("within 2% of it in 2 (67%)"), std::string::npos);
}

TEST(Planner, PlansUseAllDevicesDivideAndFit) {
  const Transformer m = bloom();
  const Cluster c = a100(128);
  const auto begin = std::chrono::steady_clock::now();
  const PlanningResult result = plan_parallel(m, c, {}, 100);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 10);
  ASSERT_FALSE(result.plans.empty());
  double last = 0;
  bool fits = true;
  for (const Plan& plan : result.plans) {
    const Strategy& s = plan.strategy;
    EXPECT_EQ(s.devices(), 1024);
    EXPECT_EQ(m.heads % s.tensor, 0);
    EXPECT_EQ(m.batch % (s.data * s.micro_batch), 0);
    EXPECT_LE(plan.prediction.memory <= 0.92 * c.memory, plan.fits);
    EXPECT_FALSE(!fits && plan.fits);  // those that fit come first
    if (plan.fits) {
      EXPECT_GE(plan.prediction.seconds, last);
      last = plan.prediction.seconds;
    }
    fits = plan.fits;
  }
  EXPECT_TRUE(result.plans[0].fits);
}

TEST(Planner, SaysWhatDoesNotFit) {
  Cluster small = a100(1);
  EXPECT_FALSE(plan_parallel(bloom(), small, {}, 1).plans[0].fits);
  EXPECT_NE(plans_text(bloom(), small, plan_parallel(bloom(), small, {}, 1)).find("nothing fits"),
            std::string::npos);
  for (const auto& [fixed, text] :
       std::vector<std::pair<std::string, std::string>>{{"tensors=4", "did you mean 'tensor'?"},
                                                        {"tensor=5", "no strategy of 8 devices"},
                                                        {"tensor", "expected key=value"},
                                                        {"recompute=most", "found 'most'"},
                                                        {"data=x", "is a number"}})
    try {
      plan_parallel(bloom(), small, {fixed}, 1);
      FAIL() << fixed;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage);
      EXPECT_NE(e.message().find(text), std::string::npos) << e.message();
    }
}

TEST(Planner, PublishedRunsArePredicted) {
  const PublishedRuns runs = check_published("tests/tune/published_runs.csv");
  EXPECT_EQ(runs.runs.size() + runs.without_shape.size(), 257u);
  std::vector<double> errors;
  for (const PublishedRun& run : runs.runs)
    errors.push_back(std::abs(run.predicted / run.seconds - 1));
  std::sort(errors.begin(), errors.end());
  ASSERT_GE(errors.size(), 220u);
  EXPECT_LE(errors[errors.size() / 2], 0.04);
  EXPECT_LE(errors[errors.size() * 9 / 10], 0.145);
  std::vector<double> memory;
  for (const PublishedRun& run : runs.runs)
    if (run.memory > 0) memory.push_back(std::abs(run.predicted_memory / run.memory - 1));
  std::sort(memory.begin(), memory.end());
  ASSERT_GE(memory.size(), 20u);
  EXPECT_LE(memory[memory.size() / 2], 0.18);
}

}  // namespace
}  // namespace paddle::tune
