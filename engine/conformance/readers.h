#pragma once
// The checks of a kind of dataset: samples are a function of their number, the seed and the epoch,
// whatever was read before, and by whichever thread.

#include <string>
#include <utility>
#include <vector>

#include "conformance/calls.h"

namespace paddle::conformance {

/// The name and the value of "path=rows.fvecs"; files that are there as absolute paths. kUsage for
/// other forms.
std::pair<std::string, std::string> key_and_value(const std::string& key,
                                                  const char* option = "--key");

/// "describe", "order", …
std::vector<std::string> reader_checks();
/// "" or what is wrong. `keys`: of the dataset, "path=rows.fvecs"; kUsage and kConfig for those
/// that do not fit, kData for data that cannot be read.
std::string check_reader(const std::string& kind, const std::vector<std::string>& keys,
                         const std::string& check, const Extent& extent);

}  // namespace paddle::conformance
