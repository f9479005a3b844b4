#pragma once
// `--dim NAME=SIZE`, which may be repeated.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace paddle::cli {

/// kUsage for a word without a name and a size, and for a name with two sizes.
std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& words);

}  // namespace paddle::cli
