// Samples of graphs: whole graphs and blocks against the stored edges, batches that do not depend
// on workers or ranks, and options that do not fit.

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "data/datasets/graph_dataset.h"
#include "data/loader.h"

namespace paddle::data {
namespace {

constexpr graph::DrawnGraph kDrawn{.nodes = 500, .classes = 5, .degree = 6, .width = 3, .seed = 4};

GraphOptions options_of(std::vector<std::pair<std::string, int64_t>> hops = {}) {
  GraphOptions o;
  o.drawn = kDrawn;
  o.label = "class";
  o.where = {{"split", "valid"}};
  o.hops = std::move(hops);
  o.roots = 16;
  return o;
}

template <class T>
std::vector<T> list_of(const Array& array) {
  const Array whole = array.contiguous();
  return {whole.data<T>(), whole.data<T>() + whole.size()};
}

const Array& field(const Loader& loader, const Batch& batch, const std::string& name) {
  const auto& fields = loader.fields();
  for (size_t f = 0; f < fields.size(); ++f)
    if (fields[f].name == name) return batch.arrays[f];
  throw std::out_of_range(name);
}

TEST(GraphDataset, WholeGraph) {
  const graph::GraphPtr graph = graph::draw_graph(kDrawn);
  const DatasetPtr dataset = make_whole_graph(options_of());
  ASSERT_EQ(dataset->size(), 1);
  Loader loader(dataset, {.batch_size = 1});
  const Batch batch = *loader.next();
  EXPECT_EQ(field(loader, batch, "x").shape, (Dims{1, 500, 3}));
  const auto sources = list_of<int32_t>(field(loader, batch, "sources")),
             targets = list_of<int32_t>(field(loader, batch, "targets"));
  ASSERT_EQ(static_cast<int64_t>(sources.size()), graph->edges[0].count);
  EXPECT_TRUE(std::is_sorted(targets.begin(), targets.end()));
  for (size_t e = 0; e < sources.size(); ++e)
    EXPECT_TRUE(graph->edges[0].connects(targets[e], sources[e]));
  const auto labels = list_of<int64_t>(field(loader, batch, "label"));
  int64_t used = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const bool valid = graph->nodes[0].feature("split").values.as<int64_t>()[i] == 2;
    used += valid;
    EXPECT_EQ(labels[i], valid ? graph->nodes[0].feature("class").values.as<int64_t>()[i] : -100);
  }
  EXPECT_GT(used, 50);
  EXPECT_LT(used, 150);
  EXPECT_EQ(dataset->fields().back().class_count, 5);
}

TEST(GraphDataset, Blocks) {
  const graph::GraphPtr graph = graph::draw_graph(kDrawn);
  const DatasetPtr dataset = make_graph_blocks(options_of({{"cites", 4}, {"cites", 3}}));
  Loader loader(dataset, {.batch_size = 2, .seed = 9, .epochs = 1});
  std::multiset<int64_t> seen;
  while (const auto batch = loader.next()) {
    const Array &nodes = field(loader, *batch, "nodes"), &x = field(loader, *batch, "x"),
                &label = field(loader, *batch, "label");
    const int64_t rows = batch->samples, count = nodes.shape[1];
    EXPECT_EQ(graph::size_class(count), count);
    ASSERT_EQ(x.shape, (Dims{rows, count, 3}));
    ASSERT_EQ(label.shape, (Dims{rows, 16}));
    const auto ids = list_of<int64_t>(nodes), labels = list_of<int64_t>(label);
    const auto values = list_of<float>(x);
    for (int64_t row = 0; row < rows; ++row) {
      const auto node = [&](int64_t i) { return ids[static_cast<size_t>(row * count + i)]; };
      for (int64_t i = 0; i < 16; ++i) {
        const int64_t own = labels[static_cast<size_t>(row * 16 + i)];
        if (own < 0) continue;
        seen.insert(node(i));
        EXPECT_EQ(
            own,
            graph->nodes[0].feature("class").values.as<int64_t>()[static_cast<size_t>(node(i))]);
        for (int64_t k = 0; k < 3; ++k)
          EXPECT_EQ(values[static_cast<size_t>((row * count + i) * 3 + k)],
                    graph->nodes[0]
                        .feature("x")
                        .values.as<float>()[static_cast<size_t>(node(i) * 3 + k)]);
      }
      for (int64_t k = 0; k < 3; ++k)
        EXPECT_EQ(values[static_cast<size_t>((row * count + 16) * 3 + k)], 0);
      for (const char* hop : {"hop1_", "hop2_"}) {
        const Array &s = field(loader, *batch, str(hop, "sources")),
                    &t = field(loader, *batch, str(hop, "targets"));
        ASSERT_EQ(s.shape, t.shape);
        EXPECT_EQ(graph::size_class(s.shape[1]), s.shape[1]);
        const auto sources = list_of<int32_t>(s), targets = list_of<int32_t>(t);
        std::map<int32_t, int64_t> degrees;
        for (int64_t e = 0; e < s.shape[1]; ++e) {
          const auto at = static_cast<size_t>(row * s.shape[1] + e);
          if (targets[at] == 16) {
            EXPECT_EQ(sources[at], 16);  // the spare node
            continue;
          }
          ++degrees[targets[at]];
          EXPECT_TRUE(graph->edges[0].connects(node(targets[at]), node(sources[at])));
          EXPECT_EQ(targets[at] < 16, std::string(hop) == "hop1_");
        }
        for (const auto& [target, degree] : degrees)
          EXPECT_EQ(degree, std::min<int64_t>(graph->edges[0].row(node(target)).size(),
                                              std::string(hop) == "hop1_" ? 4 : 3));
      }
    }
  }
  // Each node of the part is a root once.
  std::set<int64_t> expected;
  for (int64_t i = 0; i < 500; ++i)
    if (graph->nodes[0].feature("split").values.as<int64_t>()[static_cast<size_t>(i)] == 2)
      expected.insert(i);
  EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()), expected);
  EXPECT_EQ(seen.size(), expected.size());
}

