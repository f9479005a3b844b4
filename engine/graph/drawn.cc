#include "graph/drawn.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/files.h"
#include "graph/format.h"
#include "tensor/random.h"

namespace paddle::graph {
namespace {

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

/// Draws from a list of nodes in proportion to their weights.
class NodePicker {
 public:
  NodePicker(std::vector<int64_t> nodes, const std::vector<float>& weights)
      : nodes_(std::move(nodes)) {
    std::vector<float> own;
    for (const int64_t node : nodes_) own.push_back(weights[static_cast<size_t>(node)]);
    cells_ = alias_table(own);
  }
  bool empty() const { return nodes_.empty(); }
  int64_t pick(RandomSequence& random) const {
    const uint64_t at = random.below(nodes_.size());
    const AliasCell& cell = cells_[at];
    return nodes_[random.uniform() < static_cast<double>(cell.keep) ? at : cell.other];
  }

 private:
  std::vector<int64_t> nodes_;
  std::vector<AliasCell> cells_;
};

Random numbers_of(const DrawnGraph& o, const char* what) {
  return Random(o.seed, stream_of(std::string("drawn graph ") + what));
}

/// Edges in both directions, each once.
Pairs draw_edges(const DrawnGraph& o, const std::vector<int64_t>& classes) {
  std::vector<float> weights;
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(o.classes));
  std::vector<int64_t> all(static_cast<size_t>(o.nodes));
  std::iota(all.begin(), all.end(), int64_t{0});
  const Random degrees = numbers_of(o, "degrees");
  for (int64_t i = 0; i < o.nodes; ++i) {
    // Degrees have the density d^-2.5 from 1 to 100 times the smallest.
    const double u = degrees.uniform(static_cast<uint64_t>(i));
    weights.push_back(static_cast<float>(std::min(std::pow(1 - u, -1 / 1.5), 100.0)));
    members[static_cast<size_t>(classes[static_cast<size_t>(i)])].push_back(i);
  }
  const NodePicker any(all, weights);
  std::vector<NodePicker> of_class;
  for (auto& list : members) of_class.emplace_back(std::move(list), weights);
  RandomSequence random(numbers_of(o, "edges"));
  Pairs out;
  for (int64_t e = 0; e < o.nodes * o.degree / 2; ++e) {
    const int64_t u = any.pick(random);
    const auto own = static_cast<size_t>(classes[static_cast<size_t>(u)]);
    const int64_t v = random.chance(o.within) ? of_class[own].pick(random) : any.pick(random);
    if (u == v) continue;
    out.emplace_back(u, v);
    out.emplace_back(v, u);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void check_drawn(const DrawnGraph& o) {
  const auto check = [](bool fits, const auto&... parts) {
    if (!fits) fail(ErrorCode::kConfig, "drawn graph: ", parts...);
  };
  check(o.classes >= 2 && o.classes <= 1000, "classes is ", o.classes, ", expected 2 to 1000");
  check(o.nodes >= 2 * o.classes && o.nodes <= 10'000'000, "nodes is ", o.nodes, ", expected ",
        2 * o.classes, " to 10000000");
  check(o.degree >= 1 && o.degree <= 1000, "degree is ", o.degree, ", expected 1 to 1000");
  check(o.width >= 1 && o.width <= 4096, "width is ", o.width, ", expected 1 to 4096");
}

}  // namespace

EdgeType make_edges(const Graph& graph, std::string name, size_t from, size_t to, Pairs edges,
                    std::vector<float> weights) {
  EdgeType type;
  type.name = std::move(name);
  type.from = from, type.to = to;
  type.sources = graph.nodes[from].count;
  type.targets = graph.nodes[to].count;
  type.weighted = !weights.empty();
  std::vector<size_t> order(edges.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return edges[a] < edges[b]; });
  MemorySink offsets, neighbors, weight, alias;
  RowWriter writer(type, {&offsets, &neighbors, &weight, &alias});
  for (const size_t e : order)
    writer.add(edges[e].first, edges[e].second, type.weighted ? weights[e] : 1.0f);
  type.count = writer.finish();
  type.offsets = std::move(offsets).column();
  type.neighbors = std::move(neighbors).column();
  type.weights = std::move(weight).column();
  type.alias = std::move(alias).column();
  return type;
}

GraphPtr draw_graph(const DrawnGraph& o) {
  check_drawn(o);
  auto graph = std::make_shared<Graph>();
  NodeType papers;
  papers.name = "paper";
  papers.count = o.nodes;
  const auto n = static_cast<size_t>(o.nodes);
  const auto width = static_cast<size_t>(o.width);
  std::vector<int64_t> classes(n), split(n);
  const Random parts = numbers_of(o, "split");
  for (size_t i = 0; i < n; ++i) {
    classes[i] = static_cast<int64_t>(i) % o.classes;
    const double u = parts.uniform(i);
    split[i] = u < 0.7 ? 0 : u < 0.8 ? 1 : 2;  // test, train, valid: their order as texts
  }
  std::vector<float> means(static_cast<size_t>(o.classes) * width), x(n * width);
  numbers_of(o, "means").fill_normal(std::span<float>(means));
  numbers_of(o, "features").fill_normal(std::span<float>(x));
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < width; ++k)
      x[i * width + k] +=
          static_cast<float>(o.signal) * means[static_cast<size_t>(classes[i]) * width + k];
  const Pairs edges = draw_edges(o, classes);
  std::vector<std::string> names;
  for (int64_t c = 0; c < o.classes; ++c)
    names.push_back(str("topic", c < 10 && o.classes > 10 ? "0" : "", c));
  papers.features.push_back(
      {.name = "x", .dtype = DType::kF32, .shape = {o.width}, .values = make_column(std::move(x))});
  papers.features.push_back({.name = "class",
                             .dtype = DType::kI64,
                             .classes = names,
                             .values = make_column(std::move(classes))});
  papers.features.push_back({.name = "split",
                             .dtype = DType::kI64,
                             .classes = {"test", "train", "valid"},
                             .values = make_column(std::move(split))});
  graph->nodes.push_back(std::move(papers));
  graph->edges.push_back(make_edges(*graph, "cites", 0, 0, edges));
  return graph;
}

