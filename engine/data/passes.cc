#include "data/passes.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "base/duration.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/config/dataset_config.h"
#include "data/sources/record_source.h"

namespace paddle::data {
namespace {

namespace fs = std::filesystem;
using config::Node;
using config::Schema;
using config::Section;
using config::Spec;

constexpr int64_t kHours = 24;
constexpr double kDay = 86400;
constexpr const char *kDayMark = "{day:", *kHourMark = "{hour:";

/// Day and hour of a pass, in UTC.
std::tm time_of(const PassOptions& passes, int64_t number) {
  const int64_t at = passes.first + number;
  const std::time_t seconds = passes.hourly ? at * 3600 : at * 86400;
  std::tm out{};
  gmtime_r(&seconds, &out);
  return out;
}

std::string formatted(const std::string& format, const std::tm& time) {
  char text[256] = {};
  const size_t size = std::strftime(text, sizeof text, format.c_str(), &time);
  return {text, size};
}

/// Calls `use(mark, format)` for each `{day:…}` and `{hour:…}` of a pattern and puts what it gives
/// in its place.
template <class Use>
std::string replace_marks(const std::string& pattern, const Use& use) {
  std::string out;
  for (size_t at = 0; at < pattern.size();) {
    const std::string_view rest = std::string_view(pattern).substr(at);
    const std::string_view mark = rest.starts_with(kDayMark)    ? kDayMark
                                  : rest.starts_with(kHourMark) ? kHourMark
                                                                : "";
    const size_t end = mark.empty() ? std::string_view::npos : rest.find('}');
    if (end == std::string_view::npos) {
      out += pattern[at++];
      continue;
    }
    out += use(mark == kHourMark, std::string(rest.substr(mark.size(), end - mark.size())));
    at += end + 1;
  }
  return out;
}

/// Two or four digits at a place.
bool read_digits(std::string_view text, size_t at, size_t digits, int& out) {
  if (at + digits > text.size()) return false;
  const char* const end = text.data() + at + digits;
  return std::from_chars(text.data() + at, end, out).ptr == end;
}

/// "2026-01-01" or "2026-01-01/05" in days or hours since 1970-01-01.
int64_t read_time(const Section& s, const char* key, bool hourly) {
  const std::string& text = s.text(key);
  int year = 0, month = 0, day = 0, hour = 0;
  const bool is_date = text.size() >= 10 && text >= "1970" && read_digits(text, 0, 4, year) &&
                       text[4] == '-' && read_digits(text, 5, 2, month) && text[7] == '-' &&
                       read_digits(text, 8, 2, day);
  const bool has_hour = is_date && text.size() == 13 && text[10] == '/' &&
                        read_digits(text, 11, 2, hour) && hour >= 0 && hour < kHours;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!is_date || !date.ok() || (text.size() != 10 && !has_hour))
    throw Error(ErrorCode::kConfig,
                str("data.passes.", key, ": '", printable(text),
                    "' is not a time of a pass; expected YYYY-MM-DD or YYYY-MM-DD/HH"),
                s.location(key));
  if (has_hour && !hourly)
    throw Error(ErrorCode::kConfig,
                str("data.passes.", key,
                    ": passes are days, as the path has no {hour:…}; expected "
                    "YYYY-MM-DD"),
                s.location(key));
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return hourly ? days * kHours + hour : days;
}

/// The patterns that are wrong are rejected.
void check_pattern(const Section& s, const PassOptions& passes) {
  const auto reject = [&](const std::string& why) {
    throw Error(ErrorCode::kConfig, "data.passes.path: " + why, s.location("path"));
  };
  bool has_day = false;
  replace_marks(passes.path, [&](bool is_hour, const std::string& format) {
    has_day = has_day || !is_hour;
    if (formatted(format, time_of(passes, 0)).empty())
      reject(str("'", format, "' is not a format of a time, such as %Y%m%d or %H"));
    return "";
  });
  if (!has_day) reject("names no day; expected {day:%Y%m%d} in it");
  if (pass_path(passes, 0) == pass_path(passes, 1) ||
      (passes.hourly && pass_path(passes, 0) == pass_path(passes, kHours)))
    reject("is the same for several passes");
}

}  // namespace

