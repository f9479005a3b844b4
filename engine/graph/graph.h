#pragma once
// A graph that is stored for training: types of nodes with ids and features, and types of edges as
// compressed rows (CSR) by source. Nodes of a type are numbered from 0 in the order of their ids.
// `open_graph` maps the folder that `paddle graph build` writes, so that several processes share
// its pages and graphs may be larger than memory. docs/design/graphs.md describes the files.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::graph {

/// Packed little-endian values, mapped from a file or in memory.
struct Column {
  std::shared_ptr<const void> owner = {};
  const std::byte* data = nullptr;
  uint64_t bytes = 0;
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data), static_cast<size_t>(bytes / sizeof(T))};
  }
};

/// A value of each node: [nodes, shape].
struct Feature {
  std::string name = {};
  DType dtype = DType::kF32;
  Dims shape = {};                        ///< of one node
  std::vector<std::string> classes = {};  ///< of int64: names of the values, if they have any
  Column values = {};
  int64_t width() const { return element_count(std::span<const int64_t>(shape)); }
  uint64_t row_bytes() const { return static_cast<uint64_t>(width() * item_size(dtype)); }
  const std::byte* row(int64_t node) const {
    return values.data + static_cast<uint64_t>(node) * row_bytes();
  }
};

enum class IdKind {
  kDense,    ///< the ids are the numbers
  kInteger,  ///< unsigned integers of 64 bits
  kText,
};

struct NodeType {
  std::string name = {};
  int64_t count = 0;
  IdKind ids = IdKind::kDense;
  Column id_values = {};  ///< integers: sorted; text: count + 1 offsets into id_text
  Column id_text = {};    ///< sorted bytewise, one after the other
  std::vector<Feature> features = {};

  /// The number of a node; nullopt if there is none with this id.
  std::optional<int64_t> find(std::string_view id) const;
  std::optional<int64_t> find(uint64_t id) const;
  std::string id_of(int64_t node) const;
  /// kConfig with the names that there are.
  const Feature& feature(const std::string& feature) const;
};

/// A cell of an alias table (Walker, 1977; Vose, 1991): edge i of a row is kept with this
/// probability, else edge `other` of the row is taken.
struct AliasCell {
  float keep = 1;
  uint32_t other = 0;
};

struct EdgeType {
  std::string name = {};
  size_t from = 0, to = 0;  ///< types of nodes
  int64_t count = 0;
  int64_t sources = 0, targets = 0;  ///< numbers of nodes of these types
  bool weighted = false;
  int64_t reverse = -1;    ///< the type with the same edges in the other direction; -1: none
  int neighbor_bytes = 4;  ///< of a number of a node: 4 or 8
  Column offsets = {};     ///< uint64 [sources + 1]
  Column neighbors = {};   ///< sorted within a row
  Column weights = {};     ///< float32 by edge
  Column alias = {};       ///< AliasCell by edge

  struct Row {
    int64_t begin = 0, end = 0;  ///< edges
    int64_t size() const { return end - begin; }
  };
  /// The edges of a source. kData, with the name of the type, for offsets that no graph has.
  Row row(int64_t source) const;
  /// The target of an edge. kData if it is not a node.
  int64_t neighbor(int64_t edge) const;
  float weight(int64_t edge) const {
    return weighted ? weights.as<float>()[static_cast<size_t>(edge)] : 1.0f;
  }
  /// Whether an edge leads from `source` to `target`.
  bool connects(int64_t source, int64_t target) const;
};

struct Graph {
  std::string path = {};  ///< of the folder; "" for one in memory
  std::vector<NodeType> nodes = {};
  std::vector<EdgeType> edges = {};

  /// Positions by name. kConfig with the names that there are.
  size_t node_type(const std::string& name) const;
  size_t edge_type(const std::string& name) const;
  /// The type of edges by which nodes of the type `nodes` find their neighbors when `name` is
  /// asked for: the type itself if it begins at them, else its reverse if it ends at them. kConfig
  /// if neither does.
  size_t edges_from(const std::string& name, size_t nodes) const;
};

using GraphPtr = std::shared_ptr<const Graph>;

/// Maps a graph. kData, with the file, for a folder that is none or whose files are cut or too
/// long. What is in the files is checked where it is read, and by `check_graph`.
GraphPtr open_graph(const std::string& path);

/// Reads all files: checksums, order and ranges of ids, offsets, neighbors, weights and alias
/// tables. kData with the first fault and its place.
void check_graph(const Graph& graph);

}  // namespace paddle::graph
