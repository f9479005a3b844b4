#include "base/duration.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "base/text.h"

namespace paddle {

std::optional<double> parse_duration(std::string_view text) {
  double seconds = 0;
  bool has_unit = false, empty = true;
  while (!(text = trim(text)).empty()) {
    size_t digits = 0;
    while (digits < text.size() &&
           ((text[digits] >= '0' && text[digits] <= '9') || text[digits] == '.'))
      ++digits;
    double number = 0;
    try {
      size_t used = 0;
      number = std::stod(std::string(text.substr(0, digits)), &used);
      if (used != digits) return std::nullopt;
    } catch (const std::exception&) {
      return std::nullopt;
    }
    text = trim(text.substr(digits));
    if (text.empty()) {
      if (has_unit) return std::nullopt;
    } else {
      constexpr std::pair<std::string_view, double> kUnits[] = {
          {"ms", 1e-3},   {"s", 1},    {"min", 60},     {"m", 60},      {"hours", 3600},
          {"hour", 3600}, {"h", 3600}, {"days", 86400}, {"day", 86400}, {"d", 86400}};
      const auto* const unit = std::find_if(std::begin(kUnits), std::end(kUnits), [&](auto each) {
        return text.starts_with(each.first);
      });
      if (unit == std::end(kUnits)) return std::nullopt;
      number *= unit->second;
      text.remove_prefix(unit->first.size());
      has_unit = true;
    }
    seconds += number;
    empty = false;
  }
  if (empty || !(seconds >= 0) || !std::isfinite(seconds)) return std::nullopt;
  return seconds;
}

std::string seconds_text(double seconds) { return fmt::format("{:.3f} s", seconds); }

}  // namespace paddle
