#pragma once
// The search for schedules of compiled fusion groups (compiler/codegen/schedule.h): records the
// groups of a plan, times the choices for each in isolation, and keeps those that beat the default
// in the table of this processor on disk. Results keep their bits.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/schedule.h"

namespace paddle::tune {

/// The setting of a search, which no config states: runs read the table on disk.
inline constexpr const char* kSchedules = "codegen.schedules";
inline constexpr const char* kAsCached = "as cached";
inline constexpr const char* kSearched = "searched";

struct GroupProblem {
  FusedRequest request;
  codegen::ScheduledGroup group;
  int64_t uses = 0;  ///< in the plans that were made
};

/// Records groups while plans are made. Those of the table on disk are not recorded: they were
/// searched before.
class GroupRecorder final : public codegen::ScheduleHook {
 public:
  std::optional<codegen::Schedule> choose(const FusedRequest& request,
                                          const codegen::ScheduledGroup& group) override;
  std::vector<GroupProblem> take();

 private:
  std::map<std::string, GroupProblem> problems_;  ///< by key
};

class ScheduleSearch {
 public:
  /// Times choices for about `seconds`; whether any is faster than the default. Searches once.
  bool find(const std::vector<GroupProblem>& problems, double seconds);
  /// Chooses what was found.
  codegen::ScheduleHook* hook() { return &found_; }
  bool searched() const { return searched_; }
  size_t size() const { return found_.schedules.size(); }
  /// Writes the table to disk and returns its path; "" without a cache folder.
  std::string publish() const;

 private:
  class Found final : public codegen::ScheduleHook {
   public:
    std::optional<codegen::Schedule> choose(const FusedRequest& request,
                                            const codegen::ScheduledGroup& group) override;
    std::map<std::string, codegen::Schedule> schedules;  ///< by key
  };
  Found found_;
  bool searched_ = false;
};

}  // namespace paddle::tune
