#pragma once
// The checks of a kind of table against the table in memory: the same random history of both gives
// the same bits, the same files, and is restored from either's files.

#include <string>
#include <vector>

#include "conformance/calls.h"
#include "program/row_table.h"

namespace paddle::conformance {

/// "history/adam", "files", …
std::vector<std::string> table_checks(const Extent& extent);
/// "" or what is wrong.
std::string check_table(const program::TableKind& kind, const KindOptions& options,
                        const std::string& check, const Extent& extent);

}  // namespace paddle::conformance
