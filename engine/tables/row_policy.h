#pragma once
// Which keys of a table get rows, what is counted for a row, and which rows are removed at the end
// of a day. Scores and decay are those of PaddlePaddle's tables of click rates.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace paddle::tables {

/// The uses of a key in a step: occurrences, and the sums of shows and clicks of their samples.
struct KeyUse {
  double count = 0, show = 0, click = 0;
  KeyUse& operator+=(const KeyUse& other) {
    count += other.count;
    show += other.show;
    click += other.click;
    return *this;
  }
};

/// The statistics of a row: shows and clicks as of the day of its last use, with the decay of the
/// days before it.
struct RowStatistics {
  float show = 0, click = 0;
  float day = 0;
};
/// The columns in files: float32 [rows].
const std::vector<std::string>& statistic_names();
/// Further ones: 1 for a row whose wide part is in use, and the sum of squares of a row.
inline constexpr const char *kWide = "wide", *kRowMoment = "moment";

/// The counts of a key that waits for a row.
struct Waiting {
  float count = 0, show = 0, click = 0;
  float day = 0;  ///< of the last use
};
inline constexpr int64_t kWaitingWidth = 4;
/// Names of waiting keys and of what is kept of them, among the states of a table; the second is
/// also a folder in that of a table.
inline constexpr const char *kWaitingKeys = "waiting.keys", *kWaiting = "waiting";

/// A number of each sample: a constant, or a field of the data.
struct SampleNumber {
  double constant = 0;
  std::string field = {};  ///< "" for the constant
};

struct RowPolicy {
  // A key gets a row after the step with which it meets all that are set.
  int64_t entry_count = 1;                  ///< occurrences
  std::optional<double> entry_score = {};   ///< of the shows and clicks so far
  std::optional<double> entry_chance = {};  ///< of each step with the key

  std::optional<SampleNumber> show = {}, click = {};
  double show_weight = 0.1, click_weight = 1;

  // A row is removed at the end of a day that meets one of these.
  std::optional<double> score_below = {};
  int64_t unseen_days = 0;  ///< days without a use; 0: no bound
  int64_t max_rows = 0;     ///< rows of the whole table: those with the highest scores; 0: no bound
  float decay = 1;          ///< of shows and clicks, a day

  // The last columns of a row are zeros and are not trained until its score is high enough.
  int64_t wide_columns = 0;  ///< 0: all columns are there from the start
  double wide_score = 0;

  // Updates.
  std::optional<double> row_moment = {};  ///< Adagrad has one sum of a row; RowExtras's initial
  std::optional<std::pair<double, double>> bounds = {};  ///< of weights, after each update
  bool divides_by_show = false;                          ///< gradients, by the shows of the step

  /// Whether keys wait before they have rows.
  bool waits() const { return entry_count > 1 || entry_score || entry_chance; }
  bool counts_waiting() const { return entry_count > 1 || entry_score; }
  bool removes() const { return score_below || unseen_days > 0 || max_rows > 0; }
  bool keeps_statistics() const { return show || click || removes(); }
  /// Whether steps must say what they have seen of keys.
  bool observes() const { return waits() || keeps_statistics(); }

  /// The float32 numbers of each row, in the order of its record.
  std::vector<std::string> columns() const;

  double score(float show, float click) const {
    return show_weight * (static_cast<double>(show) - static_cast<double>(click)) +
           click_weight * static_cast<double>(click);
  }
  /// Shows and clicks as they are on a later day.
  RowStatistics on_day(RowStatistics of, int64_t day) const;
  /// Adds a use on a day.
  void use(RowStatistics& row, const KeyUse& use, int64_t day) const;
  /// Adds a use of a waiting key; gives whether the key now meets the count and the score.
  bool use(Waiting& key, const KeyUse& use, int64_t day) const;
  /// Whether score or unused days remove a row when a day ends.
  bool is_removed(const RowStatistics& row, int64_t ended) const;
};

}  // namespace paddle::tables
