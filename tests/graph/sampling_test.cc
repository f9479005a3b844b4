// Draws: their laws on small graphs by chi-square tests, and that nothing but their key decides
// them.

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "graph/drawn.h"
#include "graph/sampling.h"

namespace paddle::graph {
namespace {

/// A graph in which node 0 leads to 1 … n with these weights, and each of those back to 0.
Graph star(const std::vector<float>& weights, bool weighted = true) {
  Graph graph;
  const auto n = static_cast<int64_t>(weights.size());
  graph.nodes.push_back({.name = "node", .count = n + 1});
  std::vector<std::pair<int64_t, int64_t>> edges;
  std::vector<float> all = weights;
  for (int64_t i = 1; i <= n; ++i) edges.emplace_back(0, i);
  for (int64_t i = 1; i <= n; ++i) {
    edges.emplace_back(i, 0);
    all.push_back(1);
  }
  graph.edges.push_back(
      make_edges(graph, "edge", 0, 0, edges, weighted ? all : std::vector<float>{}));
  return graph;
}

/// The probability that chi-square with `degrees` degrees of freedom is above `value` (Wilson and
/// Hilferty's approximation).
double tail(double value, double degrees) {
  const double a = 2 / (9 * degrees);
  return 0.5 * std::erfc((std::cbrt(value / degrees) - (1 - a)) / std::sqrt(2 * a));
}

using Law = std::map<std::vector<int64_t>, double>;  ///< probabilities of outcomes

void expect_law(const std::map<std::vector<int64_t>, int64_t>& counts, const Law& law) {
  double chi = 0;
  int64_t total = 0;
  for (const auto& [outcome, count] : counts) {
    total += count;
    EXPECT_TRUE(law.contains(outcome)) << str(outcome);
  }
  for (const auto& [outcome, probability] : law) {
    const double expected = probability * static_cast<double>(total);
    const auto at = counts.find(outcome);
    const double found = at == counts.end() ? 0 : static_cast<double>(at->second);
    chi += (found - expected) * (found - expected) / expected;
  }
  EXPECT_GT(tail(chi, static_cast<double>(law.size()) - 1), 1e-5) << "chi-square " << chi;
}

/// Outcomes of draws of node 0 in many epochs.
std::map<std::vector<int64_t>, int64_t> outcomes(const Graph& graph, const NeighborChoice& choice,
                                                 uint64_t epochs = 60000) {
  std::map<std::vector<int64_t>, int64_t> out;
  for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
    std::vector<int64_t> edges;
    choose_edges(graph.edges[0], 0, choice, draw_key({.seed = 1, .epoch = epoch}, 0, "edge"),
                 edges);
    for (int64_t& edge : edges) edge = graph.edges[0].neighbor(edge);
    ++out[edges];
  }
  return out;
}

/// The law of successive draws without replacement, as sets.
void successive(const std::vector<float>& weights, size_t count, std::vector<int64_t>& chosen,
                double probability, Law& law) {
  if (chosen.size() == count) {
    std::vector<int64_t> set = chosen;
    std::sort(set.begin(), set.end());
    law[set] += probability;
    return;
  }
  double left = 0;
  const auto taken = [&](int64_t node) {
    return std::find(chosen.begin(), chosen.end(), node) != chosen.end();
  };
  for (size_t i = 0; i < weights.size(); ++i)
    if (!taken(static_cast<int64_t>(i) + 1)) left += static_cast<double>(weights[i]);
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto node = static_cast<int64_t>(i) + 1;
    if (taken(node) || !(weights[i] > 0)) continue;
    chosen.push_back(node);
    successive(weights, count, chosen, probability * static_cast<double>(weights[i]) / left, law);
    chosen.pop_back();
  }
}

Law successive(const std::vector<float>& weights, size_t count) {
  Law law;
  std::vector<int64_t> chosen;
  successive(weights, count, chosen, 1, law);
  return law;
}

