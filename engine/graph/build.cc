#include "graph/build.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "formats/csv.h"
#include "formats/npy.h"
#include "graph/external_sort.h"
#include "graph/format.h"

namespace paddle::graph {
namespace {

constexpr int64_t kMaxClasses = int64_t{1} << 20;

/// An edge by the numbers of its nodes.
struct EdgeRecord {
  int64_t source = 0, target = 0;
  float weight = 1;
  bool operator<(const EdgeRecord& o) const {
    if (source != o.source) return source < o.source;
    return target != o.target ? target < o.target : weight < o.weight;
  }
  bool operator==(const EdgeRecord& o) const {
    return source == o.source && target == o.target && weight == o.weight;
  }
};

/// A folder that is removed unless it becomes the output.
class NewFolder {
 public:
  explicit NewFolder(std::string output)
      : output_(std::move(output)), path_(output_ + ".new-" + std::to_string(::getpid())) {
    ensure_directory(path_);
  }
  ~NewFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  const std::string& path() const { return path_; }
  void publish() {
    std::error_code error;
    std::filesystem::rename(path_, output_, error);
    if (error) fail(ErrorCode::kDevice, output_, ": cannot be made: ", error.message());
    path_.clear();
  }

 private:
  std::string output_, path_;
};

/// A file of rows that are written in any order.
class RowFile {
 public:
  RowFile(std::string path, uint64_t bytes) : path_(std::move(path)) {
    descriptor_ = ::open(path_.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0666);
    if (descriptor_ < 0 || ::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) broken();
  }
  ~RowFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;
  void write(uint64_t at, const void* data, size_t bytes) {
    const auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t written = ::pwrite(descriptor_, from, bytes, static_cast<off_t>(at));
      if (written <= 0) broken();
      from += written;
      at += static_cast<uint64_t>(written);
      bytes -= static_cast<size_t>(written);
    }
  }
  FileEntry close() {
    if (::close(std::exchange(descriptor_, -1)) != 0) broken();
    if (file_size(path_) == 0) return {};
    const auto file = MappedFile::open(path_);
    return {file->size(), crc32(file->bytes())};
  }

 private:
  [[noreturn]] void broken() const {
    fail(ErrorCode::kDevice, path_, ": cannot be written: ", std::string(std::strerror(errno)));
  }
  std::string path_;
  int descriptor_ = -1;
};

template <class T>
void put_number(std::vector<std::byte>& row, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  row.insert(row.end(), bytes, bytes + sizeof value);
}

/// The elements of a feature in one record.
class FeatureCells {
 public:
  FeatureCells(const FeatureDescription& description, std::vector<size_t> columns,
               const std::vector<std::string>& names, std::vector<std::string> classes)
      : description_(description),
        columns_(std::move(columns)),
        names_(names),
        classes_(std::move(classes)) {}

  void row(const std::vector<std::string_view>& cells, const SourceLocation& place,
           std::vector<std::byte>& out) const {
    out.clear();
    for (const size_t c : columns_) {
      if (description_.category)
        put_number(out, class_of(cells[c]));
      else
        put(out, cells[c], names_[c], place);
    }
  }
  const std::vector<std::string>& classes() const { return classes_; }

 private:
  int64_t class_of(std::string_view cell) const {
    return std::lower_bound(classes_.begin(), classes_.end(), cell) - classes_.begin();
  }
  void put(std::vector<std::byte>& out, std::string_view cell, const std::string& name,
           const SourceLocation& place) const {
    const auto reject = [&](const char* expected) {
      throw Error(
          ErrorCode::kData,
          str("column '", name, "': '", printable(cell.substr(0, 40)), "' is not ", expected),
          place);
    };
    double number = 0;
    int64_t integer = 0;
    if (is_float(description_.dtype)) {
      if (!formats::parse_number(cell, number)) reject("number");
      if (description_.dtype == DType::kF64)
        put_number(out, number);
      else
        put_number(out, static_cast<float>(number));
      return;
    }
    if (!formats::parse_integer(cell, integer)) reject("integer");
    if (description_.dtype == DType::kI32) {
      if (!std::in_range<int32_t>(integer)) reject("integer of 32 bits");
      put_number(out, static_cast<int32_t>(integer));
    } else {
      put_number(out, integer);
    }
  }
  const FeatureDescription& description_;
  std::vector<size_t> columns_;
  const std::vector<std::string>& names_;
  std::vector<std::string> classes_;
};

class Builder {
 public:
  Builder(const GraphDescription& description, const std::string& folder,
          const std::function<void(const std::string&)>& progress)
      : d_(description), folder_(folder), progress_(progress) {}

