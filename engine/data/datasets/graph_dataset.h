#pragma once
// Samples of a graph (graph/graph.h): the whole graph as one sample, or blocks of nodes with the
// neighbors that are drawn for them. A block is a function of the seed, the epoch and its number.

#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "graph/drawn.h"
#include "graph/sampling.h"

namespace paddle::data {

struct GraphOptions {
  std::string path = {};  ///< of a stored graph; "": `drawn`
  graph::DrawnGraph drawn = {};
  std::string nodes = {};  ///< type of the nodes that have labels; "": the only one
  std::vector<std::string> features = {};
  bool all_features = true;  ///< those of floats; `features` is not used
  std::string label = {};    ///< a feature of integers; "": no labels
  std::string label_field = "label";
  /// The nodes in use: those whose features have these values (names of classes, or integers), and
  /// of them the share `part` of a random split.
  std::vector<std::pair<std::string, std::string>> where = {};
  std::vector<std::pair<std::string, double>> split = {};
  std::string part = {};
  uint64_t split_seed = 0;
  bool weighted = false;

  // The whole graph.
  std::vector<std::string> edges = {};  ///< types; empty: the only one

  // Blocks.
  std::vector<std::pair<std::string, int64_t>> hops = {};
  bool replace = false;
  int64_t roots = 512;  ///< of a block
  bool shuffle = true;  ///< roots, or pairs, come in a new order in each epoch

  // Edges and pairs that are none.
  int64_t negatives = 4;  ///< of each edge
  bool by_degree = true;  ///< negatives in proportion to degree^0.75; else uniform
  int64_t pairs = 512;    ///< edges of a sample
};

/// One sample: the features [nodes, …], `sources` and `targets` int32 [edges] and, where there are
/// some, `weights` float32 [edges] and `relations` int64 [edges], the number of the type. Labels
/// of nodes that are not in use are -100. kConfig for names that the graph does not have.
DatasetPtr make_whole_graph(const GraphOptions& options);
/// Samples of `roots` nodes: features [n, …] and `nodes` int64 [n], and for each hop
/// `hop1_sources`, `hop1_targets` and, where there are some, `hop1_weights`. The roots come first,
/// then a spare node, at which all edges end that are only there to fill the array; then the
/// neighbors. Labels are those of the roots, -100 where a block has fewer.
DatasetPtr make_graph_blocks(const GraphOptions& options);
/// Samples of `pairs` edges for link prediction: `pair_sources` and `pair_targets` int32 [pairs *
/// (negatives + 1)], for each edge its negatives and then itself, and a label int64 [pairs], the
/// place of the edge among them (-100 where the last sample has fewer). With hops their ends are
/// the roots of a block; else they are numbers in the whole graph, whose `sources` and `targets`
/// are fields, too; where edges join two types of nodes, those of the second come after the first,
/// and messages go in both directions. Messages take edges of the first share of `split` only.
DatasetPtr make_graph_edges(const GraphOptions& options);

}  // namespace paddle::data
