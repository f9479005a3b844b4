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
  drop_answers();
  if (connect()) {
    finish_event();
    ps::BodyWriter body;
    body.add(day_);
    client_->happen(ps::Kind::kDay, body.take());
  } else {
    for (auto& [path, entry] : tables_) {
      entry.removed = {};
      entry.table->begin_removal(day_, exchange_.own_shards());
    }
  }
  sweeps_left_ = kSweeps;
  ++day_;
}

void Tables::sweep_some() {
  if (sweeps_left_ == 0) return;
  // Lanes do it after each update.
  if (!client_) sweep(tables::kShards / kSweeps);
  if (--sweeps_left_ > 0) return;
  if (!client_) return note_removals();
  stop_training();
  finish_removal_on_servers();
}

void Tables::finish_removal() {
  stop_training();
  if (sweeps_left_ == 0) return;
  sweeps_left_ = 0;
  if (client_) return finish_removal_on_servers();
  sweep(tables::kShards);
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
  for (auto& [path, entry] : tables_)
    note_removal(path, {exchange_.sum(entry.removed.rows), exchange_.sum(entry.removed.waiting)},
                 exchange_.sum(entry.table->count()));
}

void Tables::note_removal(const std::string& path, const RowTable::Removed& removed, int64_t left) {
  if (removed.rows + removed.waiting == 0) return;
  removals_.push_back(str("table ", path, ": removed ", removed.rows, " rows",
                          removed.waiting > 0 ? str(" and ", removed.waiting, " waiting keys") : "",
                          " after day ", day_ - 1, ", ", left, " rows are left"));
}

}  // namespace paddle::train
