#pragma once
// metrics.jsonl: one JSON object a line, appended and flushed line by line.

#include <cmath>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace paddle::train {

struct LogLine;

/// JSON has no NaN; it becomes null.
template <class Json>
Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

/// A number of a line of the log; NaN if the line has none there. Lines come from files: a value
/// may be of any type.
template <class Json>
double number_at(const Json& line, const std::string& key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->template get<double>() : std::nan("");
}

/// The step of a line; 0 if it has none.
template <class Json>
int64_t step_of(const Json& line) {
  const auto found = line.find("step");
  return found != line.end() && found->is_number_integer() ? found->template get<int64_t>() : 0;
}

/// The kind of a line: "train", "valid", "test" or "end"; "" if it has none.
template <class Json>
std::string kind_of(const Json& line) {
  const auto found = line.find("kind");
  return found != line.end() && found->is_string() ? found->template get<std::string>() : "";
}

/// Whether a key of metrics.jsonl is not the name of a metric.
bool is_log_key(std::string_view key);
/// Whether a metric cannot have this name: it would hide a key of metrics.jsonl, or of the line
/// that `paddle eval` prints.
bool is_reserved_name(std::string_view name);

/// The lines of a log of JSON objects up to a step, without damaged ones and without its end; with
/// `evaluates_again` without the evaluation of that very step either. "" if the file is missing.
std::string kept_lines(const std::string& path, int64_t step, bool evaluates_again = false);

class MetricsLog {
 public:
  /// Opens the file; on resume (`from_step` >= 0), lines of later steps are dropped first, and with
  /// `evaluates_again` the evaluation of that very step.
  MetricsLog(const std::string& path, int64_t from_step, bool evaluates_again = false);
  void write(const LogLine& line);
  void end(int64_t step, int64_t traces, int64_t plans, size_t planned_bytes, double seconds,
           int64_t skipped, std::optional<int64_t> skipped_updates);

 private:
  void append(const std::string& text);
  std::string path_;
  std::ofstream file_;
};

}  // namespace paddle::train
