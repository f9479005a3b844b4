#include "graph/graph.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/files.h"
#include "graph/format.h"

namespace paddle::graph {
namespace {

/// The text of an id among those of a type.
std::string_view text_of(const NodeType& type, int64_t node) {
  const auto ends = type.id_values.as<uint64_t>();
  const uint64_t begin = ends[static_cast<size_t>(node)], end = ends[static_cast<size_t>(node) + 1];
  if (begin > end || end > type.id_text.bytes)
    fail(ErrorCode::kData, "nodes '", type.name, "': the text of id ", node,
         " is outside of its file; the graph is damaged, build it again");
  return {reinterpret_cast<const char*>(type.id_text.data) + begin,
          static_cast<size_t>(end - begin)};
}

template <class List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> out;
  for (const auto& each : list) out.push_back(each.name);
  return out;
}

template <class List>
size_t position_of(const List& list, const std::string& name, const char* what) {
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].name == name) return i;
  const std::vector<std::string> names = names_of(list);
  fail(ErrorCode::kConfig, "the graph has no ", what, " '", name, "'", did_you_mean(name, names),
       "; it has ", names.empty() ? "none" : join(names, ", "));
}

/// Maps the columns of a graph and checks their sizes.
class ColumnMap {
 public:
  ColumnMap(std::string folder, const FileEntries& files)
      : folder_(std::move(folder)), files_(files) {}

  Column map(const std::string& name, uint64_t bytes) const {
    const std::string path = folder_ + "/" + name;
    const auto entry = files_.find(name);
    if (entry == files_.end() || entry->second.bytes != bytes)
      fail(ErrorCode::kData, folder_, "/", kManifest, ": '", name, "' must have ", bytes,
           " bytes, the list of files says ",
           entry == files_.end() ? "nothing" : str(entry->second.bytes));
    if (bytes == 0 && !file_exists(path)) fail(ErrorCode::kData, path, ": no such file");
    if (bytes == 0) return {};
    auto file = MappedFile::open(path);
    if (file->size() != bytes)
      fail(ErrorCode::kData, path, ": has ", file->size(), " bytes, expected ", bytes);
    const std::byte* data = file->data();
    return {std::move(file), data, bytes};
  }
  /// A column whose size only the list of files says.
  Column map_any(const std::string& name) const {
    const auto entry = files_.find(name);
    return map(name, entry == files_.end() ? 0 : entry->second.bytes);
  }

 private:
  std::string folder_;
  const FileEntries& files_;
};

uint64_t bytes_of(int64_t count, uint64_t each) {
  return static_cast<uint64_t>(checked_multiply(count, static_cast<int64_t>(each)));
}

[[noreturn]] void damaged(const Graph& graph, const std::string& file, const std::string& what) {
  fail(ErrorCode::kData, graph.path.empty() ? "graph" : graph.path + "/" + file, ": ", what);
}

void check_ids(const Graph& graph, size_t t) {
  const NodeType& type = graph.nodes[t];
  if (type.ids == IdKind::kInteger) {
    const auto ids = type.id_values.as<uint64_t>();
    for (size_t i = 1; i < ids.size(); ++i)
      if (ids[i - 1] >= ids[i])
        damaged(graph, node_file(t, "ids"), str("id ", i, " is not above the one before"));
  }
  if (type.ids != IdKind::kText) return;
  for (int64_t i = 0; i < type.count; ++i)
    if (i > 0 && text_of(type, i - 1) >= text_of(type, i))
      damaged(graph, node_file(t, "ids"), str("id ", i, " is not after the one before"));
}

