#pragma once
// Downloads of files: they continue where they were interrupted, are checked, and appear whole or
// not at all.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace paddle::hub {

struct Download {
  std::string url, file;
  std::optional<uint64_t> size = {};
  /// Hexadecimal digits of the SHA-256, or its first ones: at least 8. "": unknown.
  std::string sha256 = {};
  std::vector<std::string> headers = {};
  bool overwrite = false;
};

struct Downloaded {
  uint64_t bytes = 0;
  std::string sha256;
  bool verified = false;     ///< compared with Download::sha256
  bool was_there = false;    ///< nothing was downloaded
  bool interrupted = false;  ///< `proceed` returned false; what has come stays in FILE.part
};

/// Called several times a second; false interrupts the download.
using DownloadProgress = std::function<bool(uint64_t done, std::optional<uint64_t> total)>;

/// Downloads to FILE.part, which a later call continues where size or hash tell that it is of the
/// same file, and renames it. A file that is there and right is kept. kUsage for another file of
/// this name unless `overwrite`, kData for an answer that is not the file, kDevice without a
/// connection and where the disk is full.
Downloaded download(const Download& what, const DownloadProgress& progress);

}  // namespace paddle::hub
