#pragma once
// NumPy's .npz files: a zip archive of named NPY arrays, stored or deflated. Stored arrays are
// mapped; headers are read without reading the arrays.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/npy.h"
#include "formats/zip.h"

namespace paddle::formats {

using NamedArrays = std::vector<std::pair<std::string, Array>>;

class NpzReader {
 public:
  explicit NpzReader(const std::string& path, ErrorCode code = ErrorCode::kData);
  const std::string& path() const { return zip_.path(); }
  /// In the order of the archive.
  const std::vector<std::string>& names() const { return names_; }
  /// "; it has 'a', 'b'", for messages about an array that is missing: the likely name first.
  std::string what_it_has(const std::string& wanted) const;
  bool contains(const std::string& name) const { return index_.contains(name); }
  /// Only dtype and shape.
  NpyHeader header(const std::string& name) const;
  /// Fails, with the nearest name, if there is no such array, or if it holds strings.
  Array read(const std::string& name) const;
  NpyStrings read_strings(const std::string& name) const;

 private:
  struct Content {
    NpyHeader header;
    std::span<std::byte> elements;
    std::shared_ptr<void> owner;
  };
  Content content(const std::string& name) const;
  const ZipEntry& entry(const std::string& name) const;
  std::string location(const std::string& name) const;
  ZipReader zip_;
  ErrorCode code_;
  std::vector<std::string> names_;
  std::map<std::string, size_t> index_;
};

NamedArrays read_npz(const std::string& path, ErrorCode code = ErrorCode::kData);

class NpzWriter {
 public:
  explicit NpzWriter(const std::string& path, bool deflate = false)
      : zip_(path), deflate_(deflate) {}
  void add(const std::string& name, const Array& array);
  void add(const std::string& name, const NpyStrings& strings);
  /// Publishes the file.
  void close() { zip_.close(); }

 private:
  ZipWriter zip_;
  bool deflate_;
};

void write_npz(const std::string& path, const NamedArrays& arrays, bool deflate = false);

}  // namespace paddle::formats