  BuildReport run() {
    for (size_t t = 0; t < d_.nodes.size(); ++t) add_nodes(t);
    for (const EdgeDescription& each : d_.edges) add_edges(each);
    write_file_atomically(folder_ + "/" + kManifest, manifest_text(graph_, files_));
    return report_;
  }

 private:
  void say(const std::string& line) const {
    if (progress_) progress_(line);
  }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  void close(FileSink& sink, const std::string& name) { files_[name] = sink.close(); }

  // --- nodes ---

  void add_nodes(size_t t) {
    const NodeDescription& nodes = d_.nodes[t];
    say(str("nodes '", nodes.name, "'"));
    NodeType type;
    type.name = nodes.name;
    text_.push_back(has_text_ids(d_, nodes));
    if (text_[t]) {
      type.ids = IdKind::kText;
      collect_texts(t, type);
    } else {
      type.ids = IdKind::kInteger;
      collect_integers(t, type);
    }
    graph_.nodes.push_back(std::move(type));
    if (!nodes.files.empty()) add_features(t);
  }

  /// Calls `visit` with the ids of a type, first those of its files.
  template <class Visit>
  void each_id(size_t t, Visit&& visit) {
    const NodeDescription& nodes = d_.nodes[t];
    if (!nodes.files.empty()) {
      NodeReader reader(nodes);
      std::vector<std::string_view> cells;
      while (reader.next(cells)) {
        const std::string_view id = cells[reader.id_column()];
        if (text_[t] && id.empty())
          throw Error(ErrorCode::kData, "an id is empty", reader.location());
        visit(text_[t] ? GivenId{0, id} : GivenId{parse_id(id, reader.location()), {}});
      }
      records_ = reader.record() + 1;
      if (!nodes.adds_unknown) return;
    }
    for (const EdgeDescription& edges : d_.edges) {
      const bool from = edges.from == nodes.name, to = edges.to == nodes.name;
      if (!from && !to) continue;
      // Ids of the other end are read as they are there, which is checked with the edges.
      read_edges(edges, from ? text_[t] : true, to ? text_[t] : true,
                 [&](const GivenId& source, const GivenId& target, float, const SourceLocation&) {
                   if (from) visit(source);
                   if (to) visit(target);
                 });
    }
  }

  void collect_integers(size_t t, NodeType& type) {
    ExternalSorter<uint64_t> sorter(folder_, d_.memory / 2, true);
    each_id(t, [&](const GivenId& id) { sorter.add(id.number); });
    const std::string name = node_file(t, "ids");
    FileSink sink(file(name));
    uint64_t last = 0;
    sorter.finish([&](uint64_t id) {
      sink.put(id);
      last = id;
      ++type.count;
    });
    close(sink, name);
    // Ids from 0 to count - 1 need no list.
    if (type.count > 0 && last == static_cast<uint64_t>(type.count) - 1) {
      type.ids = IdKind::kDense;
      std::filesystem::remove(file(name));
      files_.erase(name);
      return;
    }
    map_column(type.id_values, name);
  }

  void collect_texts(size_t t, NodeType& type) {
    ExternalSorter<std::string> sorter(folder_, d_.memory / 2, true);
    each_id(t, [&](const GivenId& id) { sorter.add(std::string(id.text)); });
    const std::string ends = node_file(t, "ids"), texts = node_file(t, "text");
    FileSink end_sink(file(ends)), text_sink(file(texts));
    uint64_t end = 0;
    end_sink.put(end);
    sorter.finish([&](const std::string& id) {
      text_sink.write(id.data(), id.size());
      end += id.size();
      end_sink.put(end);
      ++type.count;
    });
    close(end_sink, ends);
    close(text_sink, texts);
    map_column(type.id_values, ends);
    map_column(type.id_text, texts);
  }

  void map_column(Column& column, const std::string& name) {
    if (files_.at(name).bytes == 0) return;
    auto mapped = MappedFile::open(file(name));
    column = {mapped, mapped->data(), mapped->size()};
  }

  int64_t number_of(size_t t, const GivenId& id, const SourceLocation& place) const {
    const NodeType& type = graph_.nodes[t];
    const auto found = text_[t] ? type.find(id.text) : type.find(id.number);
    if (found) return *found;
    throw Error(ErrorCode::kData,
                str("no node of '", type.name, "' has the id ",
                    text_[t] ? "'" + printable(id.text.substr(0, 40)) + "'" : str(id.number),
                    "; `unknown: add` makes nodes of such ids"),
                place);
  }