void write_drawn_graph(const DrawnGraph& options, const std::string& folder) {
  const GraphPtr graph = draw_graph(options);
  ensure_directory(folder);
  const NodeType& papers = graph->nodes[0];
  const Feature &x = papers.features[0], &label = papers.features[1], &split = papers.features[2];
  AtomicFile nodes(folder + "/nodes.csv");
  std::string line = "id,class,split";
  for (int64_t k = 0; k < x.width(); ++k) line += str(",x", k);
  for (int64_t i = 0; i < papers.count; ++i) {
    nodes.write(line + "\n");
    line = str(
        i, ",",
        label.classes[static_cast<size_t>(label.values.as<int64_t>()[static_cast<size_t>(i)])], ",",
        split.classes[static_cast<size_t>(split.values.as<int64_t>()[static_cast<size_t>(i)])]);
    for (int64_t k = 0; k < x.width(); ++k)
      line += str(",", x.values.as<float>()[static_cast<size_t>(i * x.width() + k)]);
  }
  nodes.write(line + "\n");
  nodes.commit();
  AtomicFile edges(folder + "/edges.csv");
  edges.write("source,target\n");
  const EdgeType& cites = graph->edges[0];
  for (int64_t i = 0; i < papers.count; ++i) {
    const EdgeType::Row row = cites.row(i);
    for (int64_t e = row.begin; e < row.end; ++e)
      if (const int64_t j = cites.neighbor(e); i < j) edges.write(str(i, ",", j, "\n"));
  }
  edges.commit();
  write_file_atomically(folder + "/graph.yaml",
                        str("graph:\n"
                            "  nodes:\n"
                            "    paper:\n"
                            "      files: nodes.csv\n"
                            "      features:\n"
                            "        x: {columns: x0..x",
                            x.width() - 1,
                            "}\n"
                            "        class: {kind: category}\n"
                            "        split: {kind: category}\n"
                            "  edges:\n"
                            "    cites: {from: paper, to: paper, files: edges.csv, undirected: "
                            "true}\n"));
}

}  // namespace paddle::graph
