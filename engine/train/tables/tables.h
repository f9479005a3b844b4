#pragma once
// The tables of a session: what a step reads of them, and its updates.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/safetensors.h"
#include "program/checkpoint.h"
#include "program/parameter_store.h"
#include "program/table_host.h"
#include "train/tables/row_table.h"

namespace paddle::train {

class Tables final : public program::TableHost {
 public:
  /// Both must outlive this object. `rejection`: why the run cannot have tables; "" if it can.
  Tables(const program::ParameterStore& store, std::shared_ptr<const optim::Optimizer> rule,
         std::string rejection)
      : store_(store), rule_(std::move(rule)), rejection_(std::move(rejection)) {}

  void open(const program::TableSpec& spec) override;
  program::TableRows read(const std::string& path, const Array& keys) override;
  bool empty() const { return tables_.empty(); }
  /// Whether training changes the rows of a table.
  bool is_trained(const std::string& path) const;
  /// Begins a step: reads up to the next call belong together. `missing` is for tables that are
  /// trained; the others give zeros.
  void begin_step(MissingRow missing);
  /// Updates a table by the gradients of all rows of this step's reads, in their order: [n, width],
  /// n counting every key. Gradients of equal keys are summed in that order.
  void update(const std::string& path, const Array& gradients, const RowUpdate& inputs);

  /// The store with the tables among its parameters and states, as files hold them: keys, rows and
  /// "optimizer/<rows>/<slot>". Arrays of the store are shared.
  program::ParameterStore with_tables(const program::ParameterStore& store) const;
  /// Takes these out of a list of names.
  void remove_names(std::vector<std::string>& names) const;
  bool has_name(const std::string& name) const;
  /// Names of keys and rows in files.
  std::vector<std::string> names() const;
  /// Names of the rows, as patterns of parameters see them.
  std::vector<std::string> weights() const;
  /// Reads and checks all tables: kModel if one is missing or damaged. `states`: the file with
  /// those of the optimizer, or null; tables then begin with new ones.
  using Contents = std::map<std::string, TableContent>;
  Contents contents_of(const formats::SafetensorsReader& weights,
                       const formats::SafetensorsReader* states) const;
  void restore(const Contents& contents);
  /// Lets `program::read_checkpoint` read them into `contents`, for `restore`.
  program::FurtherTensors of_checkpoint(Contents& contents) const;
  /// A line for each table: its rows and what a key takes.
  std::vector<std::string> summary() const;

 private:
  struct Entry {
    std::unique_ptr<RowTable> table;
    KeyIndex step_keys;                 ///< of this step
    std::vector<int64_t> step_numbers;  ///< of each key that was read, in order
  };
  const program::ParameterStore& store_;
  std::shared_ptr<const optim::Optimizer> rule_;
  std::string rejection_;
  std::map<std::string, Entry> tables_;
  MissingRow missing_ = MissingRow::kZero;
};

}  // namespace paddle::train
