#pragma once
// Keys of a training config that are amounts of memory, such as "256 MiB".

#include <cstdint>
#include <optional>
#include <string>

#include "config/diagnostics.h"
#include "config/schema.h"

namespace paddle::train {

/// The bytes that the key `name` of a section states; above 0 and at most `most`. Nothing, and an
/// error in `diagnostics` that names `section.name` and the example, for other text.
std::optional<uint64_t> read_memory(const config::Section& s, const std::string& section,
                                    const std::string& name, uint64_t most, const char* example,
                                    config::Diagnostics& diagnostics);

}  // namespace paddle::train
