#include "graph/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "graph/format.h"

namespace paddle::graph {
namespace {

/// Hops of walks and negatives, which no neighborhood has.
constexpr uint64_t kWalkHop = uint64_t{1} << 32;
/// Uniform numbers for keys come after all that a node may draw one by one.
constexpr uint64_t kKeyedDraws = uint64_t{1} << 40;

bool holds(const std::vector<int64_t>& list, size_t begin, int64_t value) {
  return std::find(list.begin() + static_cast<ptrdiff_t>(begin), list.end(), value) != list.end();
}

bool has_weight(const EdgeType& type, EdgeType::Row row) {
  for (int64_t e = row.begin; e < row.end; ++e)
    if (type.weight(e) > 0) return true;
  return false;
}

/// A place of a row, in proportion to the weights. The row has one above 0.
int64_t weighted_place(const EdgeType& type, EdgeType::Row row, NodeDraws& draws) {
  const auto cell = static_cast<int64_t>(draws.below(static_cast<uint64_t>(row.size())));
  const AliasCell& at = type.alias.as<AliasCell>()[static_cast<size_t>(row.begin + cell)];
  const int64_t place = draws.uniform() < static_cast<double>(at.keep) ? cell : at.other;
  if (place >= row.size())
    fail(ErrorCode::kData, "edges '", type.name, "': the alias table of edge ", row.begin + cell,
         " leads out of its row; the graph is damaged, build it again");
  return place;
}

/// Places in proportion to weights, without replacement: draws that are repeated where they give a
/// place again, and after many of them exponential keys over the rest, which have the law of
/// successive draws, too.
void weighted_places(const EdgeType& type, EdgeType::Row row, int64_t count, NodeDraws& draws,
                     std::vector<int64_t>& out) {
  int64_t positive = 0;
  for (int64_t e = row.begin; e < row.end && positive <= count; ++e) positive += type.weight(e) > 0;
  if (positive <= count) {
    for (int64_t i = 0; i < row.size(); ++i)
      if (type.weight(row.begin + i) > 0) out.push_back(i);
    return;
  }
  const size_t begin = out.size();
  int64_t tries = 4 * count + 16;
  while (static_cast<int64_t>(out.size() - begin) < count && tries-- > 0) {
    const int64_t place = weighted_place(type, row, draws);
    if (!holds(out, begin, place)) out.push_back(place);
  }
  const int64_t missing = count - static_cast<int64_t>(out.size() - begin);
  if (missing > 0) {
    std::vector<std::pair<double, int64_t>> keys;
    for (int64_t i = 0; i < row.size(); ++i) {
      const double w = static_cast<double>(type.weight(row.begin + i));
      if (!(w > 0) || holds(out, begin, i)) continue;
      const double u = draws.uniform_at(kKeyedDraws + static_cast<uint64_t>(i));
      keys.emplace_back(-std::log1p(-u) / w, i);
    }
    std::nth_element(keys.begin(), keys.begin() + (missing - 1), keys.end());
    for (int64_t k = 0; k < missing; ++k) out.push_back(keys[static_cast<size_t>(k)].second);
  }
  std::sort(out.begin() + static_cast<ptrdiff_t>(begin), out.end());
}

/// One neighbor; -1 without any.
int64_t step_to(const EdgeType& type, int64_t node, bool weighted, NodeDraws& draws) {
  const EdgeType::Row row = type.row(node);
  if (row.size() == 0) return -1;
  if (!weighted || !type.weighted)
    return type.neighbor(row.begin +
                         static_cast<int64_t>(draws.below(static_cast<uint64_t>(row.size()))));
  if (!has_weight(type, row)) return -1;
  return type.neighbor(row.begin + weighted_place(type, row, draws));
}

/// The next node of a walk that remembers where it comes from: first-order steps, taken with the
/// probability that is the ratio of the second-order weight to the largest there is; after many of
/// them a draw from all weights, which has the same law.
int64_t biased_step(const EdgeType& type, int64_t before, int64_t node, const WalkOptions& options,
                    NodeDraws& draws) {
  const double back = 1 / options.p, far = 1 / options.q;
  const double most = std::max({back, 1.0, far});
  const auto bias = [&](int64_t next) {
    return next == before ? back : type.connects(before, next) ? 1.0 : far;
  };
  for (int tries = 0; tries < 64; ++tries) {
    const int64_t next = step_to(type, node, options.weighted, draws);
    if (next < 0) return -1;
    if (draws.uniform() * most < bias(next)) return next;
  }
  const EdgeType::Row row = type.row(node);
  std::vector<double> sums;
  double sum = 0;
  for (int64_t e = row.begin; e < row.end; ++e) {
    const double weight = options.weighted ? static_cast<double>(type.weight(e)) : 1.0;
    sums.push_back(sum += weight * bias(type.neighbor(e)));
  }
  const double point = draws.uniform() * sum;
  const auto at = std::upper_bound(sums.begin(), sums.end(), point) - sums.begin();
  return type.neighbor(row.begin + std::min<int64_t>(at, row.size() - 1));
}

/// Numbers of a graph's nodes in a block.
class BlockNumbers {
 public:
  explicit BlockNumbers(std::vector<int64_t>& nodes) : nodes_(nodes) {}
  int32_t of(int64_t node) {
    const auto [at, added] = numbers_.try_emplace(
        node, static_cast<int32_t>(std::min<size_t>(nodes_.size(), INT32_MAX)));
    if (added) nodes_.push_back(node);
    if (nodes_.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
      fail(ErrorCode::kData, "a block of 2^31 nodes; sample fewer neighbors or roots");
    return at->second;
  }

 private:
  std::vector<int64_t>& nodes_;
  std::unordered_map<int64_t, int32_t> numbers_;
};

}  // namespace

uint64_t NodeDraws::bits() {
  const uint64_t block = next_ >> 1;
  if ((next_ & 1) == 0)
    words_ = philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                     static_cast<uint32_t>(node_), static_cast<uint32_t>(node_ >> 32)},
                    key_);
  const size_t at = (next_++ & 1) * 2;
  return words_[at] | uint64_t{words_[at + 1]} << 32;
}