void check_row(const Graph& graph, size_t t, int64_t source) {
  const EdgeType& type = graph.edges[t];
  const EdgeType::Row row = type.row(source);
  double sum = 0;
  for (int64_t e = row.begin; e < row.end; ++e) {
    const int64_t target = type.neighbor(e);
    if (e > row.begin && type.neighbor(e - 1) > target)
      damaged(graph, edge_file(t, "neighbors"), str("edge ", e, " is out of order"));
    if (!type.weighted) continue;
    const float w = type.weight(e);
    if (!(w >= 0) || !std::isfinite(w))
      damaged(graph, edge_file(t, "weights"), str("edge ", e, " has the weight ", w));
    sum += w;
    const AliasCell cell = type.alias.as<AliasCell>()[static_cast<size_t>(e)];
    if (!(cell.keep >= 0 && cell.keep <= 1) || cell.other >= row.size())
      damaged(graph, edge_file(t, "alias"), str("cell ", e, " leads out of its row"));
  }
  if (!type.weighted || !(sum > 0)) return;
  // Each edge must have its share of the cells.
  std::vector<double> share(static_cast<size_t>(row.size()));
  for (int64_t i = 0; i < row.size(); ++i) {
    const AliasCell cell = type.alias.as<AliasCell>()[static_cast<size_t>(row.begin + i)];
    share[static_cast<size_t>(i)] += static_cast<double>(cell.keep);
    share[cell.other] += 1 - static_cast<double>(cell.keep);
  }
  for (int64_t i = 0; i < row.size(); ++i) {
    const double wanted = static_cast<double>(type.weight(row.begin + i)) / sum;
    const double found = share[static_cast<size_t>(i)] / static_cast<double>(row.size());
    if (std::abs(wanted - found) > 1e-5)
      damaged(
          graph, edge_file(t, "alias"),
          str("edge ", row.begin + i, " is drawn with probability ", found, ", expected ", wanted));
  }
}

}  // namespace

std::optional<int64_t> NodeType::find(uint64_t id) const {
  if (ids == IdKind::kDense)
    return id < static_cast<uint64_t>(count) ? std::optional(static_cast<int64_t>(id))
                                             : std::nullopt;
  if (ids != IdKind::kInteger) return std::nullopt;
  const auto all = id_values.as<uint64_t>();
  const auto at = std::lower_bound(all.begin(), all.end(), id);
  if (at == all.end() || *at != id) return std::nullopt;
  return at - all.begin();
}

std::optional<int64_t> NodeType::find(std::string_view id) const {
  if (ids != IdKind::kText) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    if (error != std::errc() || end != id.data() + id.size()) return std::nullopt;
    return find(number);
  }
  int64_t low = 0, high = count;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (text_of(*this, middle) < id)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == count || text_of(*this, low) != id) return std::nullopt;
  return low;
}

std::string NodeType::id_of(int64_t node) const {
  if (ids == IdKind::kDense) return std::to_string(node);
  if (ids == IdKind::kText) return std::string(text_of(*this, node));
  return std::to_string(id_values.as<uint64_t>()[static_cast<size_t>(node)]);
}

const Feature& NodeType::feature(const std::string& feature) const {
  for (const Feature& each : features)
    if (each.name == feature) return each;
  const std::vector<std::string> names = names_of(features);
  fail(ErrorCode::kConfig, "nodes '", name, "' have no feature '", feature, "'",
       did_you_mean(feature, names), "; they have ", names.empty() ? "none" : join(names, ", "));
}

EdgeType::Row EdgeType::row(int64_t source) const {
  const auto all = offsets.as<uint64_t>();
  const uint64_t begin = all[static_cast<size_t>(source)],
                 end = all[static_cast<size_t>(source) + 1];
  if (begin > end || end > static_cast<uint64_t>(count))
    fail(ErrorCode::kData, "edges '", name, "': node ", source, " has the edges from ", begin,
         " to ", end, " of ", count, "; the graph is damaged, build it again");
  return {static_cast<int64_t>(begin), static_cast<int64_t>(end)};
}

int64_t EdgeType::neighbor(int64_t edge) const {
  const auto at = static_cast<size_t>(edge);
  const uint64_t target =
      neighbor_bytes == 4 ? neighbors.as<uint32_t>()[at] : neighbors.as<uint64_t>()[at];
  if (target >= static_cast<uint64_t>(targets))
    fail(ErrorCode::kData, "edges '", name, "': edge ", edge, " leads to node ", target, " of ",
         targets, "; the graph is damaged, build it again");
  return static_cast<int64_t>(target);
}

bool EdgeType::connects(int64_t source, int64_t target) const {
  Row at = row(source);
  while (at.begin < at.end) {
    const int64_t middle = at.begin + at.size() / 2;
    const int64_t found = neighbor(middle);
    if (found == target) return true;
    (found < target ? at.begin : at.end) = found < target ? middle + 1 : middle;
  }
  return false;
}

size_t Graph::node_type(const std::string& name) const { return position_of(nodes, name, "nodes"); }

