#pragma once
// The rows of a trained table that this process owns: read before a step, and updated after it.
// Reading never changes the table. A first row is a function of (seed, path, key) and of the
// initializer, and an update one of the row only: neither depends on the order in which keys
// arrive, or on the number of owners.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "optim/optimizer.h"
#include "program/table_host.h"
#include "tables/record_table.h"
#include "tables/segments.h"

namespace paddle::train {

using tables::TableContent;

/// The row that a read gives for a key that the table lacks.
enum class MissingRow {
  kZero,    ///< zeros: evaluation and prediction
  kInitial  ///< what the row begins with
};

/// Scalars of an update; see optim::UpdateInputs.
struct RowUpdate {
  double rate = 0;   ///< the scheduled base rate
  int64_t step = 1;  ///< counts updates of the run from 1
  std::optional<double> scale = {}, bound = {};
};

class RowTable {
 public:
  /// kConfig if the optimizer's update of a row needs other rows.
  RowTable(program::TableSpec spec, std::shared_ptr<const optim::Optimizer> rule, uint64_t seed);

  const program::TableSpec& spec() const { return spec_; }
  const tables::TableFormat& format() const { return format_; }
  const tables::RecordTable& records() const { return records_; }
  int64_t count() const { return records_.count(); }
  /// Bytes that the weights and states of a row take in files, with the key.
  uint64_t payload_bytes() const;

  /// The rows of these keys, one after another.
  void read(std::span<const uint64_t> keys, MissingRow missing, std::byte* rows) const;
  /// Adds the keys that the table lacks. `rows`: what `read` gave for them with
  /// MissingRow::kInitial, so that first rows are not computed again; null: nothing.
  void insert(std::span<const uint64_t> keys, const std::byte* rows = nullptr);
  /// Updates the rows of distinct keys, which must be in the table, by their gradients
  /// [keys, width] of the table's dtype. Other rows and their states stay as they are.
  void update(std::span<const uint64_t> keys, const Array& gradients, const RowUpdate& inputs);

  /// All rows by rising keys, with or without states.
  TableContent content(bool states = true) const;
  /// Empties the table; rows that are added from now on are a function of `seed`.
  void clear(uint64_t seed);
  /// Adds the rows of shards [first, second) of a content that was checked (`check_content`);
  /// states that it lacks have their initial values. The keys must be absent.
  void add(const TableContent& content, std::pair<int, int> shards);

 private:
  /// The first row of a key; `values` is memory for `width` numbers.
  void initialize(uint64_t key, std::byte* row, std::vector<double>& values) const;
  void initialize_states(std::byte* row) const;
  /// The update by the optimizer's operations, which every rule has.
  void update_by_operations(std::span<std::byte* const> rows, const Array& gradients,
                            const RowUpdate& inputs);

  program::TableSpec spec_;
  std::shared_ptr<const optim::Optimizer> rule_;
  uint64_t seed_, stream_;
  std::vector<optim::StateSlot> slots_;
  std::optional<optim::RowRule> row_rule_;
  tables::TableFormat format_;
  tables::RecordTable records_;
};

/// kModel, beginning with `place`, unless these are the keys and rows of a table of this
/// declaration: distinct keys in rising order, and a row in the table's dtype and width for each.
void check_content(const program::TableSpec& spec, const TableContent& content,
                   const std::string& place);

}  // namespace paddle::train
