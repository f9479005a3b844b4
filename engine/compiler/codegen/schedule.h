#pragma once
// Schedules of compiled fusion groups: how the code walks over memory. They are chosen by default
// from sizes; a search (tune/schedule_search.h) times the choices for a group on this processor and
// keeps the fastest in a table on disk, which later runs read. No choice changes a bit of the
// results.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "ops/core/fused.h"

namespace paddle::codegen {

struct Schedule {
  int unroll = 1;     ///< vectors that a pass of the inner loop computes: 1, 2, 4 or 8
  int64_t grain = 0;  ///< elements of a parallel task at least; 0: by the work on each
  int64_t tile = 0;  ///< elements of operands that are brought into order at once; 0: by their size

  bool operator==(const Schedule&) const = default;
};

/// "unroll=2 grain=4096 tile=0", and back; nothing for other texts and values out of range.
std::string text(const Schedule& schedule);
std::optional<Schedule> parse_schedule(const std::string& text);

/// The program, sizes and memory layout of a group, which decide its schedule.
struct ScheduledGroup {
  std::string key;       ///< 16 hexadecimal digits
  bool packs = false;    ///< operands are brought into order
  bool reduces = false;  ///< only `unroll` applies
};

/// Chooses schedules of groups that this thread compiles.
class ScheduleHook {
 public:
  virtual ~ScheduleHook() = default;
  /// Nothing: the table on disk, or the default.
  virtual std::optional<Schedule> choose(const FusedRequest& request,
                                         const ScheduledGroup& group) = 0;
};

/// Uses a hook on this thread; null: none.
class ScheduleHookScope {
 public:
  explicit ScheduleHookScope(ScheduleHook* hook);
  ~ScheduleHookScope();
  ScheduleHookScope(const ScheduleHookScope&) = delete;
  ScheduleHookScope& operator=(const ScheduleHookScope&) = delete;

 private:
  ScheduleHook* before_;
};

/// The table of this processor, instruction set and number of threads in a folder of the cache. It
/// is one file; a damaged one, or one that other users could have written, is ignored.
class ScheduleTable {
 public:
  /// With `folder` "" nothing is kept.
  explicit ScheduleTable(std::string folder) : folder_(std::move(folder)) {}
  /// The table in default_cache_folder().
  static ScheduleTable& of_process();

  std::optional<Schedule> find(const std::string& key);
  /// Adds schedules by key and writes the file. Without a folder that can be written they hold
  /// until the process ends.
  void keep(const std::map<std::string, Schedule>& schedules);
  /// The file for the present conditions; "" without a folder.
  std::string path() const;

 private:
  std::map<std::string, Schedule>& entries();

  std::string folder_;
  std::mutex mutex_;
  std::map<std::string, std::map<std::string, Schedule>> tables_;  ///< by conditions, then by key
};

/// The choice for a group: by the hook, the table on disk, or the default.
Schedule schedule_of(const FusedRequest& request, const ScheduledGroup& group);

}  // namespace paddle::codegen
