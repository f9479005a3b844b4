#pragma once
// Cells of tables as people write them: missing values, decimal commas, times.

#include <optional>
#include <string>
#include <string_view>

namespace paddle::data {

/// Whether a cell stands for a missing number: it is empty or one of the words that pandas, R, SQL
/// and spreadsheets write (NA, N/A, #N/A, NULL, None, …). "nan" is not: it is a number.
bool is_missing(std::string_view cell);

/// A number with this decimal mark; false if the cell is none.
bool cell_number(std::string_view cell, char decimal, double& out);

/// The same cell with a decimal point, where `decimal` is another mark: a text that formats::
/// parse_number and parse_integer read. `scratch` holds it.
std::string_view with_point(std::string_view cell, char decimal, std::string& scratch);

/// How the cells of a column of times are written.
enum class TimeForm {
  kNone,        ///< not as times
  kNumber,      ///< seconds, years or any other number
  kIso,         ///< 2023-10-27, 2023/10/27 09:30, 2023-10-27T09:30:00.5Z, 2023-10, 20231027
  kDayFirst,    ///< 27.10.2023 or 27/10/2023, with a time or without
  kMonthFirst,  ///< 10/27/2023
};

/// Finds the form that suits all cells of a column that it is shown.
class TimeFormDetector {
 public:
  void observe(std::string_view cell);
  /// kNone where cells differ, or none was shown.
  TimeForm form() const;

 private:
  bool any_ = false, number_ = true, iso_ = true, day_first_ = true, month_first_ = true;
};

/// Seconds since 1970, or the number itself; nullopt if the cell is not of the form.
std::optional<double> parse_time(std::string_view cell, TimeForm form);

}  // namespace paddle::data