TEST(GraphSampling, UniformWithoutReplacement) {
  const std::vector<float> ones(7, 1);
  for (const size_t count : {1u, 2u, 3u, 6u})
    expect_law(outcomes(star(ones, false), {static_cast<int64_t>(count)}), successive(ones, count));
}

TEST(GraphSampling, ManyPlaces) {
  // Above the bound from which places are looked up: each has the same chance.
  std::vector<int64_t> counts(100);
  for (int64_t node = 0; node < 20000; ++node) {
    NodeDraws draws({1, 2}, node);
    std::vector<int64_t> out;
    choose_places(draws, 100, 70, out);
    ASSERT_EQ(out.size(), 70u);
    ASSERT_TRUE(std::adjacent_find(out.begin(), out.end(), std::greater_equal<>()) == out.end());
    for (const int64_t place : out) ++counts[static_cast<size_t>(place)];
  }
  for (const int64_t count : counts) EXPECT_NEAR(static_cast<double>(count), 14000, 5 * 65);
}

TEST(GraphSampling, UniformWithReplacement) {
  Law law;
  for (int64_t a = 1; a <= 3; ++a)
    for (int64_t b = 1; b <= 3; ++b) law[{a, b}] = 1.0 / 9;
  expect_law(outcomes(star({1, 1, 1}, false), {2, false, true}), law);
}

TEST(GraphSampling, WeightedWithReplacement) {
  const std::vector<float> weights = {1, 0, 2.5f, 4, 0.5f};
  Law law;
  for (size_t a = 0; a < 5; ++a)
    for (size_t b = 0; b < 5; ++b)
      if (weights[a] > 0 && weights[b] > 0)
        law[{static_cast<int64_t>(a) + 1, static_cast<int64_t>(b) + 1}] =
            static_cast<double>(weights[a] * weights[b]) / 64;
  expect_law(outcomes(star(weights), {2, true, true}), law);
}

TEST(GraphSampling, WeightedWithoutReplacement) {
  const std::vector<float> weights = {1, 0, 2.5f, 4, 0.5f, 1};
  for (const size_t count : {1u, 2u, 3u, 4u})
    expect_law(outcomes(star(weights), {static_cast<int64_t>(count), true}),
               successive(weights, count));
}

TEST(GraphSampling, WeightsThatAreFarApart) {
  // The heavy one is drawn again and again, so that the others come from keys.
  const std::vector<float> weights = {1, 1e30f, 3};
  expect_law(outcomes(star(weights), {2, true}, 20000), {{{1, 2}, 0.25}, {{2, 3}, 0.75}});
  EXPECT_EQ(outcomes(star(weights), {1, true}, 1000).size(), 1u);
}

TEST(GraphSampling, Degrees) {
  const Graph graph = star({1, 2, 0});
  const auto count = [&](NeighborChoice choice, int64_t node = 0) {
    std::vector<int64_t> out;
    choose_edges(graph.edges[0], node, choice, {}, out);
    return out.size();
  };
  EXPECT_EQ(count({0}), 0u);
  EXPECT_EQ(count({-1}), 3u);
  EXPECT_EQ(count({5}), 3u);
  EXPECT_EQ(count({5, true}), 2u);  // none of weight 0
  EXPECT_EQ(count({5, false, true}), 5u);
  EXPECT_EQ(count({5, true, true}), 5u);
  EXPECT_EQ(count({2}, 1), 1u);
  const Graph none = star({0, 0});
  std::vector<int64_t> out;
  choose_edges(none.edges[0], 0, {2, true}, {}, out);
  choose_edges(none.edges[0], 0, {2, true, true}, {}, out);
  EXPECT_TRUE(out.empty());
}

TEST(GraphSampling, LargeDegree) {
  const std::vector<float> ones(1000000, 1);
  const Graph graph = star(ones, false);
  std::vector<int64_t> out;
  choose_edges(graph.edges[0], 0, {100}, draw_key({.seed = 3}, 0, "edge"), out);
  ASSERT_EQ(out.size(), 100u);
  EXPECT_GT(out.back() - out.front(), 900000);
}

