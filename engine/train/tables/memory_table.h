#pragma once
// The rows of a table in the memory of this process.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tables/record_table.h"
#include "train/tables/row_table.h"

namespace paddle::train {

class MemoryTable final : public RowTable {
 public:
  /// kConfig if the optimizer's update of a row needs other rows.
  MemoryTable(program::TableSpec spec, std::shared_ptr<const optim::Optimizer> rule, uint64_t seed);

  const program::TableSpec& spec() const override { return spec_; }
  const tables::TableFormat& format() const override { return format_; }
  int64_t count() const override { return records_.count(); }
  size_t row_bytes() const override { return records_.row_bytes(); }
  size_t record_bytes() const override { return records_.record_bytes(); }
  uint64_t payload_bytes() const override;
  void read(std::span<const uint64_t> keys, MissingRow missing, std::byte* rows) const override;
  void insert(std::span<const uint64_t> keys, const std::byte* rows = nullptr) override;
  void update(std::span<const uint64_t> keys, const Array& gradients,
              const RowUpdate& inputs) override;
  TableContent content(bool states = true) const override;
  std::string write(const std::string& folder, std::pair<int, int> shards,
                    int64_t step) const override;
  void clear(uint64_t seed) override;
  void add(const TableContent& content, std::pair<int, int> shards) override;

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

}  // namespace paddle::train
