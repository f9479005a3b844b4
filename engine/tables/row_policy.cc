#include "tables/row_policy.h"

namespace paddle::tables {
namespace {

/// As many multiplications in float32 as days have passed, so that days may be counted one by one
/// or all at once.
void decay_by(float factor, double days, float& show, float& click) {
  for (double day = 0; day < days; ++day) {
    const float next_show = show * factor, next_click = click * factor;
    // Zeros and the smallest numbers stay as they are.
    if (next_show == show && next_click == click) return;
    show = next_show;
    click = next_click;
  }
}

}  // namespace

const std::vector<std::string>& statistic_names() {
  static const std::vector<std::string> names = {"show", "click", "day"};
  return names;
}

std::vector<std::string> RowPolicy::columns() const {
  std::vector<std::string> out;
  if (keeps_statistics()) out = statistic_names();
  if (wide_columns > 0) out.emplace_back(kWide);
  if (row_moment) out.emplace_back(kRowMoment);
  return out;
}

RowStatistics RowPolicy::on_day(RowStatistics of, int64_t day) const {
  decay_by(decay, static_cast<double>(day) - static_cast<double>(of.day), of.show, of.click);
  return of;
}

void RowPolicy::use(RowStatistics& row, const KeyUse& use, int64_t day) const {
  row = on_day(row, day);
  row.show += static_cast<float>(use.show);
  row.click += static_cast<float>(use.click);
  row.day = static_cast<float>(day);
}

bool RowPolicy::use(Waiting& key, const KeyUse& use, int64_t day) const {
  decay_by(decay, static_cast<double>(day) - static_cast<double>(key.day), key.show, key.click);
  key.count += static_cast<float>(use.count);
  key.show += static_cast<float>(use.show);
  key.click += static_cast<float>(use.click);
  key.day = static_cast<float>(day);
  return key.count >= static_cast<float>(entry_count) &&
         (!entry_score || score(key.show, key.click) >= *entry_score);
}

bool RowPolicy::is_removed(const RowStatistics& row, int64_t ended) const {
  if (unseen_days > 0 &&
      static_cast<double>(ended) - static_cast<double>(row.day) >= static_cast<double>(unseen_days))
    return true;
  if (!score_below) return false;
  const RowStatistics then = on_day(row, ended + 1);
  return score(then.show, then.click) < *score_below;
}

}  // namespace paddle::tables
