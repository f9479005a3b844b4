// The days of tables: which rows are removed at their end, and when their memory is given back.

#include <algorithm>

#include "program/row_table.h"
#include "train/tables/tables.h"

namespace paddle::train {
namespace {

/// Steps after the end of a day in which removed rows are taken out of memory.
constexpr int kSweeps = 128;

}  // namespace

bool Tables::has_days() const {
  return std::any_of(tables_.begin(), tables_.end(), [](const auto& each) {
    const tables::RowPolicy& policy = each.second.table->spec().policy;
    return policy.removes() || (policy.keeps_statistics() && policy.decay != 1);
  });
}

void Tables::end_day() {
  finish_removal();
  // Rows that were announced were read before rows are removed.
  announced_ = answered_ = false;
  for (auto& [path, entry] : tables_) {
    entry.removed = {};
    entry.table->begin_removal(day_, exchange_.own_shards());
  }
  sweeps_left_ = kSweeps;
  ++day_;
}

void Tables::sweep_some() {
  if (sweeps_left_ == 0) return;
  sweep(tables::kShards / kSweeps);
  if (--sweeps_left_ == 0) note_removals();
}

void Tables::finish_removal() {
  if (sweeps_left_ == 0) return;
  sweep(tables::kShards);
  sweeps_left_ = 0;
  note_removals();
}

void Tables::sweep(int shards) {
  for (auto& [path, entry] : tables_) {
    const RowTable::Removed some = entry.table->sweep(shards);
    entry.removed.rows += some.rows;
    entry.removed.waiting += some.waiting;
  }
}

void Tables::note_removals() {
  for (auto& [path, entry] : tables_) {
    const int64_t rows = exchange_.sum(entry.removed.rows),
                  waiting = exchange_.sum(entry.removed.waiting),
                  left = exchange_.sum(entry.table->count());
    if (rows + waiting == 0) continue;
    removals_.push_back(str("table ", path, ": removed ", rows, " rows",
                            waiting > 0 ? str(" and ", waiting, " waiting keys") : "",
                            " after day ", day_ - 1, ", ", left, " rows are left"));
  }
}

}  // namespace paddle::train
