// Samples of edges and of pairs that are none, for link prediction.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "data/datasets/graph_dataset.h"
#include "data/options.h"

namespace paddle::data {
namespace {

constexpr int64_t kNoPair = -100;
constexpr uint64_t kNegativeHop = uint64_t{1} << 40;
constexpr int kNegativeTries = 16;

using NodePair = std::pair<int64_t, int64_t>;

class GraphPairs final : public Dataset {
 public:
  explicit GraphPairs(const GraphOptions& options)
      : options_(options),
        graph_(options.path.empty() ? graph::draw_graph(options.drawn)
                                    : graph::open_graph(options.path)),
        path_(options.path.empty() ? "drawn graph" : options.path) {
    choose_type();
    split_edges();
    choose_fields();
  }

  int64_t size() const override {
    return (static_cast<int64_t>(pairs_.size()) + per_sample_ - 1) / per_sample_;
  }
  const std::vector<Field>& fields() const override { return fields_; }
  std::string location(int64_t index, int64_t field, int64_t) const override {
    return str(path_, ": sample ", index,
               field < 0 ? "" : str(", ", fields_[static_cast<size_t>(field)].name));
  }
  std::vector<std::string> paths() const override {
    if (graph_->path.empty()) return {};
    return {std::filesystem::absolute(graph_->path + "/graph.json").lexically_normal().string()};
  }
  std::string source() const override { return path_ + " edges " + type().name; }
  std::vector<bool> used_sources() const override { return used_; }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    return {{"edges", str(pairs_.size(), " of ", type().count)}};
  }

  void read(int64_t index, const ReadContext& context, Sample& out) const override {
    const graph::DrawContext draws{context.seed, context.epoch, static_cast<uint64_t>(index)};
    std::vector<NodePair> chosen;
    const Permutation order(pairs_.size(), context.seed, stream_of("graph edges"), context.epoch);
    const auto end =
        std::min<int64_t>(static_cast<int64_t>(pairs_.size()), (index + 1) * per_sample_);
    for (int64_t i = index * per_sample_; i < end; ++i) {
      const auto at = static_cast<uint64_t>(i);
      chosen.push_back(pairs_[options_.shuffle ? order(at) : at]);
    }
    const std::vector<NodePair> candidates = with_negatives(chosen, draws);
    out.resize(fields_.size());
    size_t at = 0;
    if (options_.hops.empty()) {
      put_whole(out, at);
      put_pairs(out, at, candidates, {});
    } else {
      put_block(out, at, candidates, draws);
    }
    out[at].reset(DType::kI64, fields_[at].shape);
    for (int64_t i = 0; i < per_sample_; ++i)
      out[at].data<int64_t>()[i] =
          i < static_cast<int64_t>(chosen.size()) ? options_.negatives : kNoPair;
  }

 private:
  const graph::EdgeType& type() const { return graph_->edges[type_]; }
  bool joins_types() const { return type().from != type().to; }

  void choose_type() {
    if (options_.edges.empty() && graph_->edges.size() != 1)
      fail(ErrorCode::kConfig,
           "graph_edges: the graph has edges of several types: name one "
           "(`edges`)");
    type_ = options_.edges.empty() ? 0 : graph_->edge_type(options_.edges[0]);
    if (joins_types() && !options_.hops.empty())
      fail(ErrorCode::kConfig, "graph_edges: hops: edges '", type().name,
           "' join nodes of two types; without hops a sample has the whole graph");
    nodes_ = type().sources + (joins_types() ? type().targets : 0);
  }

  /// The share that an edge belongs to. Both directions of a pair belong to one.
  size_t share_of(int64_t u, int64_t v) const {
    const auto low = static_cast<uint64_t>(joins_types() ? u : std::min(u, v)),
               high = static_cast<uint64_t>(joins_types() ? v : std::max(u, v));
    const uint64_t bits = mix64(mix64(low ^ mix64(options_.split_seed)) ^ high);
    double point = Random::to_double(bits);
    double sum = 0;
    for (const auto& [name, share] : options_.split) sum += share;
    point *= std::max(sum, 1.0);
    for (size_t i = 0; i < options_.split.size(); ++i)
      if ((point -= options_.split[i].second) < 0) return i;
    return options_.split.size();
  }

  /// The pairs in use, and the edges along which messages go: those of the first share.
  void split_edges() {
    size_t wanted = 0;
    if (!options_.split.empty()) {
      while (wanted < options_.split.size() && options_.split[wanted].first != options_.part)
        ++wanted;
      if (wanted == options_.split.size())
        fail(ErrorCode::kConfig, "graph_edges: part: '", options_.part,
             "' is not a share of `split`");
    } else if (!options_.part.empty()) {
      fail(ErrorCode::kConfig, "graph_edges: part: '", options_.part, "' needs `split`");
    }
    std::vector<NodePair> kept;
    std::vector<float> weights;
    used_.resize(static_cast<size_t>(type().count));
    for (int64_t u = 0; u < type().sources; ++u) {
      const graph::EdgeType::Row row = type().row(u);
      for (int64_t e = row.begin; e < row.end; ++e) {
        const int64_t v = type().neighbor(e);
        const size_t share = options_.split.empty() ? 0 : share_of(u, v);
        if (share == wanted) {
          pairs_.emplace_back(u, v);
          used_[static_cast<size_t>(e)] = true;
        }
        if (share != 0) continue;
        kept.emplace_back(u, v);
        if (type().weighted) weights.push_back(type().weight(e));
      }
    }
    if (pairs_.empty()) fail(ErrorCode::kData, path_, ": there are no edges '", type().name, "'");
    per_sample_ = options_.pairs;
    auto seen = std::make_shared<graph::Graph>(*graph_);
    if (!options_.split.empty())
      seen->edges[type_] =
          graph::make_edges(*graph_, type().name, type().from, type().to, kept, std::move(weights));
    seen_ = seen;
    sampler_.emplace(type().targets, options_.by_degree ? &degrees() : nullptr);
  }

