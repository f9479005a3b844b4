#include "base/update_count.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace paddle {
namespace {

/// The number at the start of `text`, which is removed from it.
template <typename T>
std::optional<T> take_number(std::string_view& text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

}  // namespace

int64_t UpdateCount::count(int64_t updates_per_epoch) const {
  if (!is_in_epochs()) return updates;
  const double all = std::round(epochs * static_cast<double>(updates_per_epoch));
  return static_cast<int64_t>(std::clamp(all, 1.0, 1e18));
}

std::optional<UpdateCount> parse_update_count(std::string_view text) {
  text = trim(text);
  std::string_view unit = text;
  if (const auto updates = take_number<int64_t>(unit)) {
    unit = trim(unit);
    if (*updates >= 0 && (unit.empty() || unit == "step" || unit == "steps"))
      return UpdateCount{.updates = *updates};
  }
  unit = text;
  const auto epochs = take_number<double>(unit);
  unit = trim(unit);
  if (!epochs || !(*epochs > 0) || !std::isfinite(*epochs) || (unit != "epoch" && unit != "epochs"))
    return std::nullopt;
  return UpdateCount{.epochs = *epochs};
}

}  // namespace paddle
