#pragma once
// Building a stored graph from files of nodes and edges, in bounded memory: ids and edges are
// sorted through temporary files in the output's folder.

#include <functional>
#include <string>

#include "graph/description.h"
#include "graph/graph.h"

namespace paddle::graph {

struct BuildReport {
  int64_t duplicate_edges = 0;  ///< that were merged
  int64_t dropped_loops = 0;
  int64_t added_nodes = 0;  ///< that only edges have
};

/// Writes the folder `output`, which must not exist, as a whole or not at all. `progress` gets a
/// line for each thing that begins.
BuildReport build_graph(const GraphDescription& description, const std::string& output,
                        const std::function<void(const std::string&)>& progress = {});

/// The end of an edge, or a node, as a file names it.
struct GivenId {
  uint64_t number = 0;
  std::string_view text = {};
};
using VisitEdge = std::function<void(const GivenId& source, const GivenId& target, float weight,
                                     const SourceLocation& place)>;
/// Calls `visit` with the edges of all files of a description. Ids of nodes whose flag is set are
/// texts. kData with the place for a line that is not an edge.
void read_edges(const EdgeDescription& description, bool text_source, bool text_target,
                const VisitEdge& visit);

/// Records of the nodes of a description, one after the other.
class NodeReader {
 public:
  explicit NodeReader(const NodeDescription& description);
  /// Names of the columns; those of an archive are its arrays.
  const std::vector<std::string>& columns() const { return columns_; }
  size_t id_column() const { return id_; }
  /// The cells of the next record, in the order of the columns.
  bool next(std::vector<std::string_view>& cells);
  int64_t record() const { return record_; }  ///< of the last one, over all files
  SourceLocation location() const;

 private:
  bool open_next();
  const NodeDescription& description_;
  std::vector<std::string> files_;
  size_t file_ = 0;
  std::unique_ptr<LineReader> lines_;
  std::vector<std::string> columns_;
  size_t id_ = 0;
  int64_t record_ = -1;
};

/// The columns that the patterns of a feature name, in order.
std::vector<size_t> columns_of(const FeatureDescription& feature,
                               const std::vector<std::string>& columns, const std::string& nodes);

/// Whether the ids of a type are texts, from its description or the first id that there is.
bool has_text_ids(const GraphDescription& description, const NodeDescription& nodes);
/// The features that the columns of the files make, where none are declared.
std::vector<FeatureDescription> inferred_features(const NodeDescription& nodes);

}  // namespace paddle::graph
