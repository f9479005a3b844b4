#include "data/datasets/graph_dataset.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "data/options.h"
#include "formats/csv.h"

namespace paddle::data {
namespace {

constexpr int64_t kNoLabel = -100;
constexpr int64_t kMaxEdges = std::numeric_limits<int32_t>::max();

/// The graph, the nodes in use, features and labels, for both kinds of samples.
class GraphDataset : public Dataset {
 public:
  GraphDataset(std::string kind, const GraphOptions& options)
      : kind_(std::move(kind)),
        graph_(options.path.empty() ? graph::draw_graph(options.drawn)
                                    : graph::open_graph(options.path)),
        path_(options.path) {
    if (options.path.empty()) path_ = "drawn graph";
    type_ = type_of_nodes(options.nodes);
    if (nodes().count == 0) fail(ErrorCode::kData, path_, ": there are no nodes");
    choose_features(options);
    choose_labels(options);
    choose_nodes(options);
  }

  const std::vector<Field>& fields() const override { return fields_; }
  std::vector<std::string> paths() const override {
    if (graph_->path.empty()) return {};
    return {std::filesystem::absolute(graph_->path + "/graph.json").lexically_normal().string()};
  }
  std::string source() const override { return path_; }
  std::vector<bool> used_sources() const override {
    std::vector<bool> used(static_cast<size_t>(nodes().count));
    for (const int64_t node : used_) used[static_cast<size_t>(node)] = true;
    return used;
  }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    return {{"nodes", str(used_.size(), " of ", nodes().count)}};
  }

 protected:
  const graph::NodeType& nodes() const { return graph_->nodes[type_]; }

  Field& add_field(std::string name, DType dtype, Dims shape) {
    Field field;
    field.name = std::move(name);
    field.dtype = dtype;
    field.shape = std::move(shape);
    for (const Field& other : fields_)
      if (other.name == field.name)
        fail(ErrorCode::kConfig, kind_, ": two fields are named '", field.name,
             "'; leave one out of `features`, or set `label_field`");
    return fields_.emplace_back(std::move(field));
  }
  /// The field of a feature for nodes whose number is `count` (-1: varies).
  Field& add_feature(const graph::Feature& feature, int64_t count) {
    Dims shape = {count};
    shape.insert(shape.end(), feature.shape.begin(), feature.shape.end());
    return add_field(feature.name, feature.dtype, std::move(shape));
  }
  Field& add_label(const std::string& name, int64_t count) {
    Field& field = add_field(name, DType::kI64, {count});
    field.class_count = classes_;
    field.classes = label_->classes;
    return field;
  }
  int64_t label_of(int64_t node) const {
    if (label_->dtype == DType::kI32)
      return label_->values.as<int32_t>()[static_cast<size_t>(node)];
    const int64_t value = label_->values.as<int64_t>()[static_cast<size_t>(node)];
    return value < 0 ? kNoLabel : value;
  }

  std::string kind_;
  graph::GraphPtr graph_;
  std::string path_;
  size_t type_ = 0;
  std::vector<const graph::Feature*> features_;
  const graph::Feature* label_ = nullptr;
  int64_t classes_ = 0;
  std::vector<int64_t> used_;  ///< nodes
  std::vector<Field> fields_;

 private:
  size_t type_of_nodes(const std::string& name) const {
    if (!name.empty()) return graph_->node_type(name);
    if (graph_->nodes.size() == 1) return 0;
    std::vector<std::string> names;
    for (const graph::NodeType& each : graph_->nodes) names.push_back(each.name);
    fail(ErrorCode::kConfig, kind_, ": the graph has nodes of several types: name one of ",
         join(names, ", "), " (`nodes`)");
  }

  void choose_features(const GraphOptions& options) {
    if (options.all_features) {
      for (const graph::Feature& each : nodes().features)
        if (is_float(each.dtype)) features_.push_back(&each);
    }
    for (const std::string& name : options.features) features_.push_back(&nodes().feature(name));
  }

