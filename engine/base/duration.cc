#include "base/duration.h"

#include <cmath>
#include <string>

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
      constexpr std::string_view kUnits = "smhd";
      constexpr double kSeconds[] = {1, 60, 3600, 86400};
      const size_t unit = kUnits.find(text[0]);
      if (unit == std::string_view::npos) return std::nullopt;
      number *= kSeconds[unit];
      text.remove_prefix(1);
      has_unit = true;
    }
    seconds += number;
    empty = false;
  }
  if (empty || !(seconds > 0) || !std::isfinite(seconds)) return std::nullopt;
  return seconds;
}

}  // namespace paddle
