#pragma once
// `--dim NAME=SIZE…`, which may be repeated.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace paddle::cli {

/// Takes the arguments that stand after the sizes out of the values of `--dim`:
/// files and folders, and settings with a dotted key.
std::vector<std::string> take_arguments(std::vector<std::string>& words);

/// kUsage for a word without a name and a size, and for a name with two sizes.
std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& words);

}  // namespace paddle::cli
