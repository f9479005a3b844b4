#pragma once
// The tables of a model that is only read: functions of prediction take their rows as inputs
// (`rows_port`), which are looked up in the mapped files before a run.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/safetensors.h"
#include "ir/module.h"
#include "program/parameter_store.h"
#include "program/table_host.h"
#include "tables/mapped_table.h"

namespace paddle::program {

/// Tables of more bytes (keys and rows) are not searched by the function of a saved model.
inline constexpr uint64_t kInlineTables = uint64_t{64} << 20;

class ServedTables final : public TableHost {
 public:
  using Table = std::shared_ptr<const tables::MappedTable>;

  void add(Table table);
  bool empty() const { return tables_.empty(); }
  /// By name; null if there is none.
  const tables::MappedTable* find(const std::string& path) const;
  const std::map<std::string, Table>& all() const { return tables_; }
  bool provides(const std::string& path) const override { return tables_.contains(path); }
  /// kModel if the table has other keys or another width.
  void open(const TableSpec& spec) override;
  TableRows read(const std::string& path, const Array& keys, const Array& mask) override;

 private:
  std::map<std::string, Table> tables_;
};

/// The tables of a model's folder: those among its weights, and those in files of their own.
struct FolderTables {
  ServedTables inside, apart;
};
FolderTables tables_of_folder(const formats::SafetensorsReader& weights);
/// The tables of a store with more bytes than `limit`.
ServedTables large_tables(const ParameterStore& store, uint64_t limit);

/// The table and the field of an input with rows; nullopt if it is none.
std::optional<std::pair<std::string, std::string>> parse_rows_port(std::string_view name);
/// The tables whose rows a function takes as inputs.
std::vector<std::string> row_tables(const ir::Function& function);

/// Looks rows up for keys of type int32, int64 or uint64: keys.shape + [width] of float32 or
/// float64. `rows` is used again if it has this form.
void look_up(const tables::MappedTable& table, const Array& keys, DType dtype, Array& rows);

}  // namespace paddle::program