double NodeDraws::uniform_at(uint64_t index) const {
  const PhiloxCounter words =
      philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
              static_cast<uint32_t>(node_), static_cast<uint32_t>(node_ >> 32)},
             key_);
  return Random::to_double(words[0] | uint64_t{words[1]} << 32);
}

PhiloxKey draw_key(const DrawContext& context, uint64_t hop, const std::string& edges) {
  uint64_t mixed = mix64(context.seed ^ stream_of(edges));
  for (const uint64_t part : {context.epoch, context.batch, hop}) mixed = mix64(mixed ^ part);
  return {static_cast<uint32_t>(mixed), static_cast<uint32_t>(mixed >> 32)};
}

void choose_places(NodeDraws& draws, int64_t size, int64_t count, std::vector<int64_t>& out) {
  const size_t begin = out.size();
  constexpr int64_t kFewPlaces = 64;
  if (count <= kFewPlaces) {
    for (int64_t last = size - count; last < size; ++last) {
      const auto place = static_cast<int64_t>(draws.below(static_cast<uint64_t>(last) + 1));
      out.push_back(holds(out, begin, place) ? last : place);
    }
  } else {
    std::unordered_map<int64_t, bool> taken;
    for (int64_t last = size - count; last < size; ++last) {
      const auto place = static_cast<int64_t>(draws.below(static_cast<uint64_t>(last) + 1));
      out.push_back(taken.try_emplace(place, true).second ? place : last);
      taken[out.back()] = true;
    }
  }
  std::sort(out.begin() + static_cast<ptrdiff_t>(begin), out.end());
}

void choose_edges(const EdgeType& type, int64_t node, const NeighborChoice& choice,
                  const PhiloxKey& key, std::vector<int64_t>& out) {
  const EdgeType::Row row = type.row(node);
  const size_t begin = out.size();
  const bool weighted = choice.weighted && type.weighted;
  if (row.size() == 0 || choice.count == 0) return;
  NodeDraws draws(key, node);
  if (choice.count < 0) {
    for (int64_t i = 0; i < row.size(); ++i) out.push_back(i);
  } else if (choice.replace) {
    if (weighted && !has_weight(type, row)) return;
    for (int64_t k = 0; k < choice.count; ++k)
      out.push_back(weighted
                        ? weighted_place(type, row, draws)
                        : static_cast<int64_t>(draws.below(static_cast<uint64_t>(row.size()))));
  } else if (weighted) {
    weighted_places(type, row, choice.count, draws, out);
  } else if (row.size() <= choice.count) {
    for (int64_t i = 0; i < row.size(); ++i) out.push_back(i);
  } else {
    choose_places(draws, row.size(), choice.count, out);
  }
  for (size_t i = begin; i < out.size(); ++i) out[i] += row.begin;
}

