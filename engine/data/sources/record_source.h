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

 protected:
  std::vector<std::string> names_;
};

using RecordSourcePtr = std::unique_ptr<RecordSource>;

/// Opens the files of `options`. kData if they are damaged or their columns differ.
RecordSourcePtr open_records(const CsvFileOptions& options);

// One file of each format.
RecordSourcePtr open_csv(const CsvFileOptions& options);
/// `columns`: the keys that fields ask for; empty: those of the first record.
RecordSourcePtr open_jsonl(const std::string& path, const std::vector<std::string>& columns);
RecordSourcePtr open_lines(const std::vector<std::pair<std::string, std::string>>& files);
/// `columns`: those that fields ask for, among them keys of JSON members.
RecordSourcePtr open_tar(const std::string& path, const std::vector<std::string>& columns);
RecordSourcePtr open_slots(const std::string& path, const std::vector<std::string>& slots);
/// `columns`: names and patterns of those that fields ask for; empty: all that can be read.
RecordSourcePtr open_parquet(const std::string& path, const std::vector<std::string>& columns);

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
