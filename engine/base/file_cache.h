#pragma once
// A cache of byte strings on disk, one file per entry, such as compiled code. A file that is
// damaged, of another entry or writable by other users is ignored; so is a folder that cannot be
// written.

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace paddle {

class FileCache {
 public:
  /// With `folder` "" nothing is cached. Names of files end in `suffix`. Beyond `limit` bytes the
  /// oldest files are removed.
  FileCache(std::string folder, std::string suffix, uint64_t limit);

  /// `key` contains everything that the content depends on.
  std::optional<std::string> find(const std::string& key) const;
  void keep(const std::string& key, std::string_view content);

  const std::string& folder() const { return folder_; }
  std::string path(const std::string& key) const;

 private:
  void remove_oldest() const;

  std::string folder_, suffix_;
  uint64_t limit_;
  std::mutex mutex_;
  int written_ = 0;
};

/// The content of a file; "" if it cannot be read, or if other users could have written it.
std::string read_own_file(const std::string& path);
/// Writes a file of the folder, which is made if need be, under a temporary name and renames it, so
/// that other processes only see complete files. False if that is not possible.
bool write_own_file(const std::string& folder, const std::string& path, std::string_view content);

/// The folder NAME in `$PADDLE_CACHE_DIR`, `$XDG_CACHE_HOME/paddle` or `~/.cache/paddle`; "" if
/// PADDLE_CACHE_DIR is empty or none of them is set.
std::string cache_folder(const std::string& name);

}  // namespace paddle