size_t Graph::edge_type(const std::string& name) const { return position_of(edges, name, "edges"); }

size_t Graph::edges_from(const std::string& name, size_t from) const {
  const size_t at = edge_type(name);
  const EdgeType& type = edges[at];
  if (type.from == from) return at;
  if (type.to == from && type.reverse >= 0) return static_cast<size_t>(type.reverse);
  fail(ErrorCode::kConfig, "edges '", name, "' lead from '", nodes[type.from].name, "' to '",
       nodes[type.to].name, "' and cannot be followed from '", nodes[from].name, "'",
       type.to == from ? "; build the graph with a `reverse` of them" : "");
}

GraphPtr open_graph(const std::string& path) {
  if (!is_directory(path))
    fail(ErrorCode::kData, path, ": ",
         file_exists(path) ? "is a file, expected the folder that `paddle graph build` writes"
                           : "no such graph; `paddle graph build` makes one");
  FileEntries files;
  auto out = std::make_shared<Graph>(read_manifest(path + "/" + kManifest, files));
  out->path = path;
  const ColumnMap columns(path, files);
  for (size_t t = 0; t < out->nodes.size(); ++t) {
    NodeType& type = out->nodes[t];
    if (type.ids == IdKind::kInteger)
      type.id_values = columns.map(node_file(t, "ids"), bytes_of(type.count, 8));
    if (type.ids == IdKind::kText) {
      type.id_values = columns.map(node_file(t, "ids"), bytes_of(type.count + 1, 8));
      type.id_text = columns.map_any(node_file(t, "text"));
    }
    for (size_t f = 0; f < type.features.size(); ++f)
      type.features[f].values =
          columns.map(feature_file(t, f), bytes_of(type.count, type.features[f].row_bytes()));
  }
  for (size_t t = 0; t < out->edges.size(); ++t) {
    EdgeType& type = out->edges[t];
    type.offsets = columns.map(edge_file(t, "offsets"), bytes_of(type.sources + 1, 8));
    type.neighbors = columns.map(edge_file(t, "neighbors"),
                                 bytes_of(type.count, static_cast<uint64_t>(type.neighbor_bytes)));
    if (!type.weighted) continue;
    type.weights = columns.map(edge_file(t, "weights"), bytes_of(type.count, sizeof(float)));
    type.alias = columns.map(edge_file(t, "alias"), bytes_of(type.count, sizeof(AliasCell)));
  }
  return out;
}

void check_graph(const Graph& graph) {
  if (!graph.path.empty()) {
    FileEntries files;
    read_manifest(graph.path + "/" + kManifest, files);
    for (const auto& [name, entry] : files) {
      if (name.find('/') != name.npos || name.starts_with('.'))
        damaged(graph, kManifest, str("the name of a file, '", name, "'"));
      if (entry.bytes == 0) continue;
      const auto file = MappedFile::open(graph.path + "/" + name);
      if (file->size() != entry.bytes || crc32(file->bytes()) != entry.crc)
        damaged(graph, name, "its checksum differs; the file is damaged");
    }
  }
  for (size_t t = 0; t < graph.nodes.size(); ++t) {
    check_ids(graph, t);
    const NodeType& type = graph.nodes[t];
    for (size_t f = 0; f < type.features.size(); ++f) {
      const Feature& feature = type.features[f];
      if (feature.classes.empty() || feature.dtype != DType::kI64) continue;
      const auto values = feature.values.as<int64_t>();
      for (size_t i = 0; i < values.size(); ++i)
        if (values[i] < -1 || values[i] >= static_cast<int64_t>(feature.classes.size()))
          damaged(graph, feature_file(t, f),
                  str("'", feature.name, "' of node ", i, " is ", values[i], " of ",
                      feature.classes.size(), " classes"));
    }
  }
  for (size_t t = 0; t < graph.edges.size(); ++t) {
    const EdgeType& type = graph.edges[t];
    const auto offsets = type.offsets.as<uint64_t>();
    if (offsets.front() != 0 || offsets.back() != static_cast<uint64_t>(type.count))
      damaged(graph, edge_file(t, "offsets"), "does not cover all edges");
    for (int64_t i = 0; i < type.sources; ++i) check_row(graph, t, i);
  }
}

}  // namespace paddle::graph
