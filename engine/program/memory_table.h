#pragma once
// The rows of a table in the memory of this process.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "program/row_records.h"
#include "program/row_table.h"
#include "tables/record_table.h"

namespace paddle::program {

class MemoryTable final : public RowTable {
 public:
  /// kConfig if the optimizer's update of a row needs other rows.
  MemoryTable(TableSpec spec, std::shared_ptr<const optim::Optimizer> rule, uint64_t seed);

  const TableSpec& spec() const override { return rules_.spec(); }
  const tables::TableFormat& format() const override { return rules_.format(); }
  int64_t count() const override { return records_.count(); }
  size_t row_bytes() const override { return records_.row_bytes(); }
  size_t record_bytes() const override { return records_.record_bytes(); }
  uint64_t payload_bytes() const override;
  void read(std::span<const uint64_t> keys, MissingRow missing, std::byte* rows) const override;
  void insert(std::span<const uint64_t> keys, const std::byte* rows = nullptr) override;
  bool update_adds() const override { return true; }
  void set_rows(std::span<const uint64_t> keys, const std::byte* rows) override;
  void add_changes(std::span<const uint64_t> keys, const Array& changes, double factor) override;
  void update(std::span<const uint64_t> keys, const Array& gradients,
              const RowUpdate& inputs) override;
  void observe(std::span<const uint64_t> keys, std::span<const tables::KeyUse> uses, int64_t step,
               int64_t day) override;
  void begin_removal(int64_t ended, std::pair<int, int> shards) override;
  Removed sweep(int shards) override;
  TableContent waiting() const override;
  int64_t waiting_count() const override { return waiting_.count(); }
  void add_waiting(const TableContent& content, std::pair<int, int> shards) override;
  std::string write_waiting(const std::string& folder, std::pair<int, int> shards,
                            int64_t step) const override;
  TableContent content(bool states = true) const override;
  std::string write(const std::string& folder, std::pair<int, int> shards,
                    int64_t step) const override;
  bool tracks_changes() const override { return rules_.spec().tracks_changes; }
  std::string write_changes(const std::string& folder, std::pair<int, int> shards,
                            int64_t step) const override;
  void begin_changes() override;
  void clear(uint64_t seed) override;
  bool has_state() const override { return true; }
  void write_state(const StateSink& sink) const override;
  void read_state(const StateSource& source) override;
  void add(const TableContent& content, std::pair<int, int> shards) override;

 private:
  const tables::RowPolicy& policy() const { return rules_.spec().policy; }
  tables::RowStatistics statistics_of(const std::byte* row) const;
  void set_statistics(std::byte* row, const tables::RowStatistics& statistics) const;
  /// Lets the row use its wide part if its score is high enough.
  void widen_if_due(uint64_t key, std::byte* row, std::vector<double>& scratch) const;
  /// Removes all but this many rows of a shard; gives how many.
  int64_t keep_best(int shard, int64_t rows, int64_t ended);
  /// Adds the row of a key that the table lacks.
  std::byte* add_row(uint64_t key, std::vector<double>& scratch);
  /// Sets the columns after the states of a new row.
  void begin_further(std::byte* row) const;
  void admit(uint64_t key, const tables::KeyUse& use, int64_t step, int64_t day,
             std::vector<double>& scratch);

  /// Whether the end of a day has removed a row that is still in memory.
  bool is_gone(uint64_t key, const std::byte* row) const;
  bool is_gone(uint64_t key, const tables::Waiting& waiting) const;
  /// Takes those of these keys out of memory, so that they can be added again.
  void drop_gone(std::span<const uint64_t> keys);
  /// Notes that a row has changed since the last save.
  void mark(std::byte* row) const;
  bool is_changed(const std::byte* row) const;

  /// Bytes of a record from its weights on.
  size_t state_bytes() const {
    return records_.further_at() + rules_.column_bytes() + (tracks_changes() ? sizeof mark_ : 0);
  }

  RowRecords rules_;
  /// Columns of the format are the further bytes, and then the mark of the last change.
  tables::RecordTable records_;
  /// The day whose removal is not over, and the shards that are left.
  std::optional<int64_t> ended_;
  std::pair<int, int> unswept_ = {0, 0};
  Removed dropped_;                ///< by `drop_gone`
  uint32_t mark_ = 1;              ///< of changes since the last save
  std::vector<uint64_t> deleted_;  ///< keys of rows that were removed since
  tables::RecordTable waiting_;
};

}  // namespace paddle::program