std::vector<int64_t> walk(const Graph& graph, int64_t node, int64_t number,
                          const WalkOptions& options, const DrawContext& context) {
  std::vector<int64_t> out = {node};
  std::string names;
  for (const size_t type : options.path) names += graph.edges[type].name + "-";
  NodeDraws draws(draw_key(context, kWalkHop + static_cast<uint64_t>(number), names), node);
  const bool biased = options.p != 1 || options.q != 1;
  int64_t before = -1, at = node;
  size_t turn = 0;
  for (int64_t step = 0; step < options.length; ++step) {
    if (options.restart > 0 && draws.uniform() < options.restart) {
      out.push_back(node);
      before = -1, at = node, turn = 0;
      continue;
    }
    const EdgeType& type = graph.edges[options.path[turn]];
    turn = (turn + 1) % options.path.size();
    const int64_t next = biased && before >= 0 ? biased_step(type, before, at, options, draws)
                                               : step_to(type, at, options.weighted, draws);
    if (next < 0) break;
    out.push_back(next);
    before = std::exchange(at, next);
  }
  out.resize(static_cast<size_t>(options.length) + 1, -1);
  return out;
}

NegativeSampler::NegativeSampler(int64_t nodes, const EdgeType* degrees, double power)
    : nodes_(nodes) {
  if (!degrees || power == 0) return;
  std::vector<float> weights;
  for (int64_t i = 0; i < nodes; ++i)
    weights.push_back(
        static_cast<float>(std::pow(static_cast<double>(degrees->row(i).size()), power)));
  if (std::any_of(weights.begin(), weights.end(), [](float w) { return w > 0; }))
    cells_ = alias_table(weights);
}

void NegativeSampler::draw(const PhiloxKey& key, int64_t place, std::span<int64_t> out) const {
  NodeDraws draws(key, place);
  for (int64_t& node : out) {
    node = static_cast<int64_t>(draws.below(static_cast<uint64_t>(nodes_)));
    if (cells_.empty()) continue;
    const AliasCell& cell = cells_[static_cast<size_t>(node)];
    if (!(draws.uniform() < static_cast<double>(cell.keep))) node = cell.other;
  }
}

Block sample_block(const Graph& graph, std::span<const int64_t> roots, int64_t places,
                   std::span<const HopChoice> hops, const DrawContext& context) {
  Block out;
  BlockNumbers numbers(out.nodes);
  for (const int64_t root : roots) numbers.of(root);
  const size_t distinct = out.nodes.size();
  out.nodes.resize(static_cast<size_t>(places) + 1, 0);
  // Frontiers are places in `nodes`; the roots come before the spare node.
  size_t begin = 0, end = distinct;
  std::vector<int64_t> chosen;
  for (size_t h = 0; h < hops.size(); ++h) {
    const EdgeType& type = graph.edges[hops[h].edges];
    const PhiloxKey key = draw_key(context, h, type.name);
    Block::Hop& hop = out.hops.emplace_back();
    const size_t before = out.nodes.size();
    for (size_t i = begin; i < end; ++i) {
      chosen.clear();
      choose_edges(type, out.nodes[i], hops[h].choice, key, chosen);
      for (const int64_t edge : chosen) {
        hop.sources.push_back(numbers.of(type.neighbor(edge)));
        hop.targets.push_back(static_cast<int32_t>(i));
        if (type.weighted) hop.weights.push_back(type.weight(edge));
      }
    }
    begin = before;
    end = out.nodes.size();
  }
  return out;
}

int64_t size_class(int64_t size) {
  if (size <= 4) return std::max<int64_t>(size, 1);
  int64_t quarter = 1;
  while (quarter * 8 < size) quarter *= 2;
  return (size + quarter - 1) / quarter * quarter;
}

}  // namespace paddle::graph
