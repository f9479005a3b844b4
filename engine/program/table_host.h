#pragma once
// Tables of rows that are addressed by any integers (`sparse_embedding`). They are kept outside of
// the functions that are traced and have no fixed number of rows: a step takes the rows of its
// batch as an input and gives their gradients.

#include <cstdint>
#include <string>

#include "lang/eval/host.h"
#include "tables/row_policy.h"
#include "tensor/tensor.h"

namespace paddle::program {

/// A table as the model declares it.
struct TableSpec {
  std::string path;
  int64_t width = 0;
  DType dtype = DType::kF32;
  lang::Initializer init;
  DType key = DType::kI64;  ///< or uint64
  tables::RowPolicy policy = {};
  bool tracks_changes = false;  ///< whether saves need to know which rows have changed
};

/// Rows for the keys of a field.
struct TableRows {
  Array rows;  ///< keys.shape + [width]
  /// int64, the shape of the keys: equal for equal keys of a table in a step, counted from 0; 0
  /// also for keys that do not count.
  Array numbers;
};

class TableHost {
 public:
  virtual ~TableHost() = default;
  /// Whether it has this table, or makes it; the rows of others are found among the parameters.
  virtual bool provides(const std::string&) const { return true; }
  /// Makes the table if it is new. kConfig if the run cannot have tables, or if the table exists
  /// with another width or other first rows.
  virtual void open(const TableSpec& spec) = 0;
  /// The rows of an open table; `keys` are int32, int64 or uint64. `mask`, bool in the shape of the
  /// keys: where it is false, keys do not count and rows are zeros; empty: all count.
  virtual TableRows read(const std::string& path, const Array& keys, const Array& mask) = 0;
};

/// One use of a table in a step: rows for the keys that a field of the data holds.
struct TableLookup {
  std::string table, field;
  Tensor rows;     ///< keys.shape + [width]
  Tensor numbers;  ///< see TableRows; undefined if they are not wanted
  /// The field that says which keys count, bool in the shape of the keys; "": all do.
  std::string mask = {};
};

/// The inputs of a traced function for a lookup.
inline std::string rows_port(const TableLookup& lookup) {
  return "rows:" + lookup.table + ":" + lookup.field;
}
inline std::string numbers_port(const TableLookup& lookup) {
  return "numbers:" + lookup.table + ":" + lookup.field;
}

/// The parameters of files and saved models that hold a table: the keys in rising order, int64 or
/// uint64 [n], and their rows, [n, width].
inline std::string table_keys(const std::string& path) { return path + ".keys"; }
inline std::string table_weight(const std::string& path) { return path + ".weight"; }

}  // namespace paddle::program
