#include "graph/description.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/byte_size.h"
#include "base/files.h"
#include "config/overrides.h"
#include "config/sections.h"

namespace paddle::graph {

using config::Node;
using config::Schema;
using config::Section;
using config::Spec;

namespace {

Spec files_spec(const char* doc) { return Spec::list(Spec::path()).or_else(Spec::path()).doc(doc); }

void add_line_keys(Schema& s) {
  s.add("delimiter", Spec::text().doc("between cells; default: a comma for .csv, else a tab or "
                                      "blanks, as the first line has"));
  s.add("header", Spec::boolean().doc("whether the first line names the columns; default: if it "
                                      "has texts where the second has numbers"));
}

Schema feature_keys() {
  Schema s;
  s.add("columns", Spec::list(Spec::text())
                       .or_else(Spec::text())
                       .doc("columns of the node files: names, runs (x0..x15) or patterns (x*); "
                            "default: the one with the feature's name"));
  s.add("dtype", Spec::word({"float32", "float64", "int32", "int64"})
                     .fallback("float32")
                     .doc("type of the values"));
  s.add("kind", Spec::word({"number", "category"})
                    .fallback("number")
                    .doc("category: texts become numbers in the order of the sorted values"));
  s.add("file", Spec::path().doc("NPY file with a row for each record of the node files, instead "
                                 "of columns"));
  return s;
}

Schema node_keys() {
  Schema s;
  s.add("files", files_spec("files of nodes (CSV, TSV), also with * and ?; without them the nodes "
                            "are those that edges have"));
  s.add("id", Spec::text().doc("column with the id; default: the first"));
  s.add("ids", Spec::word({"auto", "integer", "text"})
                   .fallback("auto")
                   .doc("form of the ids; auto: as the first one looks"));
  s.add("features", Spec::map_of(Spec::map(feature_keys()))
                        .doc("values of nodes by name; default: every column, with the type of its "
                             "values"));
  s.add("unknown", Spec::word({"error", "add"})
                       .fallback("error")
                       .doc("ids that edges have and node files lack"));
  add_line_keys(s);
  return s;
}

Schema edge_keys() {
  Schema s;
  s.add("from", Spec::text().required().doc("type of the nodes where the edges begin"));
  s.add("to", Spec::text().required().doc("type of the nodes where they end"));
  s.add("files", files_spec("files of edges (CSV, TSV, words, NPZ), also with * and ?").required());
  s.add("source", Spec::text().doc("column, or array, of the beginning; default: the first"));
  s.add("target", Spec::text().doc("column, or array, of the end; default: the second"));
  s.add("weight", Spec::boolean()
                      .or_else(Spec::text())
                      .fallback("false")
                      .doc("whether the third column, or the one named weight, is a weight; or the "
                           "name of the column"));
  s.add("reverse", Spec::text().doc("name of a type with the same edges in the other direction"));
  s.add("undirected",
        Spec::boolean().fallback("false").doc("whether each edge leads in both directions"));
  s.add("duplicates", Spec::word({"keep", "merge"})
                          .fallback("keep")
                          .doc("edges between the same nodes; merge adds their weights"));
  s.add("loops", Spec::word({"keep", "drop"}).fallback("keep").doc("edges from a node to itself"));
  add_line_keys(s);
  return s;
}

Schema store_keys() {
  Schema s;
  s.add("memory", Spec::text().fallback("1 GiB").doc("memory that building may use"));
  return s;
}

/// Names become parts of fields and of options such as `--hops cites:10`.
void check_name(const config::Entry& entry) {
  const std::string& name = entry.key.text;
  const auto is_ordinary = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (!name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), is_ordinary))
    return;
  throw Error(ErrorCode::kConfig,
              str("'", printable(name), "': a name has letters, digits and _ , at most 64"),
              entry.key.location());
}

std::vector<std::string> paths_at(const Section& s, const char* key) {
  std::vector<std::string> out;
  if (!s.has(key)) return out;
  const Node& node = s.at(key);
  if (!node.is_sequence()) return {config::resolve_path(node)};
  for (const Node& item : node.items) out.push_back(config::resolve_path(item));
  return out;
}

char delimiter_of(const Section& s) {
  if (!s.has("delimiter")) return '\0';
  const std::string& text = s.text("delimiter");
  if (text == "\\t" || text == "tab") return '\t';
  if (text.size() != 1)
    throw Error(ErrorCode::kConfig, "delimiter: expected one character", s.location("delimiter"));
  return text[0];
}

Header header_of(const Section& s) {
  if (!s.has("header")) return Header::kAuto;
  return s.boolean("header") ? Header::kYes : Header::kNo;
}

