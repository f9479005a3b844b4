#pragma once
// Zip archives for NPZ files: stored or deflated entries, with the 64-bit extension. The reader
// maps the file, rejects impossible sizes, and checks every CRC.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"

namespace paddle::formats {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint64_t compressed_bytes = 0;
  uint64_t bytes = 0;  ///< uncompressed; at most 1032 times compressed_bytes, deflate's limit
  uint32_t crc = 0;
  uint64_t offset = 0;  ///< of the entry's data in the file
};

class ZipReader {
 public:
  explicit ZipReader(const std::string& path, ErrorCode code = ErrorCode::kData);
  const std::string& path() const { return file_->path(); }
  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// The first `count` bytes of an entry, fewer if it is shorter; no CRC check.
  std::vector<std::byte> head(const ZipEntry& entry, size_t count) const;
  /// The whole entry; `out` has entry.bytes bytes.
  void extract(const ZipEntry& entry, std::span<std::byte> out) const;
  /// The bytes of a stored entry in the mapped file, after a CRC check.
  std::span<std::byte> stored(const ZipEntry& entry) const;
  const std::shared_ptr<MappedFile>& file() const { return file_; }

 private:
  [[noreturn]] void bad(const std::string& why) const;
  void read_directory();
  void check_crc(const ZipEntry& entry, std::span<const std::byte> content) const;
  void inflate(const ZipEntry& entry, std::span<std::byte> out, bool whole) const;

  std::shared_ptr<MappedFile> file_;
  ErrorCode code_;
  std::vector<ZipEntry> entries_;
};

/// Writes an archive atomically; the file appears at `close`.
class ZipWriter {
 public:
  explicit ZipWriter(const std::string& path) : path_(path), file_(path) {}
  /// An entry whose content is the concatenation of `parts`.
  void add(const std::string& name, std::span<const std::span<const std::byte>> parts,
           bool deflate);
  void close();

 private:
  struct Written {
    ZipEntry entry;
    uint64_t header_offset;
  };
  std::string path_;
  AtomicFile file_;
  std::vector<Written> written_;
};

}  // namespace paddle::formats