Spec passes_spec() {
  Schema s;
  s.add("path", Spec::text().required().doc(
                    "files of a pass, with {day:%Y%m%d} and {hour:%H}; * and ? match several"))
      .add("done", Spec::text().doc("file in their folder that says that a pass is whole"))
      .add("from", Spec::text().required().doc("the first pass: YYYY-MM-DD or YYYY-MM-DD/HH"))
      .add("to", Spec::text().doc("the last pass; default: no end"))
      .add("wait", Spec::duration().at_least(0).fallback("20m").doc(
                       "how long a pass is waited for before it counts as missing"))
      .add("predict_first",
           Spec::boolean().fallback("false").doc("evaluate each pass before it is trained"))
      .add("shrink", Spec::duration().at_least(0).fallback("1d").doc(
                         "days of passes after which a day of the tables ends; 0: never"));
  return Spec::map(std::move(s));
}

PassOptions read_passes(const Section& s) {
  PassOptions out;
  out.path = resolved_path(s.at("path"));
  out.hourly = out.path.find(kHourMark) != std::string::npos;
  out.first = read_time(s, "from", out.hourly);
  if (s.has("to")) {
    out.count = read_time(s, "to", out.hourly) - out.first + 1;
    if (*out.count < 1)
      throw Error(ErrorCode::kConfig, "data.passes.to: is before `from`", s.location("to"));
  }
  if (s.has("done")) out.done = s.text("done");
  if (out.done.find('/') != std::string::npos)
    throw Error(ErrorCode::kConfig,
                "data.passes.done: expected the name of a file in the folder of a pass",
                s.location("done"));
  out.wait = s.seconds("wait");
  out.predict_first = s.boolean("predict_first");
  const double days = s.seconds("shrink") / kDay;
  if (days != std::floor(days) || days > 1e6)
    throw Error(ErrorCode::kConfig, "data.passes.shrink: expected whole days, such as 1d",
                s.location("shrink"));
  out.shrink_days = static_cast<int64_t>(days);
  check_pattern(s, out);
  return out;
}

void expand_passes(Node& section) {
  const Node* const passes = section.find("passes");
  Node* const train = section.find("train");
  const Node* const path = passes ? passes->find("path") : nullptr;
  if (!path || !path->is_scalar() || !train || !train->is_map() || train->find("path")) return;
  Node all = *path;
  all.text = replace_marks(path->text, [](bool, const std::string& format) {
    std::string out = "*";
    for (const char c : format)
      if (c == '/') out += "/*";
    return out;
  });
  train->set("path", std::move(all));
}

std::string pass_name(const PassOptions& passes, int64_t number) {
  return formatted(passes.hourly ? "%Y-%m-%d/%H" : "%Y-%m-%d", time_of(passes, number));
}

std::string pass_path(const PassOptions& passes, int64_t number) {
  const std::tm time = time_of(passes, number);
  return replace_marks(passes.path,
                       [&](bool, const std::string& format) { return formatted(format, time); });
}

int64_t pass_day(const PassOptions& passes, int64_t number) {
  if (!passes.hourly) return number;
  return (passes.first + number) / kHours - passes.first / kHours;
}

bool is_pass_ready(const PassOptions& passes, int64_t number) {
  const std::string path = pass_path(passes, number);
  if (!passes.done.empty() && !file_exists((fs::path(path).parent_path() / passes.done).string()))
    return false;
  try {
    const std::vector<std::string> files = expand_pattern(path);
    return std::any_of(files.begin(), files.end(),
                       [](const std::string& file) { return file_exists(file); });
  } catch (const Error&) {
    return false;  // nothing matches
  }
}

}  // namespace paddle::data
