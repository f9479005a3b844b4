#pragma once
// The rows of a trained table that this process owns: read before a step, and updated after it.
// Reading never changes the table. A first row is a function of (seed, path, key) and of the
// initializer, and an update one of the row only: neither depends on the order in which keys
// arrive, or on the number of owners.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/registry.h"
#include "optim/optimizer.h"
#include "program/table_host.h"
#include "tables/segments.h"

namespace paddle::program {

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

/// One that keeps its rows in the memory of this process is MemoryTable (memory_table.h); other
/// kinds are registered (`table_kinds`).
class RowTable {
 public:
  virtual ~RowTable() = default;

  virtual const TableSpec& spec() const = 0;
  virtual const tables::TableFormat& format() const = 0;
  virtual int64_t count() const = 0;
  /// Bytes of the weights of a row.
  virtual size_t row_bytes() const = 0;
  /// Bytes that a row takes where it is kept, with its key and its states.
  virtual size_t record_bytes() const = 0;
  /// Bytes that the weights and states of a row take in files, with the key.
  virtual uint64_t payload_bytes() const = 0;

  /// The rows of these keys, one after another.
  virtual void read(std::span<const uint64_t> keys, MissingRow missing, std::byte* rows) const = 0;
  /// Adds the keys that the table lacks. `rows`: what `read` gave for them with
  /// MissingRow::kInitial, so that first rows are not computed again; null: nothing.
  virtual void insert(std::span<const uint64_t> keys, const std::byte* rows = nullptr) = 0;
  /// Updates the rows of distinct keys, which must be in the table, by their gradients
  /// [keys, width] of the table's dtype. Other rows and their states stay as they are.
  virtual void update(std::span<const uint64_t> keys, const Array& gradients,
                      const RowUpdate& inputs) = 0;

  /// All rows by rising keys, with or without states.
  virtual TableContent content(bool states = true) const = 0;
  /// Writes the rows of shards [first, second) as files (tables::write_segments, which says what
  /// the result is).
  virtual std::string write(const std::string& folder, std::pair<int, int> shards,
                            int64_t step) const = 0;
  /// Empties the table; rows that are added from now on are a function of `seed`.
  virtual void clear(uint64_t seed) = 0;
  /// Adds the rows of shards [first, second) of a content that was checked (`check_content`);
  /// states that it lacks have their initial values. The keys must be absent.
  virtual void add(const TableContent& content, std::pair<int, int> shards) = 0;
};

/// Where the rows of tables are kept.
struct TableKind {
  std::string name = {};
  std::string doc = {};
  /// An empty table. kConfig if the optimizer's update of a row needs other rows.
  std::function<std::unique_ptr<RowTable>(
      TableSpec spec, std::shared_ptr<const optim::Optimizer> rule, uint64_t seed)>
      open = {};
};

/// "memory"; more may be added while the program runs.
Registry<TableKind>& table_kinds();

/// kModel, beginning with `place`, unless these are the keys and rows of a table of this
/// declaration: distinct keys in rising order, and a row in the table's dtype and width for each.
void check_content(const TableSpec& spec, const TableContent& content, const std::string& place);

}  // namespace paddle::program
