#include "graph/format.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"

namespace paddle::graph {

using nlohmann::ordered_json;

namespace {

constexpr uint64_t kMaxManifest = uint64_t{256} << 20;
constexpr int64_t kMaxNodes = int64_t{1} << 48;
constexpr int64_t kMaxWidth = int64_t{1} << 24;
constexpr size_t kBufferBytes = size_t{1} << 20;

std::string id_word(IdKind kind) {
  return kind == IdKind::kDense ? "dense" : kind == IdKind::kInteger ? "integer" : "text";
}

/// Reads one value of the manifest; anything else than what is expected is a fault of the file.
class ManifestReader {
 public:
  explicit ManifestReader(std::string path) : path_(std::move(path)) {}

  template <class... Parts>
  [[noreturn]] void reject(const Parts&... parts) const {
    fail(ErrorCode::kData, path_, ": not the description of a graph: ", parts...);
  }
  const ordered_json& at(const ordered_json& map, const char* key) const {
    if (!map.is_object()) reject("expected a map with '", key, "'");
    const auto it = map.find(key);
    if (it == map.end()) reject("'", key, "' is missing");
    return *it;
  }
  std::string text(const ordered_json& map, const char* key) const {
    const ordered_json& value = at(map, key);
    if (!value.is_string()) reject("'", key, "' must be text");
    return value.get<std::string>();
  }
  int64_t integer(const ordered_json& map, const char* key, int64_t most) const {
    const ordered_json& value = at(map, key);
    const bool fits =
        value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(most);
    if (!fits) reject("'", key, "' must be an integer from 0 to ", most);
    return static_cast<int64_t>(value.get<uint64_t>());
  }
  const ordered_json& list(const ordered_json& map, const char* key) const {
    const ordered_json& value = at(map, key);
    if (!value.is_array()) reject("'", key, "' must be a list");
    return value;
  }
  bool boolean(const ordered_json& map, const char* key) const {
    const ordered_json& value = at(map, key);
    if (!value.is_boolean()) reject("'", key, "' must be true or false");
    return value.get<bool>();
  }