std::vector<std::vector<Array>> batches(const LoaderOptions& options) {
  Loader loader(make_graph_blocks(options_of({{"cites", 5}, {"cites", 5}})), options);
  std::vector<std::vector<Array>> out;
  while (auto batch = loader.next()) out.push_back(std::move(batch->arrays));
  return out;
}

bool equal(const Array& a, const Array& b) {
  if (a.shape != b.shape || a.dtype != b.dtype) return false;
  const Array x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.raw(), y.raw(), static_cast<size_t>(x.size() * item_size(x.dtype))) == 0;
}

TEST(GraphDataset, BatchesDependOnTheSeedOnly) {
  const LoaderOptions base{.batch_size = 2, .shuffle = true, .seed = 3, .epochs = 3};
  const auto expected = batches(base);
  for (const int workers : {1, 4}) {
    LoaderOptions options = base;
    options.workers = workers;
    const auto found = batches(options);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t b = 0; b < found.size(); ++b)
      for (size_t f = 0; f < found[b].size(); ++f)
        EXPECT_TRUE(equal(found[b][f], expected[b][f])) << "batch " << b << " field " << f;
  }
  LoaderOptions other = base;
  other.seed = 4;
  EXPECT_FALSE(equal(batches(other)[0][0], expected[0][0]));
  EXPECT_FALSE(equal(expected[0][0], expected[expected.size() / 3][0])) << "epochs are equal";
}

TEST(GraphDataset, RanksHaveTheBlocksOfTheWholeBatch) {
  const LoaderOptions whole{.batch_size = 2, .drop_last = true, .seed = 3, .epochs = 2};
  const auto expected = batches(whole);
  for (int64_t rank = 0; rank < 2; ++rank) {
    LoaderOptions options = whole;
    options.rank = rank;
    options.ranks = 2;
    const auto found = batches(options);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t b = 0; b < found.size(); ++b)
      for (size_t f = 0; f < found[b].size(); ++f) {
        // Parts may be padded less than the whole.
        const Array &mine = found[b][f], &all = expected[b][f];
        ASSERT_EQ(mine.shape[0], 1);
        ASSERT_LE(mine.shape[1], all.shape[1]);
        const int64_t bytes = mine.size() * item_size(mine.dtype),
                      stride = all.size() / 2 * item_size(all.dtype);
        EXPECT_EQ(std::memcmp(mine.raw(), static_cast<const std::byte*>(all.raw()) + rank * stride,
                              static_cast<size_t>(bytes)),
                  0);
      }
  }
}

TEST(GraphDataset, ResumesAnywhere) {
  const DatasetPtr dataset = make_graph_blocks(options_of({{"cites", 3}}));
  Loader loader(dataset, {.batch_size = 1, .shuffle = true, .seed = 3});
  for (int i = 0; i < 9; ++i) loader.next();
  const LoaderPosition position = loader.position();
  const Batch expected = *loader.next();
  Loader other(dataset, {.batch_size = 1, .shuffle = true, .seed = 3});
  other.seek(position);
  const Batch found = *other.next();
  for (size_t f = 0; f < found.arrays.size(); ++f)
    EXPECT_TRUE(equal(found.arrays[f], expected.arrays[f]));
}

TEST(GraphDataset, SharesOfNodes) {
  GraphOptions o = options_of();
  o.where = {};
  o.split = {{"a", 0.25}, {"b", 0.75}};
  std::vector<bool> all(500);
  for (const char* part : {"a", "b"}) {
    o.part = part;
    const std::vector<bool> used = make_whole_graph(o)->used_sources();
    EXPECT_EQ(std::count(used.begin(), used.end(), true), part[0] == 'a' ? 125 : 375);
    for (size_t i = 0; i < 500; ++i) {
      EXPECT_FALSE(all[i] && used[i]);
      all[i] = all[i] || used[i];
    }
  }
  EXPECT_EQ(std::count(all.begin(), all.end(), true), 500);
}

