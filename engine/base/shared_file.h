#pragma once
// A file of known size that several processes fill, each at its own places.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace paddle {

class SharedFile {
 public:
  /// Makes the file, with this size and room for it on the disk. kDevice if the disk rejects.
  static void create(const std::string& path, uint64_t bytes);

  /// Opens a file for writing that one of the processes has made.
  explicit SharedFile(std::string path);
  ~SharedFile();
  SharedFile(SharedFile&& other) noexcept;
  SharedFile& operator=(SharedFile&&) = delete;
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  void write(uint64_t at, std::span<const std::byte> bytes);
  /// Returns when everything written is on the disk.
  void sync();

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace paddle
