#include "ps/row_watch.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace paddle::ps {
namespace {

/// As JSON has it: null for NaN and infinities.
std::string json_of(double number) {
  return std::isfinite(number) ? format_double(number) : "null";
}

}  // namespace

void RowWatch::begin() const {
  ensure_directory(std::filesystem::path(file_).parent_path().string());
  if (!std::ofstream(file_, std::ios::trunc))
    fail(ErrorCode::kDevice, file_, ": cannot be written");
}

void RowWatch::note(const program::RowTable& table, std::span<const uint64_t> keys,
                    const Array& gradients, int64_t step, std::optional<uint32_t> worker) const {
  if (table.spec().path != row_.table) return;
  const auto at = std::find(keys.begin(), keys.end(), row_.key);
  if (at == keys.end()) return;
  const int64_t width = table.spec().width, first = (at - keys.begin()) * width;
  double squares = 0;
  for (int64_t k = 0; k < width; ++k) squares += std::pow(gradients.number(first + k), 2);
  const Array row = Array::empty(table.spec().dtype, {width});
  table.read({&row_.key, 1}, program::MissingRow::kZero, static_cast<std::byte*>(row.raw()));
  std::string line = str("{\"step\": ", step);
  if (worker) line += str(", \"worker\": ", *worker);
  line += str(", \"gradient_norm\": ", json_of(std::sqrt(squares)), ", \"row\": [");
  for (int64_t k = 0; k < width; ++k) line += (k > 0 ? ", " : "") + json_of(row.number(k));
  std::ofstream out(file_, std::ios::app);
  out << line << "]}\n";
  if (!out.flush()) fail(ErrorCode::kDevice, file_, ": cannot be written");
}

}  // namespace paddle::ps