 private:
  std::string path_;
};

Feature read_feature(const ManifestReader& in, const ordered_json& map) {
  Feature out;
  out.name = in.text(map, "name");
  const auto dtype = parse_dtype(in.text(map, "dtype"));
  if (!dtype || !info(*dtype).has_kernels) in.reject("feature '", out.name, "' has no known dtype");
  out.dtype = *dtype;
  int64_t width = 1;
  for (const ordered_json& size : in.list(map, "shape")) {
    if (!size.is_number_unsigned() || size.get<uint64_t>() == 0 ||
        size.get<uint64_t>() > static_cast<uint64_t>(kMaxWidth))
      in.reject("feature '", out.name, "' has a shape with ", size.dump());
    out.shape.push_back(static_cast<int64_t>(size.get<uint64_t>()));
    width *= out.shape.back();
    if (width > kMaxWidth) in.reject("feature '", out.name, "' is too wide");
  }
  if (map.contains("classes"))
    for (const ordered_json& name : in.list(map, "classes")) {
      if (!name.is_string()) in.reject("classes of '", out.name, "' must be texts");
      out.classes.push_back(name.get<std::string>());
    }
  return out;
}

NodeType read_node_type(const ManifestReader& in, const ordered_json& map) {
  NodeType out;
  out.name = in.text(map, "name");
  out.count = in.integer(map, "count", kMaxNodes);
  const std::string ids = in.text(map, "ids");
  if (ids == "dense")
    out.ids = IdKind::kDense;
  else if (ids == "integer")
    out.ids = IdKind::kInteger;
  else if (ids == "text")
    out.ids = IdKind::kText;
  else
    in.reject("'ids' must be dense, integer or text");
  std::set<std::string> names;
  for (const ordered_json& each : in.list(map, "features")) {
    out.features.push_back(read_feature(in, each));
    if (!names.insert(out.features.back().name).second)
      in.reject("two features are named '", out.features.back().name, "'");
  }
  return out;
}

EdgeType read_edge_type(const ManifestReader& in, const ordered_json& map, const Graph& graph) {
  EdgeType out;
  out.name = in.text(map, "name");
  const auto find = [&](const char* key) {
    const std::string name = in.text(map, key);
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      if (graph.nodes[i].name == name) return i;
    in.reject("'", key, "' names nodes '", name, "', which there are not");
  };
  out.from = find("from");
  out.to = find("to");
  out.sources = graph.nodes[out.from].count;
  out.targets = graph.nodes[out.to].count;
  out.count = in.integer(map, "count", kMaxNodes);
  out.weighted = in.boolean(map, "weighted");
  out.neighbor_bytes = static_cast<int>(in.integer(map, "neighbor_bytes", 8));
  if (out.neighbor_bytes != 4 && out.neighbor_bytes != 8) in.reject("'neighbor_bytes' is 4 or 8");
  return out;
}

}  // namespace

std::string node_file(size_t type, const char* column) { return str("n", type, ".", column); }
std::string feature_file(size_t type, size_t feature) { return str("n", type, ".f", feature); }
std::string edge_file(size_t type, const char* column) { return str("e", type, ".", column); }

std::string manifest_text(const Graph& graph, const FileEntries& files) {
  ordered_json out = {{"format", "paddle-graph"}, {"version", kFormatVersion}};
  out["nodes"] = ordered_json::array();
  out["edges"] = ordered_json::array();
  for (const NodeType& type : graph.nodes) {
    ordered_json node = {{"name", type.name}, {"count", type.count}, {"ids", id_word(type.ids)}};
    node["features"] = ordered_json::array();
    for (const Feature& feature : type.features) {
      ordered_json each = {{"name", feature.name},
                           {"dtype", std::string(text(feature.dtype))},
                           {"shape", feature.shape}};
      if (!feature.classes.empty()) each["classes"] = feature.classes;
      node["features"].push_back(std::move(each));
    }
    out["nodes"].push_back(std::move(node));
  }
  for (const EdgeType& type : graph.edges) {
    ordered_json edge = {{"name", type.name},
                         {"from", graph.nodes[type.from].name},
                         {"to", graph.nodes[type.to].name},
                         {"count", type.count},
                         {"weighted", type.weighted},
                         {"neighbor_bytes", type.neighbor_bytes}};
    if (type.reverse >= 0) edge["reverse"] = graph.edges[static_cast<size_t>(type.reverse)].name;
    out["edges"].push_back(std::move(edge));
  }
  out["files"] = ordered_json::object();
  for (const auto& [name, entry] : files)
    out["files"][name] = {{"bytes", entry.bytes}, {"crc32", entry.crc}};
  return out.dump(1) + "\n";
}

Graph read_manifest(const std::string& path, FileEntries& files) {
  const ManifestReader in(path);
  const ordered_json map =
      ordered_json::parse(read_file(path, kMaxManifest), nullptr, /*allow_exceptions=*/false);
  if (!map.is_object() || !map.contains("format") || map["format"] != "paddle-graph")
    in.reject("it does not begin with the format 'paddle-graph'");
  const int64_t version = in.integer(map, "version", 1 << 30);
  if (version != kFormatVersion)
    fail(ErrorCode::kData, path, ": graph of format version ", version, ", this program reads ",
         kFormatVersion, "; build it again");
  Graph out;
  std::set<std::string> names;
  for (const ordered_json& each : in.list(map, "nodes")) {
    out.nodes.push_back(read_node_type(in, each));
    if (!names.insert(out.nodes.back().name).second)
      in.reject("two types of nodes are named '", out.nodes.back().name, "'");
  }
  names.clear();
  for (const ordered_json& each : in.list(map, "edges")) {
    out.edges.push_back(read_edge_type(in, each, out));
    if (!names.insert(out.edges.back().name).second)
      in.reject("two types of edges are named '", out.edges.back().name, "'");
  }
  for (size_t i = 0; i < out.edges.size(); ++i) {
    const ordered_json& each = map["edges"][i];
    if (!each.contains("reverse")) continue;
    const std::string name = in.text(each, "reverse");
    for (size_t k = 0; k < out.edges.size(); ++k)
      if (out.edges[k].name == name) out.edges[i].reverse = static_cast<int64_t>(k);
    const int64_t reverse = out.edges[i].reverse;
    if (reverse < 0) in.reject("'reverse' names edges '", name, "', which there are not");
    const EdgeType& other = out.edges[static_cast<size_t>(reverse)];
    if (other.from != out.edges[i].to || other.to != out.edges[i].from)
      in.reject("'", name, "' is not the reverse of '", out.edges[i].name, "'");
  }
  const ordered_json& listed = in.at(map, "files");
  if (!listed.is_object()) in.reject("'files' must be a map");
  for (const auto& [name, entry] : listed.items())
    files[name] = {
        static_cast<uint64_t>(in.integer(entry, "bytes", std::numeric_limits<int64_t>::max())),
        static_cast<uint32_t>(in.integer(entry, "crc32", 0xffffffff))};
  return out;
}

void MemorySink::write(const void* data, size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  bytes_.insert(bytes_.end(), from, from + bytes);
}

Column MemorySink::column() && {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes_));
  return {owner, owner->data(), owner->size()};
}

