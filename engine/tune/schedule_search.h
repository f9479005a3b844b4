#pragma once
// The search for schedules of compiled fusion groups (compiler/codegen/schedule.h): records the
// groups of a plan, times the choices for each in isolation, and keeps those that beat the default
// in the table of this processor on disk. Results keep their bits.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/schedule.h"
#include "tune/findings.h"
#include "tune/target.h"

namespace paddle::tune {

/// The setting of a search, which no config states: runs read the table on disk.
inline constexpr const char* kSchedules = "codegen.schedules";
inline constexpr const char* kAsCached = "as cached";

struct GroupProblem {
  FusedRequest request;
  codegen::ScheduledGroup group;
  int64_t uses = 0;  ///< in the plans that were made
};

/// Records groups while plans are made, which choose as `inner` does; null: by the table on disk.
/// Those of the table on disk are not recorded: they were searched before.
class GroupRecorder final : public codegen::ScheduleHook {
 public:
  explicit GroupRecorder(codegen::ScheduleHook* inner = nullptr) : inner_(inner) {}
  std::optional<codegen::Schedule> choose(const FusedRequest& request,
                                          const codegen::ScheduledGroup& group) override;
  std::vector<GroupProblem> problems() const;

 private:
  codegen::ScheduleHook* inner_;
  std::map<std::string, GroupProblem> problems_;  ///< by key
};

class ScheduleSearch {
 public:
  /// Times choices for groups that were not timed yet, the most costly first. The name of a table
  /// with those that are faster than the default, or "" if there are none.
  std::string find(const std::vector<GroupProblem>& problems, const Budget& budget);
  /// Chooses as the table of that name; null for others.
  codegen::ScheduleHook* hook(const std::string& name);
  /// Writes the table to the cache on disk and returns its path; "" without a cache folder.
  std::string publish(const std::string& name);
  Findings& findings() { return findings_; }
  const Findings& findings() const { return findings_; }

 private:
  class Found final : public codegen::ScheduleHook {
   public:
    std::optional<codegen::Schedule> choose(const FusedRequest& request,
                                            const codegen::ScheduledGroup& group) override;
    std::map<std::string, codegen::Schedule> schedules;  ///< by key
  };
  Found* open(const std::string& name);

  Findings findings_{"searched", ""};
  std::map<std::string, Found> tables_;  ///< those in use
};

}  // namespace paddle::tune
