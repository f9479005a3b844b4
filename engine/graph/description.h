#pragma once
// How files become a graph: what the section `graph` of a config says, and what `build_graph`
// reads.

#include <optional>
#include <string>
#include <vector>

#include "config/document.h"
#include "config/schema.h"
#include "graph/records.h"

namespace paddle::graph {

struct FeatureDescription {
  std::string name = {};
  /// Of the node files: names, runs ("x0..x15") or patterns ("x*"). Empty: the column with the
  /// feature's name.
  std::vector<std::string> columns = {};
  DType dtype = DType::kF32;
  bool category = false;  ///< texts become int64 numbers of their sorted distinct values
  std::string file = {};  ///< .npy with a row for each record of the node files
};

struct NodeDescription {
  std::string name = {};
  std::vector<std::string> files = {};  ///< patterns; empty: the ids that edges have
  std::string id = {};                  ///< the column; "": the first one
  std::optional<bool> text_ids = {};    ///< not stated: as the first id looks
  char delimiter = '\0';
  Header header = Header::kAuto;
  bool infers_features = false;  ///< all columns but the id, with the types of their values
  std::vector<FeatureDescription> features = {};
  bool adds_unknown = false;  ///< ids that only edges have are nodes, too; else an error
};

struct EdgeDescription {
  std::string name = {}, from = {}, to = {};
  std::vector<std::string> files = {};
  std::string source = {}, target = {}, weight = {};  ///< columns; "": the first, second, third
  bool weighted = false;
  std::string reverse = {};  ///< name of the type in the other direction; "": none
  bool undirected = false;   ///< each edge leads in both directions
  bool merge = false;        ///< edges between the same nodes become one, weights are added
  bool drops_loops = false;  ///< edges from a node to itself are left out
  char delimiter = '\0';
  Header header = Header::kAuto;
};

struct GraphDescription {
  std::vector<NodeDescription> nodes = {};
  std::vector<EdgeDescription> edges = {};
  uint64_t memory = uint64_t{1} << 30;
};

/// Registers the section `graph` (config/sections.h).
void register_section();
config::Schema graph_schema();
/// Of the section of a config file. kConfig with the place for what does not fit together.
GraphDescription read_graph_config(const std::string& path);
/// Of a list of edges alone: nodes `node`, edges `edge`.
GraphDescription describe_edge_list(const std::string& edges, const std::string& nodes,
                                    bool undirected, bool weighted);

}  // namespace paddle::graph