FileSink::FileSink(std::string path) : path_(std::move(path)) {
  file_ = std::fopen(path_.c_str(), "wb");
  if (!file_)
    fail(ErrorCode::kDevice, path_, ": cannot be written: ", std::string(std::strerror(errno)));
  buffer_.reserve(kBufferBytes);
}

FileSink::~FileSink() {
  if (file_) std::fclose(file_);
}

void FileSink::write(const void* data, size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  buffer_.insert(buffer_.end(), from, from + bytes);
  if (buffer_.size() >= kBufferBytes) flush();
}

void FileSink::flush() {
  if (std::fwrite(buffer_.data(), 1, buffer_.size(), file_) != buffer_.size())
    fail(ErrorCode::kDevice, path_, ": cannot be written: ", std::string(std::strerror(errno)));
  entry_.bytes += buffer_.size();
  entry_.crc = crc32(buffer_, entry_.crc);
  buffer_.clear();
}

FileEntry FileSink::close() {
  flush();
  const bool written = std::fclose(std::exchange(file_, nullptr)) == 0;
  if (!written)
    fail(ErrorCode::kDevice, path_, ": cannot be written: ", std::string(std::strerror(errno)));
  return entry_;
}

RowWriter::RowWriter(const EdgeType& type, const Sinks& sinks) : type_(type), sinks_(sinks) {
  sinks_.offsets->put(uint64_t{0});
}

void RowWriter::add(int64_t source, int64_t target, float weight) {
  while (row_ < source) end_row();
  if (type_.neighbor_bytes == 4)
    sinks_.neighbors->put(static_cast<uint32_t>(target));
  else
    sinks_.neighbors->put(static_cast<uint64_t>(target));
  if (type_.weighted) weights_.push_back(weight);
  ++count_;
}

void RowWriter::end_row() {
  if (type_.weighted && !weights_.empty()) {
    sinks_.weights->put_all(std::span<const float>(weights_));
    const std::vector<AliasCell> cells = alias_table(weights_);
    sinks_.alias->put_all(std::span<const AliasCell>(cells));
    weights_.clear();
  }
  sinks_.offsets->put(static_cast<uint64_t>(count_));
  ++row_;
}

int64_t RowWriter::finish() {
  while (row_ < type_.sources) end_row();
  return count_;
}

std::vector<AliasCell> alias_table(std::span<const float> weights) {
  const size_t n = weights.size();
  if (n > std::numeric_limits<uint32_t>::max())
    fail(ErrorCode::kData, "a node has ", n, " weighted edges, at most 2^32 - 1 are possible");
  std::vector<AliasCell> out(n);
  double sum = 0;
  for (const float w : weights) sum += w;
  std::vector<double> share(n);
  std::vector<uint32_t> small, large;
  for (size_t i = 0; i < n; ++i) {
    out[i] = {0, static_cast<uint32_t>(i)};
    share[i] = sum > 0 ? static_cast<double>(weights[i]) / sum * static_cast<double>(n) : 0;
    (share[i] < 1 ? small : large).push_back(static_cast<uint32_t>(i));
  }
  if (!(sum > 0)) return out;
  while (!small.empty() && !large.empty()) {
    const uint32_t low = small.back(), high = large.back();
    small.pop_back();
    out[low] = {static_cast<float>(share[low]), high};
    share[high] -= 1 - share[low];
    if (share[high] >= 1) continue;
    large.pop_back();
    small.push_back(high);
  }
  // Shares of 1 up to rounding. A weight of 0 is never kept.
  const auto heaviest =
      static_cast<uint32_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
  for (const auto* rest : {&small, &large})
    for (const uint32_t i : *rest) {
      if (weights[i] > 0)
        out[i].keep = 1;
      else
        out[i] = {0, heaviest};
    }
  return out;
}

}  // namespace paddle::graph
