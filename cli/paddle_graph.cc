// paddle-graph: builds graphs of files of nodes and edges, describes and checks them, and prints
// the neighbors and walks that training draws.

#include <nlohmann/json.hpp>

#include <filesystem>

#include "base/byte_size.h"
#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "formats/csv.h"
#include "graph/build.h"
#include "graph/drawn.h"
#include "graph/sampling.h"
#include "sections/sections.h"

namespace {

using namespace paddle;
using nlohmann::ordered_json;

struct BuildArguments {
  std::string input, output, nodes, memory;
  bool undirected = false, weighted = false, overwrite = false, dry_run = false;
};

struct DrawArguments {
  std::vector<std::string> nodes;  ///< ids
  std::string type;
  graph::DrawContext context;
  bool weighted = false, json = false;
};

ordered_json describe(const graph::Graph& graph) {
  ordered_json out;
  out["nodes"] = ordered_json::array();
  out["edges"] = ordered_json::array();
  for (const graph::NodeType& type : graph.nodes) {
    ordered_json node = {{"name", type.name}, {"count", type.count}};
    node["ids"] = type.ids == graph::IdKind::kText ? "text" : "integer";
    node["features"] = ordered_json::array();
    for (const graph::Feature& feature : type.features) {
      ordered_json each = {{"name", feature.name},
                           {"dtype", std::string(text(feature.dtype))},
                           {"shape", feature.shape}};
      if (!feature.classes.empty()) each["classes"] = feature.classes.size();
      node["features"].push_back(std::move(each));
    }
    out["nodes"].push_back(std::move(node));
  }
  for (const graph::EdgeType& type : graph.edges) {
    int64_t largest = 0, without = 0;
    for (int64_t i = 0; i < type.sources; ++i) {
      largest = std::max(largest, type.row(i).size());
      without += type.row(i).size() == 0;
    }
    ordered_json edge = {{"name", type.name},
                         {"from", graph.nodes[type.from].name},
                         {"to", graph.nodes[type.to].name},
                         {"count", type.count},
                         {"weighted", type.weighted},
                         {"largest_degree", largest},
                         {"without_edges", without}};
    if (type.reverse >= 0) edge["reverse"] = graph.edges[static_cast<size_t>(type.reverse)].name;
    out["edges"].push_back(std::move(edge));
  }
  return out;
}

void print_description(const ordered_json& graph) {
  for (const ordered_json& node : graph["nodes"]) {
    cli::print_line(str("nodes ", node["name"].get<std::string>(), ": ",
                        node["count"].get<int64_t>(), ", ids are ",
                        node["ids"] == "text" ? "texts" : "integers"));
    for (const ordered_json& feature : node["features"])
      cli::print_line(
          str("  ", feature["name"].get<std::string>(), ": ", feature["dtype"].get<std::string>(),
              str(feature["shape"].get<std::vector<int64_t>>()),
              feature.contains("classes") ? str(", ", feature["classes"].get<int64_t>(), " classes")
                                          : ""));
  }
  for (const ordered_json& edge : graph["edges"])
    cli::print_line(
        str("edges ", edge["name"].get<std::string>(), ": ", edge["count"].get<int64_t>(), " from ",
            edge["from"].get<std::string>(), " to ", edge["to"].get<std::string>(),
            edge["weighted"].get<bool>() ? ", weighted" : "",
            edge.contains("reverse") ? ", reverse of " + edge["reverse"].get<std::string>() : "",
            ", at most ", edge["largest_degree"].get<int64_t>(), " of a node, ",
            edge["without_edges"].get<int64_t>(), " nodes without"));
}

int build(const BuildArguments& a, bool json) {
  const bool is_config =
      a.input.ends_with(".yaml") || a.input.ends_with(".yml") || a.input.ends_with(".json");
  if (is_config && (!a.nodes.empty() || a.undirected || a.weighted))
    fail(ErrorCode::kUsage,
         "--nodes, --undirected and --weighted are for a list of edges; the config has keys for "
         "them");
  register_sections();
  graph::GraphDescription description =
      is_config ? graph::read_graph_config(a.input)
                : graph::describe_edge_list(a.input, a.nodes, a.undirected, a.weighted);
  if (!a.memory.empty()) {
    const auto memory = parse_byte_size(a.memory);
    if (!memory)
      fail(ErrorCode::kUsage, "--memory: '", a.memory, "' is not an amount of memory, such as 2GB");
    description.memory = *memory;
  }
  cli::check_output(a.output, a.overwrite);
  if (is_directory(a.output) && !list_directory(a.output).empty() &&
      !file_exists(a.output + "/graph.json"))
    fail(ErrorCode::kUsage, a.output, ": is a folder with other files, which stay");
  if (a.dry_run) {
    for (const graph::NodeDescription& nodes : description.nodes)
      for (const std::string& pattern : nodes.files) graph::files_of(pattern);
    for (const graph::EdgeDescription& edges : description.edges)
      for (const std::string& pattern : edges.files) graph::files_of(pattern);
    cli::print_line(str("would write ", a.output));
    return 0;
  }
  // A graph that is replaced stays until the new one is complete.
  const std::string fresh = is_directory(a.output) ? a.output + ".next" : a.output;
  if (fresh != a.output) std::filesystem::remove_all(fresh);
  const graph::BuildReport report = graph::build_graph(description, fresh);
  if (fresh != a.output) {
    std::filesystem::remove_all(a.output);
    std::filesystem::rename(fresh, a.output);
  }
  ordered_json out = describe(*graph::open_graph(a.output));
  if (!json) {
    print_description(out);
    if (report.added_nodes > 0)
      cli::print_line(str(report.added_nodes, " nodes are only in edges"));
    if (report.duplicate_edges > 0)
      cli::print_line(str(report.duplicate_edges, " duplicate edges were merged"));
    if (report.dropped_loops > 0)
      cli::print_line(str(report.dropped_loops, " self-loops were removed"));
    return 0;
  }
  out["path"] = a.output;
  out["added_nodes"] = report.added_nodes;
  out["merged_edges"] = report.duplicate_edges;
  out["dropped_loops"] = report.dropped_loops;
  cli::print(out.dump() + "\n");
  return 0;
}

/// The type of the nodes that a command begins with.
size_t first_type(const graph::Graph& graph, const DrawArguments& a, const std::string& edges) {
  if (!a.type.empty()) return graph.node_type(a.type);
  const graph::EdgeType& type = graph.edges[graph.edge_type(edges)];
  return type.from;
}

std::vector<int64_t> find_nodes(const graph::NodeType& type, const std::vector<std::string>& ids) {
  std::vector<int64_t> out;
  for (const std::string& id : ids) {
    const auto node = type.find(std::string_view(id));
    if (!node) fail(ErrorCode::kData, "nodes '", type.name, "' have none with the id '", id, "'");
    out.push_back(*node);
  }
  return out;
}

ordered_json id_json(const graph::NodeType& type, int64_t node) {
  const std::string id = type.id_of(node);
  if (type.ids == graph::IdKind::kText) return id;
  return std::stoull(id);
}

/// "cites:10,click:5" as types and numbers.
std::vector<std::pair<std::string, int64_t>> parse_hops(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, int64_t>> out;
  for (const std::string& text : texts)
    for (const std::string& hop : split(text, ',')) {
      const size_t colon = hop.rfind(':');
      int64_t count = 0;
      if (colon == hop.npos || !formats::parse_integer(hop.substr(colon + 1), count) || count < -1)
        fail(ErrorCode::kUsage, "--hops: '", hop,
             "' is not EDGES:COUNT, such as cites:10 (-1: all neighbors)");
      out.emplace_back(hop.substr(0, colon), count);
    }
  return out;
}

int sample(const std::string& path, const DrawArguments& a,
           const std::vector<std::string>& hop_texts, bool replace) {
  const graph::GraphPtr graph = graph::open_graph(path);
  const auto hops = parse_hops(hop_texts);
  size_t at = first_type(*graph, a, hops.at(0).first);
  std::vector<int64_t> frontier = find_nodes(graph->nodes[at], a.nodes);
  ordered_json out = {{"seed", a.context.seed},
                      {"epoch", a.context.epoch},
                      {"batch", a.context.batch},
                      {"hops", ordered_json::array()}};
  for (size_t h = 0; h < hops.size(); ++h) {
    const graph::EdgeType& type = graph->edges[graph->edges_from(hops[h].first, at)];
    const PhiloxKey key = graph::draw_key(a.context, h, type.name);
    const graph::NodeType &from = graph->nodes[type.from], &to = graph->nodes[type.to];
    ordered_json hop = {{"edges", type.name}, {"nodes", ordered_json::array()}};
    std::vector<int64_t> next, chosen;
    for (const int64_t node : frontier) {
      chosen.clear();
      graph::choose_edges(type, node, {hops[h].second, a.weighted, replace}, key, chosen);
      ordered_json neighbors = ordered_json::array();
      for (const int64_t edge : chosen) {
        neighbors.push_back(id_json(to, type.neighbor(edge)));
        next.push_back(type.neighbor(edge));
      }
      if (!a.json)
        cli::print_line(str("hop ", h + 1, ", ", type.name, " of ", from.id_of(node), ":", [&] {
          std::string list;
          for (const int64_t edge : chosen) list += " " + to.id_of(type.neighbor(edge));
          return list;
        }()));
      hop["nodes"].push_back({{"node", id_json(from, node)}, {"neighbors", std::move(neighbors)}});
    }
    out["hops"].push_back(std::move(hop));
    // Each node once, in the order in which it is met.
    frontier.clear();
    std::vector<int64_t> sorted;
    for (const int64_t node : next) {
      const auto place = std::lower_bound(sorted.begin(), sorted.end(), node);
      if (place != sorted.end() && *place == node) continue;
      sorted.insert(place, node);
      frontier.push_back(node);
    }
    at = type.to;
  }
  if (a.json) cli::print(out.dump() + "\n");
  return 0;
}

int walks(const std::string& path, const DrawArguments& a, const std::string& edges, int64_t times,
          graph::WalkOptions options) {
  const graph::GraphPtr graph = graph::open_graph(path);
  const std::vector<std::string> names = split(edges, '-');
  const size_t first = first_type(*graph, a, names.at(0));
  size_t at = first;
  std::vector<size_t> types = {first};
  for (const std::string& name : names) {
    options.path.push_back(graph->edges_from(name, at));
    at = graph->edges[options.path.back()].to;
    types.push_back(at);
  }
  if (at != first && options.length > static_cast<int64_t>(names.size()))
    fail(ErrorCode::kUsage, "--path: '", edges, "' ends at '", graph->nodes[at].name,
         "' and begins at '", graph->nodes[first].name, "', so it cannot be repeated; --length is ",
         options.length);
  const bool biased = options.p != 1 || options.q != 1;
  if (biased && (names.size() != 1 || at != first))
    fail(ErrorCode::kUsage, "--p and --q need one type of edges between nodes of one type");
  options.weighted = a.weighted;
  ordered_json out = {{"seed", a.context.seed}, {"walks", ordered_json::array()}};
  for (const int64_t node : find_nodes(graph->nodes[first], a.nodes))
    for (int64_t n = 0; n < times; ++n) {
      ordered_json ids = ordered_json::array();
      std::string line;
      size_t turn = 0;
      for (const int64_t each : graph::walk(*graph, node, n, options, a.context)) {
        if (each < 0) break;
        const graph::NodeType& type = graph->nodes[types[turn]];
        turn = turn + 1 == types.size() ? 1 : turn + 1;
        ids.push_back(id_json(type, each));
        line += (line.empty() ? "" : " ") + type.id_of(each);
      }
      if (!a.json) cli::print_line(line);
      out["walks"].push_back(std::move(ids));
    }
  if (a.json) cli::print(out.dump() + "\n");
  return 0;
}

int run_graph(int argc, char** argv) {
  cli::App app{"Builds, describes and checks graphs, and prints the draws of training."};
  app.require_subcommand(1);
  bool json = false;

  BuildArguments building;
  auto* build_command =
      app.add_subcommand("build", "make a graph of files of nodes and edges, in bounded memory");
  build_command
      ->add_option("INPUT", building.input,
                   "a config with the section graph, or a list of edges (CSV, TSV, words, NPZ)")
      ->required();
  build_command->add_option("-o,--output", building.output, "folder for the graph")->required();
  build_command->add_option("--nodes", building.nodes,
                            "with a list of edges: CSV with ids and features of the nodes");
  build_command->add_flag("--undirected", building.undirected,
                          "with a list of edges: each leads in both directions");
  build_command->add_flag("--weighted", building.weighted,
                          "with a list of edges: the third column is a weight");
  build_command->add_option("--memory", building.memory,
                            "memory for sorting: 512MB, 4GB (default: graph.store.memory, 1 GiB)");
  build_command->add_flag("--dry-run", building.dry_run, "check the config, write nothing");
  build_command->add_flag("--json", json, "print one JSON object");
  cli::add_overwrite(*build_command, building.overwrite);

  std::string path;
  auto* info_command = app.add_subcommand("info", "types, numbers, features and degrees");
  auto* check_command = app.add_subcommand(
      "check", "read all files: checksums, and whether ids, edges and tables fit together");
  auto* sample_command =
      app.add_subcommand("sample", "the neighbors of nodes, as training draws them");
  auto* walk_command = app.add_subcommand("walk", "random walks from nodes");
  for (auto* command : {info_command, check_command, sample_command, walk_command})
    command->add_option("GRAPH", path, "folder that `paddle graph build` wrote")->required();
  for (auto* command : {info_command, check_command})
    command->add_flag("--json", json, "print one JSON object");

  DrawArguments drawing;
  for (auto* command : {sample_command, walk_command}) {
    command->add_option("--node", drawing.nodes, "ids of the nodes to begin with: 17, or 1,2")
        ->delimiter(',')
        ->required();
    command->add_option("--type", drawing.type,
                        "type of these nodes (default: where the first edges begin)");
    command->add_option("--seed", drawing.context.seed, "the run's seed (default: 0)");
    command->add_option("--epoch", drawing.context.epoch, "epoch (default: 0)");
    command->add_flag("--weighted", drawing.weighted, "in proportion to the weights of edges");
    command->add_flag("--json", drawing.json, "print one JSON object");
  }
  std::vector<std::string> hops;
  bool replace = false;
  sample_command
      ->add_option("--hops", hops, "edges and neighbors of each hop: cites:10,cites:5 (-1: all)")
      ->required();
  sample_command->add_option("--batch", drawing.context.batch,
                             "number of the sample in its epoch (default: 0)");
  sample_command->add_flag("--replace", replace, "independent draws, with repetitions");
  std::string edges;
  int64_t times = 1;
  graph::WalkOptions walking;
  walking.length = 10;
  walk_command
      ->add_option("--path", edges, "types of edges that are taken in turn: click-clicked_by")
      ->required();
  walk_command->add_option("--length", walking.length, "edges of a walk (default: 10)")
      ->check(cli::in_range(1, 100'000));
  walk_command->add_option("--times", times, "walks from each node (default: 1)")
      ->check(cli::in_range(1, 10'000'000));
  walk_command
      ->add_option("--p", walking.p, "node2vec: 1/p is the weight of going back (default: 1)")
      ->check(cli::in_range(1e-6, 1e6));
  walk_command
      ->add_option("--q", walking.q,
                   "node2vec: 1/q is the weight of nodes that are not neighbors of the last one "
                   "(default: 1)")
      ->check(cli::in_range(1e-6, 1e6));
  walk_command
      ->add_option("--restart", walking.restart,
                   "probability of going back to the first node in place of a step (default: 0)")
      ->check(cli::in_range(0.0, 1.0));

  graph::DrawnGraph drawn;
  std::string folder;
  bool overwrite = false;
  auto* draw_command =
      app.add_subcommand("draw", "write a synthetic citation graph as CSV, to try things out");
  draw_command->add_option("-o,--output", folder, "folder for nodes.csv, edges.csv and graph.yaml")
      ->required();
  draw_command->add_option("--nodes", drawn.nodes, "nodes (default: 3000)");
  draw_command->add_option("--classes", drawn.classes, "communities (default: 7)");
  draw_command->add_option("--degree", drawn.degree, "mean number of neighbors (default: 6)");
  draw_command->add_option("--width", drawn.width, "numbers of a node (default: 32)");
  draw_command->add_option("--seed", drawn.seed, "seed (default: 0)");
  cli::add_overwrite(*draw_command, overwrite);

  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  if (build_command->parsed()) return build(building, json);
  if (sample_command->parsed()) return sample(path, drawing, hops, replace);
  if (walk_command->parsed()) return walks(path, drawing, edges, times, walking);
  if (draw_command->parsed()) {
    cli::check_output(folder, overwrite);
    graph::write_drawn_graph(drawn, folder);
    cli::print_line(str("wrote ", folder, "/nodes.csv, edges.csv and graph.yaml"));
    return 0;
  }
  const graph::GraphPtr graph = graph::open_graph(path);
  if (check_command->parsed()) {
    graph::check_graph(*graph);
    cli::print(json ? ordered_json({{"graph", path}, {"sound", true}}).dump() + "\n"
                    : str(path, ": all files are as they were written\n"));
    return 0;
  }
  const ordered_json described = describe(*graph);
  if (json)
    cli::print(described.dump() + "\n");
  else
    print_description(described);
  return 0;
}

}  // namespace

namespace paddle::cli {

int graph_command(int argc, char** argv) {
  return run_tool([&] { return run_graph(argc, argv); });
}

}  // namespace paddle::cli