NodeDescription read_nodes(const config::Entry& entry) {
  check_name(entry);
  const Section s(entry.value);
  NodeDescription out;
  out.name = entry.key.text;
  out.files = paths_at(s, "files");
  if (s.has("id")) out.id = s.text("id");
  if (s.text("ids") != "auto") out.text_ids = s.text("ids") == "text";
  out.adds_unknown = s.text("unknown") == "add";
  out.delimiter = delimiter_of(s);
  out.header = header_of(s);
  out.infers_features = !s.has("features");
  if (!s.has("features")) return out;
  for (const config::Entry& each : s.at("features").entries) {
    check_name(each);
    const Section f(each.value);
    FeatureDescription feature;
    feature.name = each.key.text;
    if (f.has("columns")) feature.columns = f.texts("columns");
    feature.dtype = *parse_dtype(f.text("dtype"));
    feature.category = f.text("kind") == "category";
    if (f.has("file")) feature.file = config::resolve_path(f.at("file"));
    out.features.push_back(std::move(feature));
  }
  if (out.files.empty() && !out.features.empty())
    throw Error(ErrorCode::kConfig, str("features of '", out.name, "' need `files` of nodes"),
                s.location("features"));
  return out;
}

EdgeDescription read_edges_section(const config::Entry& entry, const GraphDescription& graph) {
  check_name(entry);
  const Section s(entry.value);
  EdgeDescription out;
  out.name = entry.key.text;
  const auto nodes = [&](const char* key) {
    const std::string& name = s.text(key);
    std::vector<std::string> names;
    for (const NodeDescription& each : graph.nodes) names.push_back(each.name);
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw Error(ErrorCode::kConfig,
                  str("'", name, "' are not nodes of the graph", did_you_mean(name, names)),
                  s.location(key));
    return name;
  };
  out.from = nodes("from");
  out.to = nodes("to");
  out.files = paths_at(s, "files");
  if (s.has("source")) out.source = s.text("source");
  if (s.has("target")) out.target = s.text("target");
  if (const auto flag = s.at("weight").try_bool()) {
    out.weighted = *flag;
  } else {
    out.weighted = true;
    out.weight = s.text("weight");
  }
  if (s.has("reverse")) out.reverse = s.text("reverse");
  out.undirected = s.boolean("undirected");
  out.merge = s.text("duplicates") == "merge";
  out.drops_loops = s.text("loops") == "drop";
  out.delimiter = delimiter_of(s);
  out.header = header_of(s);
  if (out.undirected && out.from != out.to)
    throw Error(ErrorCode::kConfig, "undirected: the edges lead to other nodes; use `reverse`",
                s.location("undirected"));
  if (out.undirected && !out.reverse.empty())
    throw Error(ErrorCode::kConfig, "reverse: undirected edges are their own reverse",
                s.location("reverse"));
  return out;
}

}  // namespace

Schema graph_schema() {
  Schema s;
  s.add("nodes", Spec::map_of(Spec::map(node_keys())).required().doc("types of nodes by name"));
  s.add("edges", Spec::map_of(Spec::map(edge_keys())).required().doc("types of edges by name"));
  s.add("store", Spec::map(store_keys()).optional().doc("how the graph is built"));
  return s;
}

void register_section() {
  config::register_section({.name = "graph",
                            .owner = "paddle-graph",
                            .doc = "files of nodes and edges, of which `paddle graph build` makes "
                                   "a graph",
                            .schema = graph_schema});
}

GraphDescription read_graph_config(const std::string& path) {
  config::Diagnostics diagnostics;
  Node document = config::read_extended(path, diagnostics);
  diagnostics.raise();
  Node* const section = document.find("graph");
  if (!section || !section->is_map())
    throw Error(ErrorCode::kConfig, "the section `graph` is missing", {path, 0, 0});
  graph_schema().resolve(*section, "graph", diagnostics);
  diagnostics.raise();
  const Section s(*section);
  GraphDescription out;
  for (const config::Entry& each : s.at("nodes").entries) out.nodes.push_back(read_nodes(each));
  for (const config::Entry& each : s.at("edges").entries)
    out.edges.push_back(read_edges_section(each, out));
  std::set<std::string> names;
  for (const EdgeDescription& each : out.edges)
    for (const std::string* name : {&each.name, &each.reverse})
      if (!name->empty() && !names.insert(*name).second)
        throw Error(ErrorCode::kConfig, str("two types of edges are named '", *name, "'"),
                    section->find("edges")->location());
  if (s.has("store")) {
    const Section store = s.section("store");
    const auto memory = parse_byte_size(store.text("memory"));
    if (!memory)
      throw Error(ErrorCode::kConfig,
                  str("'", store.text("memory"), "' is not an amount of memory, such as 2 GiB"),
                  store.location("memory"));
    out.memory = *memory;
  }
  return out;
}

GraphDescription describe_edge_list(const std::string& edges, const std::string& nodes,
                                    bool undirected, bool weighted) {
  GraphDescription out;
  NodeDescription node{.name = "node"};
  if (!nodes.empty()) {
    node.files = {nodes};
    node.infers_features = true;
  }
  out.nodes.push_back(std::move(node));
  EdgeDescription edge{.name = "edge", .from = "node", .to = "node", .files = {edges}};
  edge.undirected = undirected;
  edge.weighted = weighted;
  out.edges.push_back(std::move(edge));
  return out;
}

}  // namespace paddle::graph
