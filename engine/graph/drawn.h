#pragma once
// A graph that is drawn instead of read, like those of papers that cite each other: communities,
// degrees by a power law, and features that say little about a node alone. For examples and tests.

#include <string>

#include "graph/graph.h"

namespace paddle::graph {

struct DrawnGraph {
  int64_t nodes = 3000;
  int64_t classes = 7;   ///< communities, each of about as many nodes
  int64_t degree = 6;    ///< mean number of neighbors
  double within = 0.8;   ///< share of edges whose ends are chosen in one community
  int64_t width = 32;    ///< of the feature `x`
  double signal = 0.25;  ///< length of a class's mean in one direction; the noise has 1
  uint64_t seed = 0;
};

/// Nodes `paper` with the features `x` float32 [width], `class` and `split` (train, valid, test:
/// 10, 20 and 70 of 100 nodes), and edges `cites` in both directions. kConfig for sizes that do not
/// fit.
GraphPtr draw_graph(const DrawnGraph& options);

/// Writes the graph as `nodes.csv`, `edges.csv` (each edge once) and `graph.yaml`, from which
/// `paddle graph build` makes it again.
void write_drawn_graph(const DrawnGraph& options, const std::string& folder);

/// A type of edges in memory. `edges`: pairs of source and target in any order; `weights` as many,
/// or none.
EdgeType make_edges(const Graph& graph, std::string name, size_t from, size_t to,
                    std::vector<std::pair<int64_t, int64_t>> edges,
                    std::vector<float> weights = {});
/// A column in memory.
template <class T>
Column make_column(std::vector<T> values) {
  auto owner = std::make_shared<const std::vector<T>>(std::move(values));
  return {owner, reinterpret_cast<const std::byte*>(owner->data()), owner->size() * sizeof(T)};
}

}  // namespace paddle::graph