GraphPtr citation() { return draw_graph({.nodes = 400, .classes = 4, .degree = 8, .width = 2}); }

TEST(GraphSampling, DependsOnTheKeyOnly) {
  const GraphPtr graph = citation();
  const EdgeType& type = graph->edges[0];
  const PhiloxKey key = draw_key({.seed = 1, .epoch = 2, .batch = 3}, 1, "cites");
  const auto draw = [&](int64_t node, const PhiloxKey& with) {
    std::vector<int64_t> out;
    choose_edges(type, node, {3}, with, out);
    return out;
  };
  std::vector<std::vector<int64_t>> alone;
  for (int64_t i = 0; i < 400; ++i) alone.push_back(draw(i, key));
  std::vector<std::vector<int64_t>> threaded(400);
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 399 - t; i >= 0; i -= 4) threaded[static_cast<size_t>(i)] = draw(i, key);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(alone, threaded);
  int64_t different = 0;
  for (const DrawContext& other : {DrawContext{.seed = 2, .epoch = 2, .batch = 3},
                                   DrawContext{.seed = 1, .epoch = 3, .batch = 3},
                                   DrawContext{.seed = 1, .epoch = 2, .batch = 4}})
    for (int64_t i = 0; i < 400; ++i)
      different += draw(i, draw_key(other, 1, "cites")) != alone[static_cast<size_t>(i)];
  EXPECT_GT(different, 300);
}

TEST(GraphSampling, Blocks) {
  const GraphPtr graph = citation();
  const std::vector<int64_t> roots = {17, 3, 250}, other = {250, 99, 17, 3};
  const std::vector<HopChoice> hops = {{0, {3}}, {0, {2}}};
  const DrawContext context{.seed = 5, .epoch = 1, .batch = 2};
  const Block block = sample_block(*graph, roots, 4, hops, context);
  ASSERT_EQ(block.hops.size(), 2u);
  EXPECT_EQ(std::vector<int64_t>(block.nodes.begin(), block.nodes.begin() + 5),
            (std::vector<int64_t>{17, 3, 250, 0, 0}));
  for (const Block::Hop& hop : block.hops)
    for (size_t e = 0; e < hop.sources.size(); ++e) {
      EXPECT_TRUE(graph->edges[0].connects(block.nodes[static_cast<size_t>(hop.targets[e])],
                                           block.nodes[static_cast<size_t>(hop.sources[e])]));
      EXPECT_TRUE(hop.targets[e] < 3 || hop.targets[e] > 4);
    }
  // The first neighbors of a root are the same among other roots.
  const auto first_hop = [](const Block& b) {
    std::map<int64_t, std::vector<int64_t>> out;
    for (size_t e = 0; e < b.hops[0].sources.size(); ++e)
      out[b.nodes[static_cast<size_t>(b.hops[0].targets[e])]].push_back(
          b.nodes[static_cast<size_t>(b.hops[0].sources[e])]);
    return out;
  };
  const auto here = first_hop(block),
             there = first_hop(sample_block(*graph, other, 4, hops, context));
  for (const int64_t root : roots) EXPECT_EQ(here.at(root), there.at(root));
}

TEST(GraphSampling, FirstOrderWalks) {
  const std::vector<float> weights = {1, 3};
  const Graph graph = star(weights);
  std::map<std::vector<int64_t>, int64_t> counts;
  WalkOptions options{.path = {0}, .length = 3, .weighted = true};
  for (int64_t n = 0; n < 40000; ++n) ++counts[walk(graph, 0, n, options, {.seed = 4})];
  expect_law(counts, {{{0, 1, 0, 1}, 1.0 / 16},
                      {{0, 1, 0, 2}, 3.0 / 16},
                      {{0, 2, 0, 1}, 3.0 / 16},
                      {{0, 2, 0, 2}, 9.0 / 16}});
  Graph chain;
  chain.nodes.push_back({.name = "node", .count = 3});
  chain.edges.push_back(make_edges(chain, "edge", 0, 0, {{0, 1}, {1, 2}}));
  EXPECT_EQ(walk(chain, 0, 0, {.path = {0}, .length = 4}, {}),
            (std::vector<int64_t>{0, 1, 2, -1, -1}));
}

