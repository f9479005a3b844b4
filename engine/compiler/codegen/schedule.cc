#include "compiler/codegen/schedule.h"

#include <algorithm>
#include <charconv>

#include "base/file_cache.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/timing_conditions.h"
#include "compiler/codegen/cache.h"

namespace paddle::codegen {
namespace {

constexpr const char* kHeader = "paddle-schedules 1";
constexpr size_t kMaxEntries = 20'000;
constexpr int64_t kMaxElements = int64_t{1} << 40;

thread_local ScheduleHook* current_hook = nullptr;

std::map<std::string, Schedule> parse_table(const std::string& content,
                                            const std::string& conditions) {
  std::map<std::string, Schedule> out;
  const std::vector<std::string> lines = split(content, '\n');
  if (lines.size() < 2 || lines[0] != kHeader || lines[1] != conditions) return out;
  for (size_t i = 2; i < lines.size() && out.size() < kMaxEntries; ++i) {
    const size_t space = lines[i].find(' ');
    if (space != 16) continue;
    if (const auto schedule = parse_schedule(lines[i].substr(space + 1)))
      out[lines[i].substr(0, space)] = *schedule;
  }
  return out;
}

}  // namespace

std::string text(const Schedule& s) {
  return str("unroll=", s.unroll, " grain=", s.grain, " tile=", s.tile);
}

std::optional<Schedule> parse_schedule(const std::string& text) {
  Schedule out;
  const std::vector<std::string> words = split(text, ' ');
  static constexpr const char* kNames[] = {"unroll=", "grain=", "tile="};
  int64_t values[3] = {};
  if (words.size() != 3) return std::nullopt;
  for (size_t i = 0; i < 3; ++i) {
    if (!words[i].starts_with(kNames[i])) return std::nullopt;
    const char* const begin = words[i].data() + std::string_view(kNames[i]).size();
    const char* const end = words[i].data() + words[i].size();
    const auto [at, error] = std::from_chars(begin, end, values[i]);
    if (error != std::errc() || at != end || values[i] < 0 || values[i] > kMaxElements)
      return std::nullopt;
  }
  if (values[0] != 1 && values[0] != 2 && values[0] != 4 && values[0] != 8) return std::nullopt;
  out.unroll = static_cast<int>(values[0]);
  out.grain = values[1];
  out.tile = values[2];
  return out;
}

ScheduleHookScope::ScheduleHookScope(ScheduleHook* hook) : before_(current_hook) {
  current_hook = hook;
}

ScheduleHookScope::~ScheduleHookScope() { current_hook = before_; }

ScheduleTable& ScheduleTable::of_process() {
  static ScheduleTable& table = *new ScheduleTable(default_cache_folder());
  return table;
}

std::string ScheduleTable::path() const {
  if (folder_.empty()) return "";
  return str(folder_, "/", hex(fnv1a(timing_conditions())), ".schedules");
}

std::map<std::string, Schedule>& ScheduleTable::entries() {
  const std::string conditions = timing_conditions();
  const auto [it, added] = tables_.try_emplace(conditions);
  if (added && !folder_.empty()) it->second = parse_table(read_own_file(path()), conditions);
  return it->second;
}

std::optional<Schedule> ScheduleTable::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto& known = entries();
  const auto it = known.find(key);
  if (it == known.end()) return std::nullopt;
  return it->second;
}

void ScheduleTable::keep(const std::map<std::string, Schedule>& schedules) {
  const std::lock_guard lock(mutex_);
  auto& known = entries();
  if (folder_.empty()) {
    known.insert(schedules.begin(), schedules.end());
    return;
  }
  // Another process may have added to the file.
  for (const auto& [key, schedule] : parse_table(read_own_file(path()), timing_conditions()))
    known[key] = schedule;
  for (const auto& [key, schedule] : schedules) known[key] = schedule;
  std::string content = str(kHeader, "\n", timing_conditions(), "\n");
  for (const auto& [key, schedule] : known) content += key + " " + text(schedule) + "\n";
  write_own_file(folder_, path(), content);
}

Schedule schedule_of(const FusedRequest& request, const ScheduledGroup& group) {
  if (current_hook)
    if (const auto chosen = current_hook->choose(request, group)) return *chosen;
  return ScheduleTable::of_process().find(group.key).value_or(Schedule{});
}

}  // namespace paddle::codegen