  void choose_labels(const GraphOptions& options) {
    if (options.label.empty()) return;
    label_ = &nodes().feature(options.label);
    const bool fits =
        label_->shape.empty() && (label_->dtype == DType::kI64 || label_->dtype == DType::kI32);
    if (!fits)
      fail(ErrorCode::kConfig, kind_, ": the label '", options.label, "' is ", text(label_->dtype),
           str(label_->shape), ", expected one integer or category of each node");
    classes_ = static_cast<int64_t>(label_->classes.size());
    if (classes_ > 0) return;
    for (int64_t node = 0; node < nodes().count; ++node)
      classes_ = std::max(classes_, label_of(node) + 1);
  }

  /// Whether a node's value of a feature is the one that a text names.
  std::vector<bool> matches(const std::string& name, const std::string& value) const {
    const graph::Feature& feature = nodes().feature(name);
    const bool integers =
        feature.shape.empty() && (feature.dtype == DType::kI64 || feature.dtype == DType::kI32);
    if (!integers)
      fail(ErrorCode::kConfig, kind_, ": where: '", name,
           "' is not an integer or category of each node");
    int64_t wanted = 0;
    if (!feature.classes.empty()) {
      const auto at = std::find(feature.classes.begin(), feature.classes.end(), value);
      if (at == feature.classes.end())
        fail(ErrorCode::kConfig, kind_, ": where: no node has '", value, "' as its '", name, "'",
             did_you_mean(value, feature.classes));
      wanted = at - feature.classes.begin();
    } else if (!formats::parse_integer(value, wanted)) {
      fail(ErrorCode::kConfig, kind_, ": where: '", value, "' is not an integer, as '", name,
           "' is");
    }
    std::vector<bool> out(static_cast<size_t>(nodes().count));
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = (feature.dtype == DType::kI64 ? feature.values.as<int64_t>()[i]
                                             : feature.values.as<int32_t>()[i]) == wanted;
    return out;
  }

  void choose_nodes(const GraphOptions& options) {
    std::vector<bool> used(static_cast<size_t>(nodes().count), true);
    for (const auto& [name, value] : options.where) {
      const std::vector<bool> fits = matches(name, value);
      for (size_t i = 0; i < used.size(); ++i) used[i] = used[i] && fits[i];
    }
    for (size_t i = 0; i < used.size(); ++i)
      if (used[i]) used_.push_back(static_cast<int64_t>(i));
    DatasetOptions share;
    share.split = options.split;
    share.part = options.part;
    const Part part = resolve_part(share, static_cast<int64_t>(used_.size()), false);
    if (part.permuted) {
      const std::vector<int64_t> order = permutation(static_cast<int64_t>(used_.size()),
                                                     options.split_seed, stream_of("graph split"));
      std::vector<int64_t> chosen;
      for (int64_t i = part.begin; i < part.end; ++i)
        chosen.push_back(used_[static_cast<size_t>(order[static_cast<size_t>(i)])]);
      std::sort(chosen.begin(), chosen.end());
      used_ = std::move(chosen);
    }
    if (used_.empty()) fail(ErrorCode::kData, path_, ": `where` and `split` leave no nodes");
  }
};

/// Types of edges between the nodes of one type, by which they find their neighbors.
size_t edges_within(const graph::Graph& graph, const std::string& name, size_t nodes,
                    const std::string& kind) {
  const size_t at = graph.edges_from(name, nodes);
  if (graph.edges[at].to != nodes)
    fail(ErrorCode::kConfig, kind, ": edges '", name, "' lead from '", graph.nodes[nodes].name,
         "' to '", graph.nodes[graph.edges[at].to].name,
         "'; samples of nodes of several types are not supported yet");
  return at;
}

class WholeGraph final : public GraphDataset {
 public:
  explicit WholeGraph(const GraphOptions& options) : GraphDataset("graph_whole", options) {
    std::vector<std::string> names = options.edges;
    if (names.empty() && graph_->edges.size() == 1) names = {graph_->edges[0].name};
    if (names.empty())
      fail(ErrorCode::kConfig, kind_,
           ": the graph has edges of several types: name some (`edges`)");
    int64_t count = 0;
    bool weighted = options.weighted;
    for (const std::string& name : names) {
      edges_.push_back(edges_within(*graph_, name, type_, kind_));
      const graph::EdgeType& type = graph_->edges[edges_.back()];
      count += type.count;
      if (weighted && !type.weighted)
        fail(ErrorCode::kConfig, kind_, ": weighted: edges '", name, "' have no weights");
    }
    if (count > kMaxEdges || nodes().count > kMaxEdges)
      fail(ErrorCode::kData, path_, ": ", nodes().count, " nodes and ", count,
           " edges are too many for one sample; use graph_neighbors");
    for (const graph::Feature* feature : features_) add_feature(*feature, nodes().count);
    add_field("sources", DType::kI32, {count});
    add_field("targets", DType::kI32, {count});
    if (weighted) add_field("weights", DType::kF32, {count});
    weighted_ = weighted;
    if (edges_.size() > 1) add_field("relations", DType::kI64, {count});
    if (label_) add_label(options.label_field, nodes().count);
    is_used_ = used_sources();
  }
  int64_t size() const override { return 1; }
  std::string location(int64_t, int64_t field, int64_t element) const override {
    return str(path_, field < 0 ? "" : str(": ", fields_[static_cast<size_t>(field)].name),
               element < 0 ? "" : str(", element ", element));
  }