TEST(GraphSampling, BiasedWalks) {
  // From 0 by 1: back to 0, to 2, which is a neighbor of 0, or on to 3.
  Graph graph;
  graph.nodes.push_back({.name = "node", .count = 4});
  graph.edges.push_back(make_edges(
      graph, "edge", 0, 0, {{0, 1}, {1, 0}, {1, 2}, {2, 1}, {1, 3}, {3, 1}, {0, 2}, {2, 0}}));
  for (const auto& [p, q] : {std::pair{0.25, 4.0}, {4.0, 0.5}, {1.0, 0.001}, {1e6, 1e6}}) {
    std::map<std::vector<int64_t>, int64_t> counts;
    const WalkOptions options{.path = {0}, .length = 2, .p = p, .q = q};
    for (int64_t n = 0; n < 60000; ++n) {
      const std::vector<int64_t> nodes = walk(graph, 0, n, options, {.seed = 8});
      if (nodes[1] == 1) ++counts[{nodes[2]}];
    }
    const double sum = 1 / p + 1 + 1 / q;
    Law law = {{{0}, 1 / p / sum}, {{2}, 1 / sum}, {{3}, 1 / q / sum}};
    std::erase_if(law, [](const auto& each) { return each.second < 1e-4; });
    if (law.size() > 1) expect_law(counts, law);
  }
  // The only way is the unlikely one.
  const Graph star_graph = star({1});
  EXPECT_EQ(walk(star_graph, 0, 0, {.path = {0}, .length = 3, .p = 1e6}, {}),
            (std::vector<int64_t>{0, 1, 0, 1}));
}

TEST(GraphSampling, Restarts) {
  const Graph graph = star({1, 1, 1}, false);
  int64_t restarts = 0;
  for (int64_t n = 0; n < 20000; ++n)
    restarts += walk(graph, 0, n, {.path = {0}, .length = 1, .restart = 0.3}, {})[1] == 0;
  EXPECT_NEAR(static_cast<double>(restarts), 6000, 5 * 65);
}

TEST(GraphSampling, Negatives) {
  const Graph graph = star(std::vector<float>(15, 1), false);
  const NegativeSampler by_degree(16, &graph.edges[0], 0.75), uniform(16);
  std::map<std::vector<int64_t>, int64_t> degrees, equal;
  for (int64_t place = 0; place < 30000; ++place) {
    std::vector<int64_t> out(2);
    by_degree.draw({3, 4}, place, out);
    for (const int64_t node : out) ++degrees[{node}];
    uniform.draw({3, 4}, place, out);
    for (const int64_t node : out) ++equal[{node}];
  }
  Law law, flat;
  const double hub = std::pow(15.0, 0.75);
  for (int64_t i = 0; i < 16; ++i) {
    law[{i}] = (i == 0 ? hub : 1) / (hub + 15);
    flat[{i}] = 1.0 / 16;
  }
  expect_law(degrees, law);
  expect_law(equal, flat);
}

TEST(GraphSampling, SizeClasses) {
  std::vector<int64_t> found;
  for (int64_t size = 0; size <= 33; ++size)
    if (found.empty() || found.back() != size_class(size)) found.push_back(size_class(size));
  EXPECT_EQ(found,
            (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40}));
  for (int64_t size = 1; size < 100000; size += 7) {
    EXPECT_GE(size_class(size), size);
    EXPECT_LE(size_class(size), size + size / 4 + 1);
  }
}

}  // namespace
}  // namespace paddle::graph
