#pragma once
// Records with named columns, whatever the file: CSV, JSON lines, parallel text files, tar shards,
// slot files, Parquet, or several files as one. A cell is text or the bytes of a file;
// record_dataset.cc makes fields of them.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/options.h"

namespace paddle::data {

class RecordSource {
 public:
  virtual ~RecordSource() = default;
  const std::vector<std::string>& names() const { return names_; }  ///< of the columns
  virtual int64_t size() const = 0;
  /// The cells of a record, in the order of the columns: views that last until `scratch` changes.
  /// Called from many threads at once. kData, with the place, for a damaged record.
  virtual void cells(int64_t record, std::vector<std::string_view>& out,
                     std::string& scratch) const = 0;
  virtual SourceLocation location(int64_t record) const = 0;
  virtual std::vector<std::string> paths() const = 0;
  /// Whether records may lack columns, as in JSON.
  virtual bool may_lack_columns() const { return false; }
  /// Whether a cell of a column of files holds the file itself; else its path.
  virtual bool holds_files() const { return false; }
  /// The kind of field that a column makes where a config names no fields.
  virtual ColumnKind column_kind(size_t /*column*/) const { return ColumnKind::kNumeric; }
  /// The values that a column declares, in order, which are its vocabulary; empty: none. The empty
  /// string is among them where cells are missing.
  virtual std::vector<std::string> declared_values(size_t /*column*/) const { return {}; }

 protected:
  std::vector<std::string> names_;
};

using RecordSourcePtr = std::unique_ptr<RecordSource>;

/// Opens the files of `options`. kData if they are damaged or their columns differ.
RecordSourcePtr open_records(const CsvFileOptions& options);

/// The keys or columns that fields and splits read, for formats that decode no others; empty: all.
std::vector<std::string> wanted_columns(const CsvFileOptions& options);

/// Cells that stand one after the other in `text`, each up to its end.
inline void split_cells(std::string_view text, const std::vector<size_t>& ends,
                        std::vector<std::string_view>& out) {
  out.clear();
  size_t begin = 0;
  for (const size_t end : ends) {
    out.push_back(text.substr(begin, end - begin));
    begin = end;
  }
}

/// The files that a pattern with `*` and `?` in any part of its path matches, sorted; the path
/// itself without either. kData if nothing matches.
std::vector<std::string> expand_pattern(const std::string& path);

}  // namespace paddle::data
