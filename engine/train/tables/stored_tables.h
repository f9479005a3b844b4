#pragma once
// The tables in the files of a run, a checkpoint or a saved model, for tools that look at them.

#include <cstdint>
#include <string>
#include <vector>

#include "program/row_table.h"
#include "tables/segments.h"

namespace paddle::train {

struct StoredTable {
  tables::TableFormat format;
  /// Rows, in the order of the files.
  std::vector<tables::TableContent> parts;
  /// Keys that wait for rows, and what is kept of them (tables::Waiting).
  std::vector<tables::TableContent> waiting;
  std::string place;  ///< the file or the folder with the rows

  int64_t count() const;
  int64_t waiting_count() const;
  /// Bytes of the rows in files, with keys, states and statistics.
  uint64_t bytes() const;
  bool is_signed() const { return format.key == DType::kI64; }
  /// The key as files order it.
  std::string key_text(uint64_t key) const;
  /// A row of a content: where it is.
  struct Found {
    const tables::TableContent* content = nullptr;  ///< null: there is none
    int64_t row = 0;
  };
  Found find(uint64_t key) const;
  Found find_waiting(uint64_t key) const;
};

/// The table of this form, without policies.
program::TableSpec spec_of(const tables::TableFormat& format);

/// The folder of a run (its newest checkpoint, or its saved model), a checkpoint or a saved model
/// that has tensors. kModel if there are none.
std::string table_source(const std::string& model);
/// All tables of such a folder by name, with checks of shapes, types, checksums and the order of
/// keys. kModel for damaged ones. Contents are mapped files where they can be.
std::vector<StoredTable> read_stored_tables(const std::string& folder);
/// The key that a text states, for the keys of a table. kUsage if it is not one.
uint64_t parse_key(const StoredTable& table, const std::string& text);

}  // namespace paddle::train
