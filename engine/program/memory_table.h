#pragma once
// The rows of a table in the memory of this process.

#include <memory>
#include <span>
#include <string>
#include <utility>

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
  void update(std::span<const uint64_t> keys, const Array& gradients,
              const RowUpdate& inputs) override;
  TableContent content(bool states = true) const override;
  std::string write(const std::string& folder, std::pair<int, int> shards,
                    int64_t step) const override;
  void clear(uint64_t seed) override;
  void add(const TableContent& content, std::pair<int, int> shards) override;

 private:
  RowRecords rules_;
  tables::RecordTable records_;
};

}  // namespace paddle::program