  /// Edges that begin at the nodes that negatives are drawn from.
  const graph::EdgeType& degrees() const {
    if (!joins_types()) return type();
    if (type().reverse >= 0) return graph_->edges[static_cast<size_t>(type().reverse)];
    fail(ErrorCode::kConfig, "graph_edges: by_degree: edges '", type().name,
         "' need a `reverse` in the graph");
  }

  Field& add_field(std::string name, DType dtype, Dims shape) {
    Field field;
    field.name = std::move(name);
    field.dtype = dtype;
    field.shape = std::move(shape);
    return fields_.emplace_back(std::move(field));
  }

  void choose_fields() {
    const graph::NodeType& nodes = graph_->nodes[type().from];
    if (!joins_types())
      for (const graph::Feature& each : nodes.features)
        if (options_.all_features ? is_float(each.dtype)
                                  : std::find(options_.features.begin(), options_.features.end(),
                                              each.name) != options_.features.end())
          features_.push_back(&each);
    for (const std::string& name : options_.features) nodes.feature(name);
    const int64_t candidates = per_sample_ * (options_.negatives + 1);
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (nodes_ > kMost || candidates > kMost || 2 * seen().count > kMost)
      fail(ErrorCode::kConfig, "graph_edges: the graph is too large for one sample");
    if (options_.hops.empty()) {
      for (const graph::Feature* feature : features_) {
        Dims shape = {nodes.count};
        shape.insert(shape.end(), feature->shape.begin(), feature->shape.end());
        add_field(feature->name, feature->dtype, shape);
      }
      const int64_t count = joins_types() ? 2 * seen().count : seen().count;
      add_field("sources", DType::kI32, {count});
      add_field("targets", DType::kI32, {count});
    } else {
      int64_t frontier = std::min(nodes_, per_sample_ * 2 + candidates), most = frontier + 1;
      roots_ = frontier;
      const auto varies = [&](Field& field, int64_t longest, int64_t fill) {
        field.max_length = graph::size_class(longest);
        field.fill = fill;
      };
      std::vector<int64_t> most_edges;
      for (const auto& [name, count] : options_.hops) {
        const size_t at = graph_->edges_from(name, type().from);
        if (graph_->edges[at].to != type().from)
          fail(ErrorCode::kConfig, "graph_edges: hops: edges '", name, "' lead to other nodes");
        hops_.push_back({at, {count, options_.weighted, options_.replace}});
        most_edges.push_back(count < 0 ? graph_->edges[at].count
                                       : checked_multiply(frontier, count));
        frontier = std::min(most_edges.back(), nodes_);
        most += frontier;
      }
      most = std::min(most, roots_ + 1 + nodes_);
      varies(add_field("nodes", DType::kI64, {-1}), most, 0);
      for (const graph::Feature* feature : features_) {
        Dims shape = {-1};
        shape.insert(shape.end(), feature->shape.begin(), feature->shape.end());
        varies(add_field(feature->name, feature->dtype, shape), most, 0);
      }
      for (size_t h = 0; h < hops_.size(); ++h)
        for (const char* end : {"sources", "targets"})
          varies(add_field(str("hop", h + 1, "_", end), DType::kI32, {-1}), most_edges[h], roots_);
    }
    add_field("pair_sources", DType::kI32, {candidates});
    add_field("pair_targets", DType::kI32, {candidates});
    Field& label = add_field(options_.label_field, DType::kI64, {per_sample_});
    label.class_count = options_.negatives + 1;
  }

  const graph::EdgeType& seen() const { return seen_->edges[type_]; }

  /// For each edge its negatives, then itself. A negative is not the source and, if other nodes are
  /// found, not an edge.
  std::vector<NodePair> with_negatives(const std::vector<NodePair>& pairs,
                                       const graph::DrawContext& context) const {
    const PhiloxKey key = graph::draw_key(context, kNegativeHop, type().name);
    std::vector<NodePair> out;
    std::vector<int64_t> drawn(static_cast<size_t>(kNegativeTries));
    for (size_t i = 0; i < pairs.size(); ++i) {
      const auto [u, v] = pairs[i];
      for (int64_t k = 0; k < options_.negatives; ++k) {
        sampler_->draw(key, static_cast<int64_t>(i) * options_.negatives + k, drawn);
        const auto fits = [&, source = u](int64_t node) {
          return (joins_types() || node != source) && !type().connects(source, node);
        };
        const auto found = std::find_if(drawn.begin(), drawn.end(), fits);
        out.emplace_back(u, found == drawn.end() ? drawn.back() : *found);
      }
      out.emplace_back(u, v);
    }
    return out;
  }

