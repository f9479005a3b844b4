#pragma once
// Writes the generated headers and sources. Each family has its own, so that a new operation
// rebuilds only the files that use its family.

#include <string>
#include <vector>

#include "text.h"

namespace opgen {

/// Writes ops/generated/<family>{.h,_rules.h,.cc}, ops/generated/{ops.h,table.cc} and
/// kernels/generated/cpu_table.cc and io_kernels/generated/table.cc under `out`; files whose text
/// would not change keep their time stamps.
void write_all(const std::vector<Family>& families, const Parameters& parameters,
               const std::string& out);

std::string family_header(const Family& family);
std::string rules_header(const Family& family);
std::string family_source(const Family& family);

}  // namespace opgen