  void add_features(size_t t) {
    const NodeDescription& nodes = d_.nodes[t];
    NodeType& type = graph_.nodes[t];
    std::vector<FeatureDescription> features = nodes.features;
    if (nodes.infers_features) features = inferred_features(nodes);
    report_.added_nodes += type.count - std::min(type.count, records_);
    NodeReader reader(nodes);
    const std::vector<std::string> columns = reader.columns();
    std::vector<std::unique_ptr<FeatureCells>> cells_of;
    std::vector<Array> arrays(features.size());
    std::vector<std::unique_ptr<RowFile>> out;
    for (size_t f = 0; f < features.size(); ++f) {
      const FeatureDescription& description = features[f];
      Feature feature{.name = description.name, .dtype = description.dtype};
      if (!description.file.empty()) {
        arrays[f] = read_rows(description);
        feature.dtype = arrays[f].dtype;
        feature.shape.assign(arrays[f].shape.begin() + 1, arrays[f].shape.end());
        cells_of.push_back(nullptr);
      } else {
        std::vector<size_t> at = columns_of(description, columns, nodes.name);
        if (at.size() > 1 || !description.columns.empty())
          if (!(at.size() == 1 && description.columns.size() == 1 &&
                columns[at[0]] == description.columns[0]))
            feature.shape = {static_cast<int64_t>(at.size())};
        std::vector<std::string> classes;
        if (description.category) {
          classes = classes_of(nodes, at, description.name);
          feature.dtype = DType::kI64;
          feature.classes = classes;
        }
        cells_of.push_back(
            std::make_unique<FeatureCells>(description, std::move(at), columns, classes));
      }
      out.push_back(std::make_unique<RowFile>(
          file(feature_file(t, f)), static_cast<uint64_t>(checked_multiply(
                                        type.count, static_cast<int64_t>(feature.row_bytes())))));
      type.features.push_back(std::move(feature));
    }
    std::vector<bool> seen(static_cast<size_t>(type.count));
    std::vector<std::string_view> cells;
    std::vector<std::byte> row;
    while (reader.next(cells)) {
      const std::string_view id = cells[reader.id_column()];
      const SourceLocation place = reader.location();
      const int64_t node =
          number_of(t, text_[t] ? GivenId{0, id} : GivenId{parse_id(id, place), {}}, place);
      if (seen[static_cast<size_t>(node)])
        throw Error(ErrorCode::kData, str("duplicate node '", printable(id.substr(0, 40)), "'"),
                    place);
      seen[static_cast<size_t>(node)] = true;
      for (size_t f = 0; f < features.size(); ++f) {
        const uint64_t bytes = type.features[f].row_bytes();
        const uint64_t at = static_cast<uint64_t>(node) * bytes;
        if (cells_of[f]) {
          cells_of[f]->row(cells, place, row);
          out[f]->write(at, row.data(), row.size());
        } else {
          const auto* rows = static_cast<const std::byte*>(arrays[f].raw());
          out[f]->write(at, rows + static_cast<uint64_t>(reader.record()) * bytes, bytes);
        }
      }
    }
    for (size_t f = 0; f < features.size(); ++f) {
      fill_unknown(type, f, seen, *out[f]);
      files_[feature_file(t, f)] = out[f]->close();
    }
  }

  /// Nodes that only edges have: zeros, and class -1.
  static void fill_unknown(const NodeType& type, size_t f, const std::vector<bool>& seen,
                           RowFile& out) {
    const Feature& feature = type.features[f];
    if (feature.classes.empty()) return;
    const std::vector<int64_t> none(static_cast<size_t>(feature.width()), -1);
    for (int64_t node = 0; node < type.count; ++node)
      if (!seen[static_cast<size_t>(node)])
        out.write(static_cast<uint64_t>(node) * feature.row_bytes(), none.data(),
                  feature.row_bytes());
  }

  Array read_rows(const FeatureDescription& description) const {
    Array out = formats::read_npy(description.file).contiguous();
    if (out.ndim() == 0 || out.shape[0] != records_)
      fail(ErrorCode::kData, description.file, ": has the shape ", str(out.shape),
           ", expected a row for each of the ", records_, " records of the node files");
    if (!info(out.dtype).has_kernels)
      fail(ErrorCode::kData, description.file, ": ", text(out.dtype), " is not a type of features");
    for (const int64_t size : out.shape)
      if (size == 0) fail(ErrorCode::kData, description.file, ": is empty");
    return out;
  }

