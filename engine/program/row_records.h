#pragma once
// The records of a table, wherever they are kept: the weights of a row and then each of its states.
// How records begin, how an optimizer updates them, and their form in files.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "program/row_table.h"
#include "tables/row_update.h"

namespace paddle::program {

class RowRecords {
 public:
  /// kConfig if the optimizer's update of a row needs other rows.
  RowRecords(TableSpec spec, std::shared_ptr<const optim::Optimizer> rule, uint64_t seed);

  const TableSpec& spec() const { return spec_; }
  const tables::TableFormat& format() const { return format_; }
  size_t states() const { return slots_.size(); }
  /// Bytes of the float32 columns, which follow the states.
  size_t column_bytes() const { return format_.statistics.size() * sizeof(float); }
  /// Bytes of the weights of a row.
  size_t row_bytes() const { return row_bytes_; }
  /// Bytes of the weights and states of a row.
  size_t record_bytes() const { return row_bytes_ * (1 + slots_.size()); }
  uint64_t seed() const { return seed_; }
  void set_seed(uint64_t seed) { seed_ = seed; }

  /// The weights that the row of a key begins with. `scratch` is kept from call to call.
  void begin_row(uint64_t key, std::byte* row, std::vector<double>& scratch) const;
  /// A number in [0, 1) for a key in a step.
  double chance(uint64_t key, int64_t step) const;
  /// The states that the record, whose weights come first, begins with.
  void begin_states(std::byte* record) const;
  /// The same, and the float32 columns of the format after them.
  void begin_further(std::byte* record) const;
  /// Lets a record use the wide part of its row, if it has one and does not use it yet.
  void widen(uint64_t key, std::byte* record, std::vector<double>& scratch) const;
  /// Updates records by their gradients, `width` elements of the table's dtype for each.
  void update(std::span<std::byte* const> records, const void* gradients,
              const RowUpdate& inputs) const;

  struct Found {
    uint64_t key;
    const std::byte* record;
  };
  /// Of these records, which it sorts by rising keys.
  TableContent content(std::vector<Found> records, bool states) const;
  /// Calls `use(key, fill)` for the rows of shards [first, second) of a content; `fill(record)`
  /// writes the record, and the columns of the format after it. States that the content lacks have
  /// their initial values, columns those of a row that is in use as a whole.
  void for_each(
      const TableContent& content, std::pair<int, int> shards,
      const std::function<void(uint64_t key, const std::function<void(std::byte* record)>& fill)>&
          use) const;

 private:
  /// The update by the optimizer's operations, which every rule has.
  void update_by_operations(std::span<std::byte* const> records, const void* gradients,
                            const RowUpdate& inputs) const;

  TableSpec spec_;
  std::shared_ptr<const optim::Optimizer> rule_;
  uint64_t seed_, stream_;
  std::vector<optim::StateSlot> slots_;
  std::optional<optim::RowRule> row_rule_;
  tables::TableFormat format_;
  size_t row_bytes_;
  tables::RowExtras extras_;
};

}  // namespace paddle::program
