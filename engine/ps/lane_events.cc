// The events of a lane: what they change, and what the log has of them.

#include <algorithm>

#include "base/error.h"
#include "ps/lane.h"

namespace paddle::ps {

using program::RowTable;

namespace {

/// Updates after the end of a day in which removed rows are taken out of memory.
constexpr int kSweeps = 128;
/// Of an update.
constexpr uint32_t kAllWorkers = ~uint32_t{0};
/// Rejects rows that are not those of a table of this declaration.
void check_rows(const program::TableSpec& spec, const tables::TableContent& content) {
  const Dims one = {content.keys.shape[0]}, row = {content.keys.shape[0], spec.width};
  const auto check = [](const Array& array, DType dtype, const Dims& shape) {
    if (array.dtype != dtype || array.shape != shape)
      reject_message("rows are not those of the table");
  };
  check(content.keys, spec.key, one);
  check(content.weight, spec.dtype, row);
  for (const auto& [name, values] : content.states) check(values, spec.dtype, row);
  for (const auto& [name, values] : content.statistics) check(values, DType::kF32, one);
}

}  // namespace

bool Lane::has_all_pushed() const {
  return is_merged_ || std::all_of(workers_.begin(), workers_.end(),
                                   [](const Worker& each) { return each.has_pushed; });
}

void Lane::merge_pushed(size_t first, size_t last) {
  if (is_merged_) return;
  merged_.assign(tables_.size(), std::nullopt);
  for (size_t table = 0; table < tables_.size(); ++table) {
    std::vector<PushedRows> by_worker(last - first);
    bool is_pushed = false, has_gradient = false;
    std::vector<uint64_t> inserted;
    for (size_t i = first; i < last; ++i) {
      const auto& pushed = workers_[i].pushed;
      if (table >= pushed.size() || !pushed[table]) continue;
      const Pushed& rows = *pushed[table];
      is_pushed = true;
      const size_t counting = rows.has_gradient ? rows.counting : 0;
      inserted.insert(inserted.end(), rows.keys.begin() + static_cast<ptrdiff_t>(counting),
                      rows.keys.end());
      if (!rows.has_gradient) continue;
      has_gradient = true;
      by_worker[i - first] = {std::span(rows.keys).first(counting), rows.rows.data(),
                              rows.uses.empty() ? nullptr : rows.uses.data()};
    }
    if (!is_pushed) continue;
    Merged& merged = merged_[table].emplace();
    merged.has_gradient = has_gradient;
    merged.inserted = std::move(inserted);
    if (has_gradient) merged.rows = merge(tables_[table].table->spec(), by_worker);
  }
  for (Worker& worker : std::span(workers_).subspan(first, last - first)) {
    worker.body = {};
    worker.pushed.clear();
  }
  is_merged_ = true;
}

std::vector<double> Lane::merged_squares() const {
  const auto [first, last] = shards();
  std::vector<double> out;
  for (size_t table = 0; table < tables_.size(); ++table) {
    std::vector<double> by_shard(tables::kShards, 0);
    if (merged_[table] && merged_[table]->has_gradient)
      add_squares(tables_[table].table->spec(), merged_[table]->rows.keys,
                  merged_[table]->rows.gradients, by_shard);
    out.insert(out.end(), by_shard.begin() + first, by_shard.begin() + last);
  }
  return out;
}

Message Lane::sums(const Message& message, const std::vector<double>& squares) const {
  BodyWriter out;
  out.add_list(std::span<const double>(squares));
  return answer_to(message, Kind::kSums, out.take());
}

std::vector<std::byte> Lane::update_event(const Message& message) {
  BodyWriter out;
  out.add(is_sync() ? kAllWorkers : message.worker);
  out.add_list(std::span<const std::byte>(message.body));
  out.add_list(std::span<const double>(next_squares_));
  for (uint32_t table = 0; table < merged_.size(); ++table) {
    if (!merged_[table]) continue;
    const Merged& merged = *merged_[table];
    out.add(table);
    out.add(static_cast<uint8_t>(merged.has_gradient));
    out.add_list(std::span<const uint64_t>(merged.inserted));
    if (!merged.has_gradient) continue;
    out.add_list(std::span<const uint64_t>(merged.rows.keys));
    out.add_array(merged.rows.gradients);
    if (observes(tables_[table])) out.add_list(std::span<const tables::KeyUse>(merged.rows.uses));
  }
  return out.take();
}

void Lane::happen(Kind kind, const std::vector<std::byte>& body) {
  // An event that cannot be executed is not logged. Answers come after the log.
  execute(kind, body);
  if (log_) log_->add(static_cast<uint16_t>(kind), body);
  const bool is_long =
      log_ && log_->log_bytes() > std::max(options_.min_log_bytes, log_->snapshot_bytes());
  // A checkpoint that was loaded is not kept twice.
  if (log_ && (is_long || kind == Kind::kLoaded)) write_snapshot();
}

void Lane::execute(Kind kind, std::span<const std::byte> body) {
  BodyReader in(body);
  uint32_t worker = kAllWorkers;
  switch (kind) {
    case Kind::kOpen:
      open_table(body);
      return;
    case Kind::kAdd: {
      Entry& to = entry(in.take<uint32_t>());
      const bool is_waiting = in.take_flag();
      const tables::TableContent content = in.take_content();
      in.end();
      check_rows(is_waiting ? program::waiting_spec(to.table->spec()) : to.table->spec(), content);
      if (is_waiting)
        to.table->add_waiting(content, shards());
      else
        to.table->add(content, shards());
      ++state_.adds;
      return;
    }
    case Kind::kUpdate:
      worker = in.take<uint32_t>();
      if (worker != kAllWorkers && worker >= workers_.size())
        reject_message("an update of worker ", worker);
      execute_update(in, worker);
      break;
    case Kind::kFence: {
      const auto step = in.take<int64_t>();
      state_.last_ordered = ordered(OrderKind::kFence, 0, step);
      for (int64_t& each : state_.steps) each = std::max(each, step);
      if (state_.order_start < 0 || state_.ordered >= options_.order_file_updates) {
        state_.earlier_order = std::exchange(state_.order_start, step);
        state_.ordered = 0;
      }
      break;
    }
    case Kind::kDay: {
      const auto day = in.take<int64_t>();
      for (Entry& each : tables_) {
        each.removed = {};
        each.table->begin_removal(day, shards());
      }
      state_.sweeps = kSweeps;
      break;
    }
    case Kind::kFinish: {
      sweep(tables::kShards);
      state_.sweeps = 0;
      BodyWriter out;
      for (const Entry& each : tables_) {
        out.add(each.removed.rows);
        out.add(each.removed.waiting);
        out.add(each.table->count());
      }
      state_.removed = out.take();
      break;
    }
    case Kind::kMark:
      while (!in.at_end()) entry(in.take<uint32_t>()).table->begin_changes();
      break;
    case Kind::kLoad: {
      const auto seed = in.take<uint64_t>();
      for (Entry& each : tables_) each.table->clear(seed);
      state_.sweeps = 0;
      state_.adds = 0;
      state_.is_loading = true;
      break;
    }
    case Kind::kLoaded:
      state_.is_loading = false;
      break;
    default:
      reject_message("an event of kind ", static_cast<int>(kind));
  }
  for (uint32_t each = 0; each < workers_.size(); ++each) {
    if (worker != kAllWorkers && worker != each) continue;
    ++state_.events[each];
    workers_[each].has_pushed = false;
  }
  is_merged_ = false;
  merged_.clear();
  next_squares_.clear();
}

void Lane::execute_update(BodyReader in, uint32_t worker) {
  const auto scalars = in.take_list<std::byte>();
  BodyReader of(scalars);
  program::RowUpdate inputs;
  inputs.rate = of.take<double>();
  inputs.step = of.take<int64_t>();
  if (worker != kAllWorkers) {
    state_.steps[worker] = inputs.step;
    state_.last_ordered = ordered(order_of_updates(), worker, inputs.step);
    ++state_.ordered;
  }
  const auto day = of.take<int64_t>();
  if (of.take_flag()) inputs.bound = of.take<double>();
  std::vector<std::optional<double>> scales(tables_.size());
  while (!of.at_end()) {
    const auto table = of.take<uint32_t>();
    entry(table);
    scales[table] = of.take<double>();
  }
  state_.squares = in.take_list<double>();
  while (!in.at_end()) {
    const auto table = in.take<uint32_t>();
    Entry& to = entry(table);
    const bool has_gradient = in.take_flag();
    to.table->insert(in.take_list<uint64_t>());
    if (!has_gradient) continue;
    const auto keys = in.take_list<uint64_t>();
    Array gradients = in.take_array();
    std::vector<tables::KeyUse> uses;
    if (observes(to)) uses = in.take_list<tables::KeyUse>();
    if (is_geo()) {
      const bool by_mean = options_.updates.combines_by_mean;
      to.table->add_changes(keys, gradients, by_mean ? 1.0 / state_.workers : 1);
    } else {
      if (!to.table->update_adds()) to.table->insert(keys);
      program::RowUpdate update = inputs;
      update.scale = scales[table];
      if (to.table->spec().policy.divides_by_show) divide_by_shows(uses, gradients);
      to.table->update(keys, gradients, update);
      if (observes(to)) to.table->observe(keys, uses, inputs.step, day);
    }
    if (watch_)
      watch_->note(*to.table, keys, gradients, inputs.step,
                   worker == kAllWorkers ? std::nullopt : std::optional(worker));
  }
  if (state_.sweeps > 0) {
    sweep(tables::kShards / kSweeps);
    --state_.sweeps;
  }
}

void Lane::sweep(int shards) {
  for (Entry& each : tables_) {
    const RowTable::Removed some = each.table->sweep(shards);
    each.removed.rows += some.rows;
    each.removed.waiting += some.waiting;
  }
}

}  // namespace paddle::ps
