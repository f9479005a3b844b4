#include "recipes/csv_look.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "formats/csv.h"

namespace paddle::recipes {
namespace {

constexpr size_t kMostRecords = 200000;

/// Calls `use` with the cells of the first `most` records, the header included, and the line. Gives
/// the number of records of the file.
size_t for_each_record(const std::string& path, size_t most,
                       const std::function<void(size_t record, size_t line,
                                                const std::vector<std::string_view>&)>& use) {
  if (is_directory(path)) fail(ErrorCode::kData, path, ": expected a CSV file");
  const auto file = MappedFile::open(path, ErrorCode::kData);
  const auto bytes = file->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool tabs = path.ends_with(".tsv") || path.ends_with(".tab");
  const formats::CsvParser parser(text, path, {.delimiter = tabs ? '\t' : ','});
  const auto records = parser.index();
  if (records.size() < 3) fail(ErrorCode::kData, path, ": expected a header and some rows");
  std::vector<std::string_view> cells;
  std::string scratch;
  for (size_t r = 0; r < std::min(records.size(), most); ++r) {
    parser.fields(records[r], cells, scratch);
    use(r, static_cast<size_t>(records[r].line), cells);
  }
  return records.size();
}

}  // namespace

CsvLook look_at_csv(const std::string& path) {
  CsvLook out;
  const auto use = [&](size_t record, size_t line, const std::vector<std::string_view>& cells) {
    double ignored = 0;
    if (record == 0) {
      for (const std::string_view name : cells) {
        if (name.empty() || formats::parse_number(name, ignored))
          fail(ErrorCode::kData, path,
               ":1: expected a header with the names of the columns, found '", name, "'");
        out.columns.emplace_back().name = name;
      }
      if (out.columns.size() < 2) fail(ErrorCode::kData, path, ":1: expected at least two columns");
      return;
    }
    if (cells.size() != out.columns.size())
      fail(ErrorCode::kData, path, ":", line, ": expected ", out.columns.size(), " cells, found ",
           cells.size());
    for (size_t c = 0; c < cells.size(); ++c) {
      Column& column = out.columns[c];
      if (cells[c].empty())
        column.has_missing = true;
      else if (!formats::parse_number(cells[c], ignored))
        column.is_number = false;
      column.bytes += static_cast<int64_t>(cells[c].size());
      if (column.values.size() <= kMostValues) column.values.emplace(cells[c]);
    }
  };
  // All rows: a class may come late.
  out.rows = static_cast<int64_t>(for_each_record(path, SIZE_MAX, use)) - 1;
  return out;
}

std::vector<std::string> cells_of(const std::string& path, size_t column) {
  std::vector<std::string> out;
  for_each_record(path, kMostRecords,
                  [&](size_t record, size_t, const std::vector<std::string_view>& cells) {
                    if (record > 0 && column < cells.size()) out.emplace_back(cells[column]);
                  });
  return out;
}

}  // namespace paddle::recipes