  void read(int64_t, const ReadContext&, Sample& out) const override {
    out.resize(fields_.size());
    size_t at = 0;
    for (const graph::Feature* feature : features_) {
      Value& value = out[at];
      value.reset(feature->dtype, fields_[at++].shape);
      std::copy_n(feature->values.data, value.bytes(), value.raw());
    }
    const size_t sources = at++, targets = at++, weights = weighted_ ? at++ : 0,
                 relations = edges_.size() > 1 ? at++ : 0;
    for (size_t f = sources; f < at; ++f) out[f].reset(fields_[f].dtype, fields_[f].shape);
    int64_t place = 0;
    for (size_t t = 0; t < edges_.size(); ++t) {
      const graph::EdgeType& type = graph_->edges[edges_[t]];
      for (int64_t node = 0; node < type.sources; ++node) {
        const graph::EdgeType::Row row = type.row(node);
        for (int64_t e = row.begin; e < row.end && place < fields_[sources].shape[0];
             ++e, ++place) {
          out[sources].data<int32_t>()[place] = static_cast<int32_t>(type.neighbor(e));
          out[targets].data<int32_t>()[place] = static_cast<int32_t>(node);
          if (weights) out[weights].data<float>()[place] = type.weight(e);
          if (relations) out[relations].data<int64_t>()[place] = static_cast<int64_t>(t);
        }
      }
    }
    if (place != fields_[sources].shape[0])
      fail(ErrorCode::kData, path_, ": has ", place, " edges, expected ", fields_[sources].shape[0],
           "; the graph is damaged, build it again");
    if (!label_) return;
    out[at].reset(DType::kI64, fields_[at].shape);
    for (int64_t node = 0; node < nodes().count; ++node)
      out[at].data<int64_t>()[node] =
          is_used_[static_cast<size_t>(node)] ? label_of(node) : kNoLabel;
  }

 private:
  std::vector<size_t> edges_;
  std::vector<bool> is_used_;
  bool weighted_ = false;
};

class GraphBlocks final : public GraphDataset {
 public:
  explicit GraphBlocks(const GraphOptions& options)
      : GraphDataset("graph_neighbors", options), roots_(options.roots), shuffle_(options.shuffle) {
    if (options.hops.empty()) fail(ErrorCode::kConfig, kind_, ": hops: at least one is needed");
    int64_t frontier = roots_, most = roots_ + 1;
    std::vector<int64_t> most_edges;
    for (const auto& [name, count] : options.hops) {
      const size_t type = edges_within(*graph_, name, type_, kind_);
      hops_.push_back({type, {count, options.weighted, options.replace}});
      if (options.replace && count < 0)
        fail(ErrorCode::kConfig, kind_, ": replace: hops need a number of neighbors, not -1");
      if (options.weighted && !graph_->edges[type].weighted)
        fail(ErrorCode::kConfig, kind_, ": weighted: edges '", name, "' have no weights");
      // Of distinct nodes each finds its neighbors once.
      const int64_t all = graph_->edges[type].count;
      const int64_t drawn = checked_multiply(frontier, std::max<int64_t>(count, 0));
      most_edges.push_back(count < 0 || (!options.replace && drawn > all) ? all : drawn);
      frontier = std::min(most_edges.back(), nodes().count);
      most += frontier;
    }
    most = std::min(most, roots_ + 1 + nodes().count);
    if (most > kMaxEdges || *std::max_element(most_edges.begin(), most_edges.end()) > kMaxEdges)
      fail(ErrorCode::kConfig, kind_,
           ": a block may have 2^31 nodes or edges; lower roots or hops");
    const auto varies = [](Field& field, int64_t longest, int64_t fill) {
      field.max_length = graph::size_class(longest);
      field.fill = fill;
    };
    varies(add_field("nodes", DType::kI64, {-1}), most, 0);
    for (const graph::Feature* feature : features_) varies(add_feature(*feature, -1), most, 0);
    for (size_t h = 0; h < hops_.size(); ++h) {
      const std::string name = str("hop", h + 1, "_");
      varies(add_field(name + "sources", DType::kI32, {-1}), most_edges[h], roots_);
      varies(add_field(name + "targets", DType::kI32, {-1}), most_edges[h], roots_);
      if (graph_->edges[hops_[h].edges].weighted)
        varies(add_field(name + "weights", DType::kF32, {-1}), most_edges[h], 0);
    }
    if (label_) add_label(options.label_field, roots_);
  }