  void put_whole(Sample& out, size_t& at) const {
    for (const graph::Feature* feature : features_) {
      out[at].reset(feature->dtype, fields_[at].shape);
      std::copy_n(feature->values.data, out[at].bytes(), out[at].raw());
      ++at;
    }
    Value &sources = out[at], &targets = out[at + 1];
    sources.reset(DType::kI32, fields_[at].shape);
    targets.reset(DType::kI32, fields_[at].shape);
    at += 2;
    const auto offset = static_cast<int32_t>(joins_types() ? type().sources : 0);
    int64_t place = 0;
    const auto add = [&](int32_t target, int32_t source) {
      if (place >= sources.size()) fail(ErrorCode::kData, path_, ": the graph is damaged");
      sources.data<int32_t>()[place] = source;
      targets.data<int32_t>()[place++] = target;
    };
    for (int64_t u = 0; u < seen().sources; ++u) {
      const graph::EdgeType::Row row = seen().row(u);
      for (int64_t e = row.begin; e < row.end; ++e) {
        const auto v = static_cast<int32_t>(seen().neighbor(e)) + offset;
        add(static_cast<int32_t>(u), v);
        if (joins_types()) add(v, static_cast<int32_t>(u));
      }
    }
  }

  /// `numbers`: places of nodes in a block; empty: their numbers in the graph.
  void put_pairs(Sample& out, size_t& at, const std::vector<NodePair>& pairs,
                 const std::map<int64_t, int32_t>& numbers) const {
    Value &sources = out[at], &targets = out[at + 1];
    sources.reset(DType::kI32, fields_[at].shape);
    targets.reset(DType::kI32, fields_[at].shape);
    at += 2;
    const int64_t offset = joins_types() ? type().sources : 0;
    for (int64_t i = 0; i < sources.size(); ++i) {
      const bool real = i < static_cast<int64_t>(pairs.size());
      const NodePair pair = real ? pairs[static_cast<size_t>(i)] : NodePair{0, 0};
      const auto place = [&](int64_t node, int64_t shift) {
        if (numbers.empty()) return static_cast<int32_t>(node + shift);
        return real ? numbers.at(node) : static_cast<int32_t>(roots_);
      };
      sources.data<int32_t>()[i] = place(pair.first, 0);
      targets.data<int32_t>()[i] = place(pair.second, offset);
    }
  }

  void put_block(Sample& out, size_t& at, const std::vector<NodePair>& pairs,
                 const graph::DrawContext& context) const {
    std::map<int64_t, int32_t> numbers;
    std::vector<int64_t> roots;
    for (const NodePair& pair : pairs)
      for (const int64_t node : {pair.first, pair.second})
        if (numbers.try_emplace(node, static_cast<int32_t>(roots.size())).second)
          roots.push_back(node);
    const graph::Block block = graph::sample_block(*seen_, roots, roots_, hops_, context);
    const auto put = [&](DType dtype, const auto& values) {
      Value& value = out[at++];
      const int64_t size[] = {static_cast<int64_t>(values.size())};
      value.reset(dtype, size);
      std::copy_n(reinterpret_cast<const std::byte*>(values.data()), value.bytes(), value.raw());
    };
    put(DType::kI64, block.nodes);
    for (const graph::Feature* feature : features_) {
      Dims shape = fields_[at].shape;
      shape[0] = static_cast<int64_t>(block.nodes.size());
      Value& value = out[at++];
      value.reset(feature->dtype, shape);
      const uint64_t bytes = feature->row_bytes();
      for (size_t i = 0; i < block.nodes.size(); ++i) {
        const bool spare = i >= roots.size() && i <= static_cast<size_t>(roots_);
        if (spare)
          std::fill_n(value.raw() + i * bytes, bytes, std::byte{0});
        else
          std::copy_n(feature->row(block.nodes[i]), bytes, value.raw() + i * bytes);
      }
    }
    for (const graph::Block::Hop& hop : block.hops) {
      put(DType::kI32, hop.sources);
      put(DType::kI32, hop.targets);
    }
    put_pairs(out, at, pairs, numbers);
  }

  GraphOptions options_;
  graph::GraphPtr graph_, seen_;  ///< all edges, and those along which messages go
  std::string path_;
  size_t type_ = 0;
  int64_t nodes_ = 0, per_sample_ = 0, roots_ = 0;
  std::vector<NodePair> pairs_;
  std::vector<bool> used_;
  std::optional<graph::NegativeSampler> sampler_;
  std::vector<const graph::Feature*> features_;
  std::vector<graph::HopChoice> hops_;
  std::vector<Field> fields_;
};

}  // namespace

DatasetPtr make_graph_edges(const GraphOptions& options) {
  return std::make_shared<GraphPairs>(options);
}

}  // namespace paddle::data
