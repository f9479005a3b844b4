#pragma once
// Data files that may be compressed: gzip, bzip2, xz, zstd or lz4, detected by content.

#include <memory>
#include <string>
#include <string_view>

#include "base/files.h"

namespace paddle::formats {

/// A data file, mapped. A compressed one is decompressed into a temporary file ($TMPDIR, or /tmp)
/// that is gone when the mapping is. kData for damaged files; kDevice where the disk is full.
std::shared_ptr<MappedFile> open_data_file(const std::string& path);

/// `path` without the ending of a compression: "rows.csv" for "rows.csv.gz".
std::string_view uncompressed_name(std::string_view path);

/// Whether the columns of a table are separated by tabs, as its name says.
bool has_tab_ending(std::string_view path);

}  // namespace paddle::formats