  static std::vector<std::string> classes_of(const NodeDescription& nodes,
                                             const std::vector<size_t>& columns,
                                             const std::string& feature) {
    NodeReader reader(nodes);
    std::set<std::string, std::less<>> found;
    std::vector<std::string_view> cells;
    while (reader.next(cells))
      for (const size_t c : columns) {
        if (!found.contains(cells[c])) found.emplace(cells[c]);
        if (static_cast<int64_t>(found.size()) > kMaxClasses)
          fail(ErrorCode::kData, "nodes '", nodes.name, "': feature '", feature,
               "' has more than 2^20 distinct values");
      }
    return {found.begin(), found.end()};
  }

  // --- edges ---

  void add_edges(const EdgeDescription& d) {
    say(str("edges '", d.name, "'"));
    const size_t from = graph_.node_type(d.from), to = graph_.node_type(d.to);
    ExternalSorter<EdgeRecord> sorter(folder_, d_.memory / 2, false);
    std::optional<ExternalSorter<EdgeRecord>> reverse;
    if (!d.reverse.empty()) reverse.emplace(folder_, d_.memory / 2, false);
    read_edges(d, text_[from], text_[to],
               [&](const GivenId& source, const GivenId& target, float weight,
                   const SourceLocation& place) {
                 const int64_t u = number_of(from, source, place), v = number_of(to, target, place);
                 if (d.drops_loops && from == to && u == v) {
                   ++report_.dropped_loops;
                   return;
                 }
                 sorter.add({u, v, weight});
                 if (d.undirected && u != v) sorter.add({v, u, weight});
                 if (reverse) reverse->add({v, u, weight});
               });
    write_rows(d, d.name, from, to, sorter, true);
    if (!reverse) return;
    write_rows(d, d.reverse, to, from, *reverse, false);
    const size_t last = graph_.edges.size() - 1;
    graph_.edges[last - 1].reverse = static_cast<int64_t>(last);
    graph_.edges[last].reverse = static_cast<int64_t>(last - 1);
  }

  void write_rows(const EdgeDescription& d, const std::string& name, size_t from, size_t to,
                  ExternalSorter<EdgeRecord>& sorter, bool counts) {
    const size_t t = graph_.edges.size();
    EdgeType type;
    type.name = name;
    type.from = from, type.to = to;
    type.sources = graph_.nodes[from].count;
    type.targets = graph_.nodes[to].count;
    type.weighted = d.weighted;
    type.neighbor_bytes = type.targets <= int64_t{1} << 32 ? 4 : 8;
    const auto path = [&](const char* column) { return file(edge_file(t, column)); };
    FileSink offsets(path("offsets")), neighbors(path("neighbors"));
    std::optional<FileSink> weights, alias;
    if (d.weighted) {
      weights.emplace(path("weights"));
      alias.emplace(path("alias"));
    }
    RowWriter writer(
        type, {&offsets, &neighbors, weights ? &*weights : nullptr, alias ? &*alias : nullptr});
    std::optional<EdgeRecord> last;
    sorter.finish([&](const EdgeRecord& edge) {
      if (!d.merge) return writer.add(edge.source, edge.target, edge.weight);
      if (last && last->source == edge.source && last->target == edge.target) {
        last->weight += edge.weight;
        if (counts) ++report_.duplicate_edges;
        return;
      }
      if (last) writer.add(last->source, last->target, last->weight);
      last = edge;
    });
    if (last) writer.add(last->source, last->target, last->weight);
    type.count = writer.finish();
    close(offsets, edge_file(t, "offsets"));
    close(neighbors, edge_file(t, "neighbors"));
    if (d.weighted) {
      close(*weights, edge_file(t, "weights"));
      close(*alias, edge_file(t, "alias"));
    }
    graph_.edges.push_back(std::move(type));
  }

  const GraphDescription& d_;
  const std::string& folder_;
  const std::function<void(const std::string&)>& progress_;
  Graph graph_;
  FileEntries files_;
  std::vector<bool> text_;  ///< by type of nodes
  int64_t records_ = 0;     ///< of the node files at hand
  BuildReport report_;
};

}  // namespace

BuildReport build_graph(const GraphDescription& description, const std::string& output,
                        const std::function<void(const std::string&)>& progress) {
  NewFolder folder(std::filesystem::absolute(output).lexically_normal().string());
  BuildReport report = Builder(description, folder.path(), progress).run();
  sync_directory(folder.path());
  folder.publish();
  return report;
}

}  // namespace paddle::graph
