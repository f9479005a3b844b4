#pragma once
// Cache of compiled code on disk, one file per program. A file that is damaged, of another program
// or writable by other users is ignored; so is a folder that cannot be written.

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/codegen/code.h"

namespace paddle::codegen {

class CodeCache {
 public:
  /// With `folder` "" nothing is cached. Beyond `limit` bytes the oldest files are removed.
  explicit CodeCache(std::string folder, uint64_t limit = uint64_t{64} << 20);

  /// `key` contains everything that the code depends on.
  std::optional<CodeImage> find(const std::string& key) const;
  void keep(const std::string& key, const CodeImage& image);

  const std::string& folder() const { return folder_; }
  std::string path(const std::string& key) const;

 private:
  void remove_oldest() const;

  std::string folder_;
  uint64_t limit_;
  std::mutex mutex_;
  int written_ = 0;
};

/// The content of a file; "" if it cannot be read, or if other users could have written it.
std::string read_own_file(const std::string& path);
/// Writes a file of the folder, which is made if need be, under a temporary name and renames it, so
/// that other processes only see complete files. False if that is not possible.
bool write_own_file(const std::string& folder, const std::string& path, std::string_view content);
/// A number as 16 hexadecimal digits.
std::string hex(uint64_t number);

/// `$PADDLE_CACHE_DIR/codegen`, `$XDG_CACHE_HOME/paddle/codegen` or `~/.cache/paddle/codegen`; ""
/// if PADDLE_CACHE_DIR is empty or none of them is set.
std::string default_cache_folder();

}  // namespace paddle::codegen
