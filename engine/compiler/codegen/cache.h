#pragma once
// Compiled code on disk, one file per program, so that a process compiles nothing that an earlier
// one has compiled. A file that is damaged, of somebody else or of another program is as good as
// none; so is a folder that can't be written.

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "compiler/codegen/code.h"

namespace paddle::codegen {

class CodeCache {
 public:
  /// `folder` "": nothing is kept. Files beyond `limit` bytes are removed, oldest first.
  explicit CodeCache(std::string folder, uint64_t limit = uint64_t{64} << 20);

  /// `key` is all that the code depends on.
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

/// `$PADDLE_CACHE_DIR/codegen`, `$XDG_CACHE_HOME/paddle/codegen` or `~/.cache/paddle/codegen`; ""
/// if PADDLE_CACHE_DIR is set to nothing, or none is known.
std::string default_cache_folder();

}  // namespace paddle::codegen