TEST(GraphDataset, EdgesAndNegatives) {
  const graph::GraphPtr graph = graph::draw_graph(kDrawn);
  const graph::EdgeType& cites = graph->edges[0];
  GraphOptions o;
  o.drawn = kDrawn;
  o.split = {{"train", 0.75}, {"valid", 0.25}};
  o.pairs = 100;
  o.negatives = 3;
  std::set<std::pair<int64_t, int64_t>> known, held_out;
  for (const bool with_hops : {false, true})
    for (const char* part : {"train", "valid"}) {
      o.part = part;
      o.hops.clear();
      if (with_hops) o.hops = {{"cites", 4}};
      Loader loader(make_graph_edges(o), {.batch_size = 1, .seed = 2, .epochs = 1});
      std::set<std::pair<int64_t, int64_t>> seen;
      while (const auto batch = loader.next()) {
        const auto from = list_of<int32_t>(field(loader, *batch, "pair_sources")),
                   to = list_of<int32_t>(field(loader, *batch, "pair_targets"));
        const auto label = list_of<int64_t>(field(loader, *batch, "label"));
        std::vector<int64_t> numbers;
        if (with_hops) numbers = list_of<int64_t>(field(loader, *batch, "nodes"));
        const auto node = [&](int32_t place) {
          return with_hops ? numbers[static_cast<size_t>(place)] : int64_t{place};
        };
        ASSERT_EQ(from.size(), 400u);
        for (size_t i = 0; i < label.size(); ++i) {
          if (label[i] < 0) continue;
          ASSERT_EQ(label[i], 3);
          for (size_t k = 0; k < 3; ++k) {
            EXPECT_EQ(from[4 * i + k], from[4 * i]);
            EXPECT_FALSE(cites.connects(node(from[4 * i + k]), node(to[4 * i + k])));
          }
          const std::pair edge(node(from[4 * i + 3]), node(to[4 * i + 3]));
          EXPECT_TRUE(cites.connects(edge.first, edge.second));
          EXPECT_TRUE(seen.insert(edge).second);
        }
        // Messages take edges of the first share.
        const auto sources =
            list_of<int32_t>(field(loader, *batch, with_hops ? "hop1_sources" : "sources"));
        const auto targets =
            list_of<int32_t>(field(loader, *batch, with_hops ? "hop1_targets" : "targets"));
        if (!known.empty())
          for (size_t e = 0; e < sources.size(); ++e) {
            const std::pair edge(node(targets[e]), node(sources[e]));
            EXPECT_TRUE(edge.first == edge.second || known.contains(edge));
          }
      }
      (part == std::string("train") ? known : held_out) = seen;
    }
  EXPECT_EQ(static_cast<int64_t>(known.size() + held_out.size()), cites.count);
  EXPECT_NEAR(static_cast<double>(known.size()) / static_cast<double>(cites.count), 0.75, 0.04);
  // Both directions of an edge are in one share.
  for (const auto& [u, v] : held_out) EXPECT_TRUE(held_out.contains({v, u}));
  o.part = "test";
  EXPECT_THROW(make_graph_edges(o), Error);
}

TEST(GraphDataset, Errors) {
  const auto error_of = [](const GraphOptions& o) -> std::string {
    try {
      make_graph_blocks(o);
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  };
  GraphOptions o = options_of({{"cite", 4}});
  EXPECT_EQ(error_of(o), "the graph has no edges 'cite' (did you mean 'cites'?); it has cites");
  o = options_of({{"cites", 4}});
  o.label = "x";
  EXPECT_EQ(error_of(o),
            "graph_neighbors: the label 'x' is float32[3], expected one integer or category of "
            "each node");
  o = options_of({{"cites", 4}});
  o.where = {{"split", "train2"}};
  EXPECT_EQ(error_of(o),
            "graph_neighbors: where: no node has 'train2' as its 'split' (did you mean 'train'?)");
  o = options_of({{"cites", 4}});
  o.weighted = true;
  EXPECT_EQ(error_of(o), "graph_neighbors: weighted: edges 'cites' have no weights");
  o = options_of({});
  EXPECT_EQ(error_of(o), "graph_neighbors: hops: at least one is needed");
  o = options_of({{"cites", -1}});
  o.replace = true;
  EXPECT_EQ(error_of(o), "graph_neighbors: replace: hops need a number of neighbors, not -1");
  o = options_of({{"cites", 1}});
  o.features = {"y"};
  EXPECT_EQ(error_of(o), "nodes 'paper' have no feature 'y'; they have x, class, split");
}

}  // namespace
}  // namespace paddle::data
