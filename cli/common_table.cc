#include "common_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/text.h"

namespace paddle::cli {

std::string Table::text() const {
  constexpr size_t kMaxWidth = 48;
  std::vector<size_t> widths;
  for (const std::string& name : header_) widths.push_back(std::min(name.size(), kMaxWidth));
  for (const auto& row : rows_)
    for (size_t i = 0; i < std::min(row.size(), widths.size()); ++i)
      widths[i] = std::max(widths[i], std::min(row[i].size(), kMaxWidth));
  std::string out;
  const auto add = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < std::min(cells.size(), widths.size()); ++i) {
      std::string cell = printable(cells[i]);
      if (cell.size() > kMaxWidth) cell = "…" + cell.substr(cell.size() - kMaxWidth + 1);
      if (i + 1 < cells.size()) cell.resize(std::max(cell.size(), widths[i]), ' ');
      line += (i ? "  " : "") + cell;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  add(header_);
  for (const auto& row : rows_) add(row);
  return out;
}

std::string short_number(double value) {
  const bool is_extreme = std::abs(value) >= 1e5 || (value != 0 && std::abs(value) < 1e-3);
  return is_extreme ? fmt::format("{:.2e}", value) : fmt::format("{:.4f}", value);
}

std::string short_duration(double seconds) {
  const auto s = static_cast<int64_t>(std::max(0.0, seconds));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace paddle::cli
