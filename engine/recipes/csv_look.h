#pragma once
// A look at a CSV file: its columns as inferred from all rows.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace paddle::recipes {

struct Column {
  std::string name;
  bool is_number = true, has_missing = false;
  std::set<std::string> values;  ///< at most kMostValues + 1
  int64_t bytes = 0;             ///< of all cells
};
inline constexpr size_t kMostValues = 1000;

struct CsvLook {
  std::vector<Column> columns;  ///< two or more
  int64_t rows = 0;             ///< without the header
};

/// kData for a file without a header, with fewer than two columns or rows, or with rows of another
/// number of cells.
CsvLook look_at_csv(const std::string& path);
/// The cells of one column in the first 200,000 records.
std::vector<std::string> cells_of(const std::string& path, size_t column);

}  // namespace paddle::recipes
