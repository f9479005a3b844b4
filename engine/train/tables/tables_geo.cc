// Tables on servers whose rows the workers train by themselves: each updates its own copies of the
// rows that it needs, and sends what it has changed from time to time. Lanes add these changes, and
// the worker gets rows again when it needs them after that. The optimizer's states stay with the
// copies.

#include <algorithm>
#include <cstring>

#include "train/tables/tables.h"

namespace paddle::train {
namespace {

template <class T>
void subtract(const std::byte* from, T* rows, int64_t count) {
  const T* const of = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < count; ++i) rows[i] -= of[i];
}

/// Some rows of an array, by their numbers.
Array rows_at(const Array& array, const std::vector<size_t>& numbers, size_t bytes) {
  Array out = Array::empty(array.dtype, {static_cast<int64_t>(numbers.size()), array.shape[1]});
  auto* to = static_cast<std::byte*>(out.raw());
  for (const size_t number : numbers) {
    std::memcpy(to, static_cast<const std::byte*>(array.raw()) + number * bytes, bytes);
    to += bytes;
  }
  return out;
}

}  // namespace

int64_t Tables::next_exchange() const {
  const int64_t every = opening_.updates.every;
  return (trained_ / every + 1) * every;
}

void Tables::find_own(Entry& entry, Which which) {
  StepKeys& keys = entry.*which;
  keys.misses = keys.sent;
  for (auto& numbers : keys.misses)
    std::erase_if(numbers, [&](int64_t number) {
      return entry.own.keys.find(keys.index.keys()[static_cast<size_t>(number)]) >= 0;
    });
}

void Tables::take_own(Entry& entry, Which which) {
  StepKeys& keys = entry.*which;
  OwnRows& own = entry.own;
  const size_t bytes = entry.table->row_bytes();
  const int64_t before = own.keys.size();
  for (const auto& numbers : keys.misses)
    for (const int64_t number : numbers) {
      const auto at = static_cast<size_t>(number);
      // A key of two steps may have been asked for twice.
      if (own.keys.add(keys.index.keys()[at]) < static_cast<int64_t>(own.is_changed.size()))
        continue;
      own.is_changed.push_back(0);
      const auto row = keys.rows.begin() + static_cast<ptrdiff_t>(at * bytes);
      own.begin.insert(own.begin.end(), row, row + static_cast<ptrdiff_t>(bytes));
    }
  const auto came = own.keys.keys().subspan(static_cast<size_t>(before));
  entry.table->set_rows(came, own.begin.data() + static_cast<size_t>(before) * bytes);
  entry.table->read(keys.index.keys(), MissingRow::kInitial, keys.rows.data());
}

void Tables::update_own(const RowUpdate& inputs, const std::map<std::string, double>& scales) {
  for (auto& [path, entry] : tables_) {
    if (!is_trained(path) || !entry.has_gradient) continue;
    const auto all = entry.now.index.keys();
    std::vector<uint64_t> keys;
    std::vector<size_t> numbers;
    for (size_t i = 0; i < static_cast<size_t>(entry.sums.shape[0]); ++i) {
      if (!entry.now.counts[i]) continue;
      keys.push_back(all[i]);
      numbers.push_back(i);
      entry.own.is_changed[static_cast<size_t>(entry.own.keys.find(all[i]))] = 1;
    }
    RowUpdate update = inputs;
    if (const auto scale = scales.find(path); scale != scales.end()) update.scale = scale->second;
    entry.table->update(keys, rows_at(entry.sums, numbers, row_bytes(entry)), update);
  }
  ++merged_;
  merged_inputs_ = inputs;
  if (inputs.step % opening_.updates.every == 0) exchange();
}

void Tables::exchange() {
  merged_ = 0;
  for (auto& [path, entry] : tables_) {
    entry.now = {};
    entry.sums = {};
    entry.has_gradient = false;
    if (!is_trained(path)) continue;
    const OwnRows own = std::exchange(entry.own, {});
    const size_t bytes = row_bytes(entry);
    std::vector<std::byte> begin;
    for (size_t i = 0; i < own.is_changed.size(); ++i) {
      if (!own.is_changed[i]) continue;
      entry.now.index.add(own.keys.keys()[i]);
      const auto row = own.begin.begin() + static_cast<ptrdiff_t>(i * bytes);
      begin.insert(begin.end(), row, row + static_cast<ptrdiff_t>(bytes));
    }
    const auto changed = entry.now.index.keys();
    entry.now.counts.assign(changed.size(), 1);
    const program::TableSpec& spec = entry.table->spec();
    entry.sums = Array::empty(spec.dtype, {entry.now.index.size(), spec.width});
    entry.table->read(changed, MissingRow::kInitial, static_cast<std::byte*>(entry.sums.raw()));
    if (spec.dtype == DType::kF64)
      subtract(begin.data(), entry.sums.data<double>(), entry.sums.size());
    else
      subtract(begin.data(), entry.sums.data<float>(), entry.sums.size());
    entry.has_gradient = true;
  }
  divide_keys(&Entry::now);
  push_to_servers();
  update_servers(merged_inputs_, {});
}

void Tables::restore_own(const Contents& contents) {
  merged_ = 0;
  for (auto& [path, entry] : tables_) {
    if (!has_own_rows(path)) continue;
    entry.own = {};
    entry.table->clear(store_.seed);
    if (const auto of = contents.find(path); of != contents.end())
      for (const TableContent& part : of->second.own) entry.table->add(part, {0, tables::kShards});
  }
}

}  // namespace paddle::train
