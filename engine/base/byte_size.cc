#include "base/byte_size.h"

#include <exception>
#include <map>

#include "base/text.h"

namespace paddle {

std::optional<uint64_t> parse_byte_size(const std::string& text) {
  double value = 0;
  size_t used = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  static const std::map<std::string, double> kUnits = {
      {"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  const auto unit = kUnits.find(std::string(trim(std::string_view(text).substr(used))));
  if (unit == kUnits.end() || !(value * unit->second >= 1) || value * unit->second > 0x1p60)
    return std::nullopt;
  return static_cast<uint64_t>(value * unit->second);
}

}  // namespace paddle
