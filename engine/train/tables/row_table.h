#pragma once
// A table of rows by key that is trained: read before a step, and updated after it. `LocalTable`
// keeps its rows in memory; a table elsewhere is another implementation.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "optim/optimizer.h"
#include "program/table_host.h"
#include "train/tables/key_index.h"

namespace paddle::train {

/// The row that a read gives for a key that the table lacks.
enum class MissingRow {
  kZero,     ///< zeros: evaluation and prediction
  kInitial,  ///< what the row would begin with; the table stays as it is
  kInsert    ///< the same, and the row is added
};

/// Scalars of an update; see optim::UpdateInputs.
struct RowUpdate {
  double rate = 0;   ///< the scheduled base rate
  int64_t step = 1;  ///< counts updates of the run from 1
  std::optional<double> scale = {}, bound = {};
};

/// A whole table: `keys` int64 [n] in rising order, `weight` [n, width], and each state of the
/// optimizer in the shape of the weight.
struct TableContent {
  Array keys, weight;
  std::vector<std::pair<std::string, Array>> states;
};

class RowTable {
 public:
  virtual ~RowTable() = default;
  virtual const program::TableSpec& spec() const = 0;
  /// Keys in the table.
  virtual int64_t count() const = 0;
  /// The rows of distinct keys, [keys, width].
  virtual Array read(std::span<const int64_t> keys, MissingRow missing) = 0;
  /// Updates the rows of distinct keys, which must be in the table, by their gradients
  /// [keys, width] of the table's dtype. Other rows and their states stay as they are.
  virtual void update(std::span<const int64_t> keys, const Array& gradients,
                      const RowUpdate& inputs) = 0;
  virtual TableContent content() const = 0;
  /// Replaces the table; rows that are added from now on are a function of `seed`. The content must
  /// have been checked (`check_content`); missing states are reinitialized.
  virtual void restore(const TableContent& content, uint64_t seed) = 0;
};

/// Rows and states in memory of this process. A first row is a function of (seed, path, key) and
/// of the initializer, and an update one of the row only: neither depends on the order in which
/// keys arrive.
class LocalTable final : public RowTable {
 public:
  /// kConfig if the optimizer's update of a row needs other rows.
  LocalTable(program::TableSpec spec, std::shared_ptr<const optim::Optimizer> rule, uint64_t seed);

  const program::TableSpec& spec() const override { return spec_; }
  int64_t count() const override { return index_.size(); }
  Array read(std::span<const int64_t> keys, MissingRow missing) override;
  void update(std::span<const int64_t> keys, const Array& gradients,
              const RowUpdate& inputs) override;
  TableContent content() const override;
  void restore(const TableContent& content, uint64_t seed) override;

 private:
  using Bytes = std::vector<std::byte>;
  size_t row_bytes() const;
  void initialize(int64_t key, std::byte* row) const;
  void insert(int64_t key);
  /// The rows of these numbers, and back.
  Array gathered(const Bytes& from, std::span<const int64_t> numbers) const;
  void scatter(Bytes& to, std::span<const int64_t> numbers, const Array& rows) const;

  program::TableSpec spec_;
  std::shared_ptr<const optim::Optimizer> rule_;
  uint64_t seed_;
  std::vector<optim::StateSlot> slots_;
  KeyIndex index_;
  Bytes rows_;                 ///< by number of the key
  std::vector<Bytes> states_;  ///< the same, by slot
};

/// kModel, beginning with `place`, unless these are the keys and rows of a table with this
/// declaration: distinct keys in rising order, and a row in the table's dtype and width for each.
void check_content(const program::TableSpec& spec, const TableContent& content,
                   const std::string& place);

}  // namespace paddle::train
