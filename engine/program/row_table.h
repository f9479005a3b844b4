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

#include "base/kind_options.h"
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
  /// Nothing where keys wait for rows: `observe` adds them.
  virtual void insert(std::span<const uint64_t> keys, const std::byte* rows = nullptr) = 0;
  /// Whether `update` adds the rows of keys that the table lacks.
  virtual bool update_adds() const { return false; }
  /// Updates the rows of distinct keys by their gradients [keys, width] of the table's dtype. Other
  /// rows and their states stay as they are. The keys must be in the table unless `update_adds`,
  /// except that of one whose keys wait for rows those without are passed over.
  virtual void update(std::span<const uint64_t> keys, const Array& gradients,
                      const RowUpdate& inputs) = 0;

  // Of tables whose rows workers train by themselves (ps::Mode::kGeo): those in memory.
  /// Sets the weights of distinct keys; rows that the table lacks are added. States stay.
  virtual void set_rows(std::span<const uint64_t> keys, const std::byte* rows);
  /// Adds `factor` · changes [keys, width] to the weights of distinct keys; rows that the table
  /// lacks are added first.
  virtual void add_changes(std::span<const uint64_t> keys, const Array& changes, double factor);

  // Of tables with a policy (tables::RowPolicy). The others need none of these.
  /// Counts what a training step has seen of distinct keys, after its update, and adds rows for
  /// those that need not wait any longer. Such a row is read from the next step on.
  virtual void observe(std::span<const uint64_t> keys, std::span<const tables::KeyUse> uses,
                       int64_t step, int64_t day);
  /// Removes rows, and keys that wait, when a day is over.
  struct Removed {
    int64_t rows = 0, waiting = 0;
  };
  Removed end_day(int64_t ended, std::pair<int, int> shards) {
    begin_removal(ended, shards);
    return sweep(tables::kShards);
  }
  /// The first part of it: from now on removed rows are as if they were absent. The last removal
  /// must be over.
  virtual void begin_removal(int64_t ended, std::pair<int, int> shards);
  /// The second part: takes the removed rows of up to `shards` shards out of memory; gives how
  /// many, with those that were dropped in between.
  virtual Removed sweep(int shards);
  /// The keys that wait by rising keys, and as weight what is kept of them (tables::Waiting).
  virtual TableContent waiting() const;
  virtual int64_t waiting_count() const { return 0; }
  virtual void add_waiting(const TableContent& content, std::pair<int, int> shards);
  /// Writes those as `write` does the rows.
  virtual std::string write_waiting(const std::string& folder, std::pair<int, int> shards,
                                    int64_t step) const;

  /// All rows by rising keys, with or without states and statistics.
  virtual TableContent content(bool states = true) const = 0;
  /// Writes the rows of shards [first, second) as files (tables::write_segments, which says what
  /// the result is).
  virtual std::string write(const std::string& folder, std::pair<int, int> shards,
                            int64_t step) const = 0;
  // Changes since the last save, of tables that track them.
  virtual bool tracks_changes() const { return false; }
  /// Writes the rows of shards that have changed, and the keys that were removed
  /// (tables::write_delta).
  virtual std::string write_changes(const std::string& folder, std::pair<int, int> shards,
                                    int64_t step) const;
  /// Changes from now on are those of the next save.
  virtual void begin_changes() {}
  /// Empties the table; rows that are added from now on are a function of `seed`.
  virtual void clear(uint64_t seed) = 0;

  // The whole state as bytes, for a process that continues exactly.
  /// Whether the kind can do it.
  virtual bool has_state() const { return false; }
  using StateSink = std::function<void(std::span<const std::byte>)>;
  /// Fills the bytes with the next ones; throws if there are not enough.
  using StateSource = std::function<void(std::span<std::byte>)>;
  virtual void write_state(const StateSink& sink) const;
  /// Of an empty table of the same declaration. kModel if it is of another one.
  virtual void read_state(const StateSource& source);
  /// Adds the rows of shards [first, second) of a content that was checked (`check_content`);
  /// states that it lacks have their initial values. The keys must be absent.
  virtual void add(const TableContent& content, std::pair<int, int> shards) = 0;
};

/// Where the rows of tables are kept.
struct TableKind {
  std::string name = {};
  std::string doc = {};
  /// An empty table. kConfig if the optimizer's update of a row needs other rows.
  std::function<std::unique_ptr<RowTable>(TableSpec spec,
                                          std::shared_ptr<const optim::Optimizer> rule,
                                          uint64_t seed, const KindOptions& options)>
      open = {};
  std::vector<KindKey> keys = {};  ///< in a config, besides the kind
};

/// "memory"; more may be added while the program runs.
Registry<TableKind>& table_kinds();

/// The kept state of the waiting keys of a table, as a table: float32 rows of
/// tables::kWaitingWidth.
TableSpec waiting_spec(TableSpec spec);
/// Its form in files of its own.
tables::TableFormat waiting_format(const TableSpec& spec);

/// kModel, beginning with `place`, unless these are the keys and rows of a table of this
/// declaration: distinct keys in rising order, and a row in the table's dtype and width for each.
void check_content(const TableSpec& spec, const TableContent& content, const std::string& place);

}  // namespace paddle::program
