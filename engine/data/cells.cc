#include "data/cells.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/text.h"
#include "data/tokens.h"
#include "formats/csv.h"

namespace paddle::data {
namespace {

/// Reads digits: their number goes to `out`. False where there are fewer than `least`.
bool take_digits(std::string_view& text, size_t least, size_t most, int64_t& out) {
  size_t count = 0;
  out = 0;
  while (count < most && count < text.size() && text[count] >= '0' && text[count] <= '9')
    out = out * 10 + (text[count++] - '0');
  text.remove_prefix(count);
  return count >= least;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

/// Days since 1970 of a date of the Gregorian calendar; nullopt if there is no such day.
std::optional<int64_t> days_of(int64_t year, int64_t month, int64_t day) {
  constexpr std::array<int64_t, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12 || day < 1) return std::nullopt;
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  if (day > kDays[static_cast<size_t>(month - 1)] + (leap && month == 2 ? 1 : 0))
    return std::nullopt;
  // Years begin in March here, so that a leap day is the last one.
  const int64_t y = month <= 2 ? year - 1 : year, m = month <= 2 ? month + 9 : month - 3;
  const int64_t era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + (m * 153 + 2) / 5 + day - 1 -
         719468;
}

/// " 09:30", "T09:30:00.5+02:00", "" as seconds.
bool take_clock(std::string_view text, double& seconds) {
  seconds = 0;
  if (text.empty()) return true;
  if (text[0] != ' ' && text[0] != 'T' && text[0] != 't') return false;
  text = trim(text.substr(1));
  int64_t hour = 0, minute = 0, second = 0;
  if (!take_digits(text, 1, 2, hour) || hour > 24 || !take(text, ':') ||
      !take_digits(text, 2, 2, minute) || minute > 59)
    return false;
  if (take(text, ':')) {
    if (!take_digits(text, 2, 2, second) || second > 60) return false;
    if (text.starts_with('.') || text.starts_with(',')) {
      double scale = 1;
      text.remove_prefix(1);
      while (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])))
        seconds += (text[0] - '0') * (scale /= 10), text.remove_prefix(1);
    }
  }
  seconds += static_cast<double>(hour * 3600 + minute * 60 + second);
  text = trim(text);
  std::string word = lowercase(text);
  if (word == "am" || word == "pm") {
    if (hour < 1 || hour > 12) return false;
    seconds += word == "pm" ? (hour == 12 ? 0 : 12 * 3600) : hour == 12 ? -12 * 3600 : 0;
    return true;
  }
  if (text.empty() || word == "z" || word == "utc") return true;
  const bool west = text[0] == '-';
  if (text[0] != '+' && !west) return false;
  text.remove_prefix(1);
  int64_t ahead = 0, minutes = 0;
  if (!take_digits(text, 2, 2, ahead)) return false;
  take(text, ':');
  if (!text.empty() && !take_digits(text, 2, 2, minutes)) return false;
  seconds -= static_cast<double>((west ? -1 : 1) * (ahead * 3600 + minutes * 60));
  return text.empty();
}

std::optional<double> moment(int64_t year, int64_t month, int64_t day, std::string_view clock) {
  const auto days = days_of(year, month, day);
  double seconds = 0;
  if (!days || !take_clock(clock, seconds)) return std::nullopt;
  return static_cast<double>(*days) * 86400 + seconds;
}

std::optional<double> iso_time(std::string_view text) {
  int64_t year = 0, month = 1, day = 1;
  if (!take_digits(text, 4, 4, year)) return std::nullopt;
  if (text.size() == 4) {  // 20231027
    if (!take_digits(text, 2, 2, month) || !take_digits(text, 2, 2, day)) return std::nullopt;
    return moment(year, month, day, text);
  }
  const char mark = text.empty() ? '\0' : text[0];
  if (mark != '-' && mark != '/' && mark != '.') return std::nullopt;
  text.remove_prefix(1);
  if (!take_digits(text, 1, 2, month)) return std::nullopt;
  if (take(text, mark) && !take_digits(text, 1, 2, day)) return std::nullopt;
  return moment(year, month, day, text);
}

std::optional<double> local_time(std::string_view text, bool day_first) {
  int64_t first = 0, second = 0, year = 0;
  if (!take_digits(text, 1, 2, first)) return std::nullopt;
  const char mark = text.empty() ? '\0' : text[0];
  if (mark != '.' && mark != '/' && mark != '-') return std::nullopt;
  text.remove_prefix(1);
  if (!take_digits(text, 1, 2, second) || !take(text, mark) || !take_digits(text, 4, 4, year))
    return std::nullopt;
  return moment(year, day_first ? second : first, day_first ? first : second, text);
}

}  // namespace

bool is_missing(std::string_view cell) {
  cell = trim(cell);
  if (cell.empty()) return true;
  constexpr size_t kMaxLength = 6;
  if (cell.size() > kMaxLength) return false;
  static constexpr std::string_view kWords[] = {"na",  "n/a",  "<na>", "#n/a",
                                                "#na", "null", "none", "\\n"};
  const std::string word = lowercase(cell);
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

std::string_view with_point(std::string_view cell, char decimal, std::string& scratch) {
  if (decimal == '.') return cell;
  // Numbers with a point are rejected: 1.234,5 could be read in two ways.
  if (cell.find('.') != std::string_view::npos) return "?";
  if (cell.find(decimal) == std::string_view::npos) return cell;
  scratch = cell;
  std::replace(scratch.begin(), scratch.end(), decimal, '.');
  return scratch;
}

bool cell_number(std::string_view cell, char decimal, double& out) {
  std::string scratch;
  return formats::parse_number(with_point(cell, decimal, scratch), out);
}

void TimeFormDetector::observe(std::string_view cell) {
  any_ = true;
  number_ = number_ && parse_time(cell, TimeForm::kNumber);
  iso_ = iso_ && parse_time(cell, TimeForm::kIso);
  day_first_ = day_first_ && parse_time(cell, TimeForm::kDayFirst);
  month_first_ = month_first_ && parse_time(cell, TimeForm::kMonthFirst);
}

TimeForm TimeFormDetector::form() const {
  if (!any_) return TimeForm::kNone;
  if (iso_) return TimeForm::kIso;
  if (number_) return TimeForm::kNumber;
  return day_first_ ? TimeForm::kDayFirst : month_first_ ? TimeForm::kMonthFirst : TimeForm::kNone;
}

std::optional<double> parse_time(std::string_view cell, TimeForm form) {
  cell = trim(cell);
  double number = 0;
  switch (form) {
    case TimeForm::kNone:
      return std::nullopt;
    case TimeForm::kNumber:
      return formats::parse_number(cell, number) && std::isfinite(number) ? std::optional(number)
                                                                          : std::nullopt;
    case TimeForm::kIso:
      return iso_time(cell);
    case TimeForm::kDayFirst:
      return local_time(cell, true);
    case TimeForm::kMonthFirst:
      return local_time(cell, false);
  }
  return std::nullopt;
}

}  // namespace paddle::data
