#pragma once
// The profile of a table in a text file: how it is written, and its columns as inferred from all
// rows.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/cells.h"
#include "data/options.h"
#include "recipes/recipe.h"

namespace paddle::recipes {

/// A cell that stands out, for messages.
struct OddCell {
  std::string text = {};
  int64_t line = 0;
};

struct Column {
  std::string name;
  size_t number = 0;  ///< in the file
  bool is_number = true, has_missing = false;
  bool has_fraction = false;  ///< a number with a decimal mark
  /// Different cells and how often they occur; at most kMaxValues + 1, without missing ones.
  std::map<std::string, int64_t> values = {};
  int64_t bytes = 0;  ///< of all cells
  data::TimeForm time = data::TimeForm::kNone;
  bool falls = true, rises = true;   ///< times from row to row
  std::optional<OddCell> text = {};  ///< the first one that is not a number
};
inline constexpr size_t kMaxValues = 1000;

struct CsvProfile {
  data::CsvFileOptions format = {};     ///< how the file is written; without fields
  std::vector<Column> columns;          ///< two or more, those without a name left out
  int64_t rows = 0;                     ///< without the header
  std::vector<std::string> notes = {};  ///< notes for the user, a line each

  /// The column that the request calls by its name; kUsage if there is none.
  size_t column(const std::string& name, const char* option) const;
  /// Keys of the data section that say how the file is written, in a block that is indented by
  /// four, or for a map in braces; "" for an ordinary file.
  std::string block_keys() const;
  std::string flow_keys() const;
};

/// kData for a file without a header, with fewer than two columns or rows, or with rows of another
/// number of cells; and for numbers that are written with currencies, percent signs or thousands
/// separators.
CsvProfile inspect_csv(const RecipeRequest& request);
/// The cells of one column in the first 200,000 records.
std::vector<std::string> cells_of(const CsvProfile& profile, const Column& column);
/// Whether a column holds points in time: dates, or numbers by its name.
bool is_time(const Column& column);

}  // namespace paddle::recipes
