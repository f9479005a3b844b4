#pragma once
// Tar archives (ustar, GNU long names, pax paths and sizes): where the members lie, so that a
// mapped archive is read at random. Libraries for archives read members in order only.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace paddle::formats {

/// A regular file in an archive.
struct TarMember {
  std::string name;
  uint64_t offset = 0, size = 0;  ///< of the content, inside the archive
};

/// The regular files of an archive, in order. kData, with `name` and the offset, for what is not a
/// tar archive, a damaged header, or a member that is cut short.
std::vector<TarMember> read_tar_index(std::span<const std::byte> content, const std::string& name);

}  // namespace paddle::formats
