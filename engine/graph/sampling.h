#pragma once
// Random neighbors, walks and nodes as pure functions: a draw depends on the seed, the epoch, the
// batch, the hop, the type of edges and the node, and on nothing else. Every caller that asks for
// the neighbors of a node in a batch gets the same ones, in any order and on any thread or process.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "tensor/random.h"

namespace paddle::graph {

/// The part of a run that draws belong to.
struct DrawContext {
  uint64_t seed = 0, epoch = 0, batch = 0;
};

/// Random words of one node, one after the other.
class NodeDraws {
 public:
  NodeDraws(const PhiloxKey& key, int64_t node) : key_(key), node_(static_cast<uint64_t>(node)) {}
  uint64_t bits();
  double uniform() { return Random::to_double(bits()); }
  uint64_t below(uint64_t n) { return Random::scale(bits(), n); }
  /// Uniform number `index` of another sequence of the node.
  double uniform_at(uint64_t index) const;

 private:
  PhiloxKey key_;
  uint64_t node_, next_ = 0;
  PhiloxCounter words_ = {};
};

/// The draws of all nodes in one hop over a type of edges.
PhiloxKey draw_key(const DrawContext& context, uint64_t hop, const std::string& edges);

/// How neighbors are chosen.
struct NeighborChoice {
  int64_t count = -1;     ///< most neighbors of a node; -1: all
  bool weighted = false;  ///< in proportion to the weights of edges
  bool replace = false;   ///< independent draws: exactly `count`, unless the node has none
};

/// Appends the chosen edges of a node to `out`: without replacement in rising order, with it in the
/// order of the draws. Without replacement all neighbors are taken where there are at most `count`
/// (of weights above 0). kData for a graph that is damaged.
void choose_edges(const EdgeType& type, int64_t node, const NeighborChoice& choice,
                  const PhiloxKey& key, std::vector<int64_t>& out);

/// Distinct places of `size`, `count` < size of them in rising order, each set equally likely
/// (Floyd's method: one draw for each place).
void choose_places(NodeDraws& draws, int64_t size, int64_t count, std::vector<int64_t>& out);

struct WalkOptions {
  std::vector<size_t> path = {};  ///< types of edges, taken in turn
  int64_t length = 1;             ///< edges
  bool weighted = false;
  /// node2vec (Grover and Leskovec, 2016): weights of going back, 1/p, and of going on to a node
  /// that does not neighbor the one before, 1/q. For a path of one type between nodes of one type.
  double p = 1, q = 1;
  double restart = 0;  ///< probability of going back to the first node in place of a step
};

/// Walk number `number` from a node: length + 1 nodes, -1 after the last where it ends.
std::vector<int64_t> walk(const Graph& graph, int64_t node, int64_t number,
                          const WalkOptions& options, const DrawContext& context);

/// Nodes that are drawn for negative examples.
class NegativeSampler {
 public:
  /// With `power` 0 all nodes of the type are equally likely, else in proportion to the number of
  /// edges of `degrees` from them to this power.
  NegativeSampler(int64_t nodes, const EdgeType* degrees = nullptr, double power = 0.75);
  /// Negatives [0, count) of a place in the batch or epoch.
  void draw(const PhiloxKey& key, int64_t place, std::span<int64_t> out) const;

 private:
  int64_t nodes_;
  std::vector<AliasCell> cells_;
};

/// The neighborhood of some roots, as fields of a batch. Nodes are numbered in the order in which
/// they are first met: the roots, a spare node (`spare`), then hop by hop.
struct Block {
  struct Hop {
    std::vector<int32_t> sources, targets;  ///< of messages: numbers in `nodes`
    std::vector<float> weights;             ///< of edges, if the type has some
  };
  std::vector<int64_t> nodes;  ///< of the graph; the spare one is node 0 there
  std::vector<Hop> hops;
};

struct HopChoice {
  size_t edges = 0;  ///< type
  NeighborChoice choice = {};
};

/// Each hop adds the chosen neighbors of all nodes that the hop before has added, or of the roots;
/// equal roots count once. `places` is the number of roots that the block has room for: those
/// missing are spare nodes. Nodes and edges are of one type of nodes.
Block sample_block(const Graph& graph, std::span<const int64_t> roots, int64_t places,
                   std::span<const HopChoice> hops, const DrawContext& context);

/// The smallest of 1, 1.25, 1.5 and 1.75 times a power of two, and whole, that is not below `size`:
/// sizes of few kinds, for which few plans are needed.
int64_t size_class(int64_t size);

}  // namespace paddle::graph
