#pragma once
// Cache of compiled code on disk, one file per program (base/file_cache.h).

#include <cstdint>
#include <optional>
#include <string>

#include "base/file_cache.h"
#include "compiler/codegen/code.h"

namespace paddle::codegen {

class CodeCache {
 public:
  /// With `folder` "" nothing is cached. Beyond `limit` bytes the oldest files are removed.
  explicit CodeCache(std::string folder, uint64_t limit = uint64_t{64} << 20);

  /// `key` contains everything that the code depends on.
  std::optional<CodeImage> find(const std::string& key) const;
  void keep(const std::string& key, const CodeImage& image);

  const std::string& folder() const { return files_.folder(); }
  std::string path(const std::string& key) const { return files_.path(key); }

 private:
  FileCache files_;
};

/// A number as 16 hexadecimal digits.
std::string hex(uint64_t number);

/// The folder `codegen` of the cache (`cache_folder`).
std::string default_cache_folder();

}  // namespace paddle::codegen
