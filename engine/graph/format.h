#pragma once
// The files of a stored graph: `graph.json`, which lists types, features and the size and CRC-32 of
// every file, and one file for each column, named after the position of its type.

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace paddle::graph {

inline constexpr const char* kManifest = "graph.json";
inline constexpr int kFormatVersion = 1;

struct FileEntry {
  uint64_t bytes = 0;
  uint32_t crc = 0;
};
using FileEntries = std::map<std::string, FileEntry>;

/// Names of the files of a type.
std::string node_file(size_t type, const char* column);
std::string feature_file(size_t type, size_t feature);
std::string edge_file(size_t type, const char* column);

/// The manifest of a graph whose columns are in these files.
std::string manifest_text(const Graph& graph, const FileEntries& files);
/// A graph without columns, and its files. kData for anything that is not a manifest.
Graph read_manifest(const std::string& path, FileEntries& files);

/// Where a column is written to, from its beginning to its end.
class ColumnSink {
 public:
  virtual ~ColumnSink() = default;
  virtual void write(const void* data, size_t bytes) = 0;
  template <class T>
  void put(const T& value) {
    write(&value, sizeof value);
  }
  template <class T>
  void put_all(std::span<const T> values) {
    write(values.data(), values.size_bytes());
  }
};

/// A column in memory.
class MemorySink final : public ColumnSink {
 public:
  void write(const void* data, size_t bytes) override;
  Column column() &&;

 private:
  std::vector<std::byte> bytes_;
};

/// A file, with its checksum. kDevice if it cannot be written.
class FileSink final : public ColumnSink {
 public:
  explicit FileSink(std::string path);
  ~FileSink() override;
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;
  void write(const void* data, size_t bytes) override;
  FileEntry close();

 private:
  void flush();
  std::string path_;
  std::FILE* file_ = nullptr;
  FileEntry entry_;
  std::vector<std::byte> buffer_;
};

/// Writes rows of a type of edges that come sorted by source, then target.
class RowWriter {
 public:
  struct Sinks {
    ColumnSink *offsets = nullptr, *neighbors = nullptr, *weights = nullptr, *alias = nullptr;
  };
  /// Takes sizes, weights and the bytes of neighbors from `type`.
  RowWriter(const EdgeType& type, const Sinks& sinks);
  void add(int64_t source, int64_t target, float weight);
  /// The number of edges.
  int64_t finish();

 private:
  void end_row();
  const EdgeType& type_;
  Sinks sinks_;
  int64_t row_ = 0, count_ = 0;
  std::vector<float> weights_;  ///< of the row at hand
};

/// Cells for weights that are finite and not negative; those of a row without any weight keep
/// nothing and must not be drawn from.
std::vector<AliasCell> alias_table(std::span<const float> weights);

}  // namespace paddle::graph
