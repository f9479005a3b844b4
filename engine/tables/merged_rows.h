#pragma once
// The rows of a table after a delta: those of the save before it, with the changed ones in their
// places, new ones among them and removed ones left out.

#include <utility>
#include <vector>

#include "tables/record_table.h"
#include "tables/segments.h"

namespace paddle::tables {

/// Both contents are sorted by shard and key, as is `deleted`, keys int64 or uint64 [n]. The result
/// has the columns of `delta`; where `before` lacks a statistic, its rows have 0.
TableContent merged_rows(const TableContent& before, const TableContent& delta,
                         const Array& deleted, bool is_signed);

/// The rows of shards [first, second) of these contents.
RecordTable records_of(const TableFormat& format, const std::vector<TableContent>& parts,
                       std::pair<int, int> shards);

}  // namespace paddle::tables
