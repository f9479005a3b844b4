#pragma once
// Safetensors files: named tensors after a JSON header, mapped and used without a copy. The reader
// enforces the format: sizes match shapes, offsets are in range, tensors cover the data without
// overlap or gaps, names are unique.
// Format: https://github.com/huggingface/safetensors

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/shared_file.h"
#include "tensor/tensor.h"

namespace paddle::formats {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kF32;
  Dims shape;
  uint64_t begin = 0, end = 0;  ///< bytes from the start of the data
};

class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::string& path, ErrorCode code = ErrorCode::kModel);
  const std::string& path() const { return file_->path(); }
  /// In order of their data.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  /// The file's "__metadata__".
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const SafetensorsEntry* find(const std::string& name) const;
  /// The tensor in the mapped file (copied only if misaligned); writes to it stay in memory. Fails,
  /// with the nearest name, if there is no such tensor.
  Array read(const std::string& name) const;
  Array read(const SafetensorsEntry& entry) const;

 private:
  void parse_header(std::string_view text);
  std::shared_ptr<MappedFile> file_;
  ErrorCode code_;
  uint64_t data_offset_ = 0;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, size_t> index_;
  std::map<std::string, std::string> metadata_;
};

/// Whether the format has this dtype.
bool safetensors_has(DType dtype);

/// Writes a file tensor by tensor, atomically: it appears at `close`. Sorted by descending item
/// size, then by name, so that every tensor is aligned and equal content gives equal files.
class SafetensorsWriter {
 public:
  /// Declares names, types and shapes of all tensors and assigns their offsets.
  SafetensorsWriter(const std::string& path, std::vector<SafetensorsEntry> entries,
                    const std::map<std::string, std::string>& metadata = {});
  /// The order in which tensors must be added.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  /// Puts entries into that order.
  static void sort(std::vector<SafetensorsEntry>& entries);
  /// The next tensor, of the type and shape of its entry.
  void add(const Array& array);
  void close();

 private:
  std::vector<SafetensorsEntry> entries_;
  AtomicFile file_;
  size_t next_ = 0;
};

/// A file that several processes write: one makes it, and each puts in what it has of the tensors.
class SafetensorsParts {
 public:
  /// Assigns the offsets of all tensors, in the order of SafetensorsWriter.
  SafetensorsParts(std::string path, std::vector<SafetensorsEntry> entries);
  uint64_t bytes() const { return header_.size() + data_bytes_; }
  /// Makes the file and writes its header.
  void create() const;
  /// Opens the file; then each process may `write`.
  void open();
  /// Elements of a tensor, from number `first` on.
  void write(const std::string& name, int64_t first, std::span<const std::byte> elements);
  void sync() { file_->sync(); }

 private:
  std::string path_, header_;
  uint64_t data_bytes_ = 0;
  std::map<std::string, SafetensorsEntry> entries_;
  std::optional<SharedFile> file_;
};

/// Writes all tensors at once.
void write_safetensors(const std::string& path,
                       const std::vector<std::pair<std::string, Array>>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace paddle::formats
