// Datasets of graphs: graph_whole, graph_neighbors, graph_edges.

#include "data/config/dataset_config.h"
#include "data/dataset_kind.h"
#include "data/datasets/graph_dataset.h"

namespace paddle::data {

using config::Schema;
using config::Section;
using config::Spec;

namespace {

Schema drawn_keys() {
  const graph::DrawnGraph d;
  Schema s;
  s.add("nodes", Spec::integer().at_least(4).fallback(str(d.nodes)).doc("number of nodes"));
  s.add("classes", Spec::integer().at_least(2).fallback(str(d.classes)).doc("communities"));
  s.add("degree",
        Spec::integer().at_least(1).fallback(str(d.degree)).doc("mean number of neighbors"));
  s.add("within", Spec::real()
                      .at_least(0)
                      .at_most(1)
                      .fallback(str(d.within))
                      .doc("share of edges within a community"));
  s.add("width", Spec::integer().at_least(1).fallback(str(d.width)).doc("numbers of a node"));
  s.add("signal", Spec::real()
                      .at_least(0)
                      .fallback(str(d.signal))
                      .doc("how much the numbers say about the class"));
  s.add("seed", Spec::integer().at_least(0).fallback("0").doc("of the graph"));
  return s;
}

/// Keys of the graph and of its shares.
void add_store_keys(Schema& s, const char* shares) {
  s.add("graph", Spec::text().doc("folder that `paddle graph build` wrote"));
  s.add("drawn", Spec::map(drawn_keys())
                     .optional()
                     .doc("instead of a stored graph: one that is drawn, like those of citations"));
  s.one_of({"graph", "drawn"});
  s.add("features",
        Spec::list(Spec::text()).doc("features that become fields; default: all of floats"));
  s.add("label_field", Spec::text().fallback("label").doc("name of the field with the class"));
  s.add("split", Spec::map_of(Spec::real().above(0).at_most(1)).doc(shares));
  s.add("part", Spec::text().doc("which share is used"));
  s.add("split_seed", Spec::integer().at_least(0).fallback("0").doc("of the split"));
  s.add("weighted", Spec::boolean().fallback("false").doc(
                        "neighbors in proportion to the weights of edges; with graph_whole: a "
                        "field `weights`"));
}

void add_hop_keys(Schema& s, Spec hops, const char* shuffled) {
  s.add("hops", std::move(hops));
  s.add("replace", Spec::boolean().fallback("false").doc("neighbors may be drawn repeatedly"));
  s.add("shuffle", Spec::boolean().fallback("true").doc(shuffled));
}

Spec hops_spec() {
  return Spec::list(Spec::map_of(Spec::integer().at_least(-1).at_most(1'000'000)));
}

void add_graph_keys(Schema& s) {
  add_store_keys(s, "named shares of the nodes");
  s.add("nodes", Spec::text().doc("type of the nodes; default: the only one"));
  s.add("label", Spec::text().doc("feature with the class of each node"));
  s.add("where", Spec::map_of(Spec::text())
                     .fallback("{}")
                     .doc("the nodes in use: value by name of a feature, such as {split: train}"));
}

Schema whole_graph_keys() {
  Schema s;
  add_graph_keys(s);
  s.add(
      "edges",
      Spec::list(Spec::text()).or_else(Spec::text()).doc("types of edges; default: the only one"));
  return s;
}

Schema graph_block_keys() {
  Schema s;
  add_graph_keys(s);
  add_hop_keys(
      s,
      hops_spec().required().doc("edges and number of neighbors of each hop: [{cites: 10}, "
                                 "{cites: 5}]; -1: all"),
      "whether the nodes are grouped again in each epoch");
  s.add("roots", Spec::integer().at_least(1).at_most(1 << 20).fallback("512").doc(
                     "nodes of a block, which is one sample"));
  return s;
}

Schema graph_edge_keys() {
  Schema s;
  add_store_keys(s, "named shares of the edges; messages take those of the first one");
  s.add("edge", Spec::text().doc("type of the edges; default: the only one"));
  s.add("negatives", Spec::integer().at_least(1).at_most(100'000).fallback("4").doc(
                         "pairs without an edge for each edge"));
  s.add("by_degree", Spec::boolean().fallback("true").doc(
                         "draw negatives in proportion to degree^0.75; else uniformly"));
  s.add("pairs",
        Spec::integer().at_least(1).at_most(1 << 20).fallback("512").doc("edges of a sample"));
  add_hop_keys(s,
               hops_spec().fallback("[]").doc("as of graph_neighbors, around both ends; without "
                                              "hops a sample has the whole graph"),
               "whether the edges are grouped again in each epoch");
  return s;
}

GraphOptions read_graph_options(const Section& s) {
  GraphOptions o;
  o.path = path_of(s, "graph");
  if (s.has("drawn")) {
    const Section d = s.section("drawn");
    o.drawn = {.nodes = d.integer("nodes"),
               .classes = d.integer("classes"),
               .degree = d.integer("degree"),
               .within = d.real("within"),
               .width = d.integer("width"),
               .signal = d.real("signal"),
               .seed = static_cast<uint64_t>(d.integer("seed"))};
  }
  o.all_features = !s.has("features");
  if (s.has("features")) o.features = s.texts("features");
  o.label_field = s.text("label_field");
  if (s.has("split"))
    for (const config::Entry& e : s.at("split").entries)
      o.split.push_back({e.key.text, e.value.as_double()});
  if (s.has("part")) o.part = s.text("part");
  o.split_seed = static_cast<uint64_t>(s.integer("split_seed"));
  o.weighted = s.boolean("weighted");
  return o;
}

void read_nodes_in_use(const Section& s, GraphOptions& o) {
  if (s.has("nodes")) o.nodes = s.text("nodes");
  if (s.has("label")) o.label = s.text("label");
  o.where = text_map(s, "where", false);
}

void read_hops(const Section& s, GraphOptions& o) {
  for (const config::Node& hop : s.at("hops").items) {
    if (hop.entries.size() != 1)
      throw Error(ErrorCode::kConfig, "hops: each hop has one type of edges: {cites: 10}",
                  hop.location());
    o.hops.emplace_back(hop.entries[0].key.text, hop.entries[0].value.as_int());
  }
  o.replace = s.boolean("replace");
  o.shuffle = s.boolean("shuffle");
}

DatasetSource read_whole_graph(const Section& s) {
  GraphOptions o = read_graph_options(s);
  read_nodes_in_use(s, o);
  if (s.has("edges")) o.edges = s.texts("edges");
  return OwnSource{.kind = "graph_whole", .open = [o] { return make_whole_graph(o); }};
}

DatasetSource read_graph_blocks(const Section& s) {
  GraphOptions o = read_graph_options(s);
  read_nodes_in_use(s, o);
  read_hops(s, o);
  o.roots = s.integer("roots");
  return OwnSource{.kind = "graph_neighbors", .open = [o] { return make_graph_blocks(o); }};
}

DatasetSource read_graph_edges(const Section& s) {
  GraphOptions o = read_graph_options(s);
  if (s.has("edge")) o.edges = {s.text("edge")};
  read_hops(s, o);
  o.negatives = s.integer("negatives");
  o.by_degree = s.boolean("by_degree");
  o.pairs = s.integer("pairs");
  return OwnSource{.kind = "graph_edges", .open = [o] { return make_graph_edges(o); }};
}

}  // namespace

DatasetKind graph_whole_kind() {
  return {.name = "graph_whole",
          .keys = whole_graph_keys,
          .read = read_whole_graph,
          .path_keys = {"graph"},
          .has_parts = false,
          .is_source = false};
}

DatasetKind graph_neighbors_kind() {
  return {.name = "graph_neighbors",
          .keys = graph_block_keys,
          .read = read_graph_blocks,
          .path_keys = {"graph"},
          .has_parts = false,
          .is_source = false};
}

DatasetKind graph_edges_kind() {
  return {.name = "graph_edges",
          .keys = graph_edge_keys,
          .read = read_graph_edges,
          .path_keys = {"graph"},
          .has_parts = false,
          .is_source = false};
}

}  // namespace paddle::data