  int64_t size() const override {
    return (static_cast<int64_t>(used_.size()) + roots_ - 1) / roots_;
  }
  std::string location(int64_t index, int64_t field, int64_t element) const override {
    return str(path_, ": block ", index,
               field < 0 ? "" : str(", ", fields_[static_cast<size_t>(field)].name),
               element < 0 ? "" : str(", element ", element));
  }

  void read(int64_t index, const ReadContext& context, Sample& out) const override {
    static const uint64_t kStream = stream_of("graph roots");
    const auto count = static_cast<int64_t>(used_.size());
    const Permutation order(static_cast<uint64_t>(count), context.seed, kStream, context.epoch);
    std::vector<int64_t> roots;
    for (int64_t i = index * roots_; i < std::min(count, (index + 1) * roots_); ++i)
      roots.push_back(used_[shuffle_ ? order(static_cast<uint64_t>(i)) : static_cast<uint64_t>(i)]);
    const graph::Block block = graph::sample_block(
        *graph_, roots, roots_, hops_, {context.seed, context.epoch, static_cast<uint64_t>(index)});
    out.resize(fields_.size());
    size_t at = 0;
    put(out[at++], DType::kI64, block.nodes);
    for (const graph::Feature* feature : features_) {
      Dims shape = fields_[at].shape;
      shape[0] = static_cast<int64_t>(block.nodes.size());
      Value& value = out[at++];
      value.reset(feature->dtype, shape);
      const uint64_t bytes = feature->row_bytes();
      for (size_t i = 0; i < block.nodes.size(); ++i) {
        std::byte* const to = value.raw() + i * bytes;
        // Spare nodes have zeros.
        if (i >= roots.size() && i <= static_cast<size_t>(roots_))
          std::fill_n(to, bytes, std::byte{0});
        else
          std::copy_n(feature->row(block.nodes[i]), bytes, to);
      }
    }
    for (size_t h = 0; h < hops_.size(); ++h) {
      put(out[at++], DType::kI32, block.hops[h].sources);
      put(out[at++], DType::kI32, block.hops[h].targets);
      if (graph_->edges[hops_[h].edges].weighted)
        put(out[at++], DType::kF32, block.hops[h].weights);
    }
    if (!label_) return;
    out[at].reset(DType::kI64, fields_[at].shape);
    for (int64_t i = 0; i < roots_; ++i)
      out[at].data<int64_t>()[i] = i < static_cast<int64_t>(roots.size())
                                       ? label_of(roots[static_cast<size_t>(i)])
                                       : kNoLabel;
  }

 private:
  template <class T>
  static void put(Value& value, DType dtype, const std::vector<T>& numbers) {
    const int64_t size[] = {static_cast<int64_t>(numbers.size())};
    value.reset(dtype, size);
    std::copy(numbers.begin(), numbers.end(), value.data<T>());
  }

  std::vector<graph::HopChoice> hops_;
  int64_t roots_;
  bool shuffle_;
};

}  // namespace

DatasetPtr make_whole_graph(const GraphOptions& options) {
  return std::make_shared<WholeGraph>(options);
}

DatasetPtr make_graph_blocks(const GraphOptions& options) {
  return std::make_shared<GraphBlocks>(options);
}

}  // namespace paddle::data
