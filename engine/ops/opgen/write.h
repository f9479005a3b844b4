#pragma once
// Writes the generated headers and sources.

#include <string>
#include <vector>

#include "entry.h"

namespace opgen {

/// Writes ops/generated/{ops.h,attrs.h,rules.h,table.cc} and
/// kernels/generated/{cpu,onednn}_table.cc under
/// `out`; files whose text would not change keep their time stamps.
void write_all(const std::vector<Entry>& entries, const std::string& out);

}  // namespace opgen
