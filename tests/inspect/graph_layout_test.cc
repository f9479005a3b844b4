// Places of boxes and lines: on random graphs nothing overlaps, everything is in its group, and
// every value reaches all of its readers.

#include "inspect/graph_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "base/error.h"

namespace paddle::inspect {
namespace {

struct Graph {
  std::vector<GraphItem> items;
  std::vector<GraphNet> nets;
};

GraphItem box(size_t parent, double width, double height) {
  GraphItem item;
  item.parent = parent;
  item.width = width;
  item.height = height;
  return item;
}

GraphItem group(size_t parent, double label_width = 40) {
  GraphItem item;
  item.parent = parent;
  item.is_group = true;
  item.label_width = label_width;
  return item;
}

/// Boxes and nested groups in order, with nets between boxes that lie far or near.
Graph random_graph(unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](size_t most) {
    return std::uniform_int_distribution<size_t>(0, most)(random);
  };
  Graph graph;
  graph.items.push_back(group(0, 0));
  std::vector<size_t> open = {0}, boxes;
  for (size_t i = 0; i < 40; ++i) {
    if (open.size() < 4 && pick(4) == 0) {
      graph.items.push_back(group(open.back(), static_cast<double>(pick(200))));
      open.push_back(graph.items.size() - 1);
    }
    graph.items.push_back(
        box(open.back(), 30 + static_cast<double>(pick(200)), 20 + static_cast<double>(pick(60))));
    boxes.push_back(graph.items.size() - 1);
    if (open.size() > 1 && pick(3) == 0) open.pop_back();
  }
  for (size_t i = 0; i + 1 < boxes.size(); ++i) {
    GraphNet net{boxes[i], {}};
    for (size_t n = pick(3); n > 0; --n) {
      const size_t target = boxes[i + 1 + pick(std::min<size_t>(boxes.size() - i - 2, 12))];
      if (std::find(net.targets.begin(), net.targets.end(), target) == net.targets.end())
        net.targets.push_back(target);
    }
    if (!net.targets.empty()) graph.nets.push_back(net);
  }
  return graph;
}

bool overlap(const GraphItem& a, const GraphItem& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

bool is_inside(const GraphItem& inner, const GraphItem& outer) {
  return inner.x >= outer.x && inner.y >= outer.y &&
         inner.x + inner.width <= outer.x + outer.width &&
         inner.y + inner.height <= outer.y + outer.height;
}

TEST(GraphLayout, NothingOverlapsAndGroupsHoldTheirBoxes) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    Graph graph = random_graph(seed);
    const GraphLayout layout = lay_out(graph.items, graph.nets);
    const auto& items = graph.items;
    for (size_t i = 1; i < items.size(); ++i) {
      EXPECT_TRUE(is_inside(items[i], items[items[i].parent])) << "seed " << seed << " item " << i;
      for (size_t j = i + 1; j < items.size(); ++j)
        EXPECT_FALSE(items[i].parent == items[j].parent && overlap(items[i], items[j]))
            << "seed " << seed << " items " << i << ", " << j;
      if (items[i].is_group) {
        EXPECT_LE(items[i].label_x + items[i].label_width, items[i].x + items[i].width);
      }
    }
    EXPECT_EQ(layout.width, items[0].width);
  }
}

TEST(GraphLayout, LinesGoDownFromTheSourceToEachReader) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    Graph graph = random_graph(seed);
    const GraphLayout layout = lay_out(graph.items, graph.nets);
    for (size_t n = 0; n < graph.nets.size(); ++n) {
      std::vector<GraphPiece> pieces;
      for (const GraphPiece& p : layout.pieces)
        if (p.net == n) pieces.push_back(p);
      std::stable_sort(pieces.begin(), pieces.end(),
                       [](const auto& a, const auto& b) { return a.y1 < b.y1; });
      const GraphItem& source = graph.items[graph.nets[n].source];
      std::vector<std::pair<double, double>> reached = {};
      std::set<size_t> met;
      for (const GraphPiece& p : pieces) {
        EXPECT_LE(p.y1, p.y2);
        const bool starts_at_source = std::abs(p.y1 - source.y - source.height) < 1e-6 &&
                                      p.x1 > source.x && p.x1 < source.x + source.width;
        const bool continues = std::any_of(reached.begin(), reached.end(), [&](const auto& end) {
          return std::abs(end.first - p.x1) < 1e-6 && std::abs(end.second - p.y1) < 1e-6;
        });
        EXPECT_TRUE(starts_at_source || continues) << "seed " << seed << " net " << n;
        reached.emplace_back(p.x2, p.y2);
        if (!p.ends_at_box) continue;
        for (const size_t target : graph.nets[n].targets) {
          const GraphItem& t = graph.items[target];
          if (std::abs(p.y2 - t.y) < 1e-6 && p.x2 > t.x && p.x2 < t.x + t.width) met.insert(target);
        }
      }
      EXPECT_EQ(met.size(), graph.nets[n].targets.size()) << "seed " << seed << " net " << n;
    }
  }
}

TEST(GraphLayout, LinesStayClearOfBoxesThatTheyDoNotReach) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    Graph graph = random_graph(seed);
    const GraphLayout layout = lay_out(graph.items, graph.nets);
    for (const GraphPiece& p : layout.pieces)
      for (size_t i = 1; i < graph.items.size(); ++i) {
        const GraphItem& item = graph.items[i];
        if (item.is_group) continue;
        // The straight ends; curves are between rows.
        for (const auto& [x, from, to] :
             {std::tuple(p.x1, p.y1, p.curve_from), std::tuple(p.x2, p.curve_to, p.y2)})
          EXPECT_FALSE(x > item.x && x < item.x + item.width &&
                       from < item.y + item.height - 1e-6 && to > item.y + 1e-6)
              << "seed " << seed << " net " << p.net << " item " << i;
      }
  }
}

TEST(GraphLayout, AStraightChainIsStraight) {
  Graph graph;
  graph.items = {group(0), box(0, 100, 20), box(0, 60, 20), box(0, 140, 20)};
  graph.nets = {{1, {2}}, {2, {3}}};
  const GraphLayout layout = lay_out(graph.items, graph.nets);
  ASSERT_EQ(layout.pieces.size(), 2u);
  for (const GraphPiece& p : layout.pieces) EXPECT_NEAR(p.x1, p.x2, 1e-6);
  EXPECT_LT(graph.items[1].y + 20, graph.items[2].y);
}

TEST(GraphLayout, ALineThatGoesUpIsAnError) {
  Graph graph;
  graph.items = {group(0), box(0, 100, 20), box(0, 60, 20)};
  graph.nets = {{2, {1}}};
  EXPECT_THROW(lay_out(graph.items, graph.nets), Error);
}

}  // namespace
}  // namespace paddle::inspect
