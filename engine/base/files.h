#pragma once
// Files: bounded reading, read-only mapping, and writing that a crash or a full disk cannot turn
// into a half-written file. Encrypted files (base/encryption.h) are decrypted into memory. Failures
// to read are reported with the code that the caller names (data or model); failures to write are
// kDevice with the path and the cause.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace paddle {

/// Path of the running program; empty if it is unknown.
std::string program_path();

/// The whole file as bytes, decrypted if it is encrypted. A file above `max_bytes` is rejected
/// before anything is read.
std::string read_file(const std::string& path, uint64_t max_bytes = uint64_t{1} << 30,
                      ErrorCode code = ErrorCode::kData);

/// At most the first `max_bytes` of a file, to tell its format.
std::string read_beginning(const std::string& path, size_t max_bytes,
                           ErrorCode code = ErrorCode::kData);

/// A file's content in memory, paged in on demand; that of an encrypted file is decrypted at once.
/// The mapping is private: writes to it are possible (weights may be updated in place) and never
/// reach the file.
class MappedFile {
 public:
  static std::shared_ptr<MappedFile> open(const std::string& path,
                                          ErrorCode code = ErrorCode::kData);
  /// The bytes as they are on the disk, encrypted or not.
  static std::shared_ptr<MappedFile> open_stored(const std::string& path,
                                                 ErrorCode code = ErrorCode::kData);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  size_t size() const { return size_; }
  std::byte* data() { return data_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view view() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  static std::shared_ptr<MappedFile> open(const std::string& path, ErrorCode code, bool decrypts);
  MappedFile(std::string path, std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}
  std::string path_;
  std::byte* data_;
  size_t size_;
};

/// Releases the whole pages in this range if it is part of a mapped file; they are read again on
/// the next access, and anything written to them is lost. Other memory is not affected.
void forget_mapped(const void* data, size_t bytes);

/// A file that appears whole or not at all: bytes go to a temporary file next to it, and `commit`
/// syncs that to the disk, renames it over `path` and syncs the folder. Without `commit` the
/// temporary file is removed and an existing file at `path` is kept.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  uint64_t written() const { return written_; }
  void commit();

 private:
  void flush();
  std::string path_, temporary_;
  int descriptor_ = -1;
  uint64_t written_ = 0;
  std::vector<char> buffer_;
};

void write_file_atomically(const std::string& path, std::string_view content);

/// Makes the folder and its parents; no error if it is there. kDevice if it cannot be made.
void ensure_directory(const std::string& path);
/// Syncs a folder's entries to the disk, after a rename in it.
void sync_directory(const std::string& path);
/// Bytes that this user may still write on the disk that holds `path`, or its nearest existing
/// parent.
uint64_t free_space(const std::string& path);
bool file_exists(const std::string& path);
bool is_directory(const std::string& path);
uint64_t file_size(const std::string& path, ErrorCode code = ErrorCode::kData);
/// Names of the entries of a folder, sorted bytewise, without "." and "..".
std::vector<std::string> list_directory(const std::string& path, ErrorCode code = ErrorCode::kData);
/// `path` itself if it is absolute, else seen from `folder`; `.` and `..` are resolved textually.
std::string join_path(const std::string& folder, const std::string& path);

/// CRC-32 (ISO-HDLC, as in zip and PNG); pass the previous result to continue.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t previous = 0);

}  // namespace paddle
