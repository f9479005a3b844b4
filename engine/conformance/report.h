#pragma once
// The results of checks: cases by group, and how far a plug-in has proven itself.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/every_operation.h"

namespace paddle::conformance {

enum class Status : uint8_t { kPassed, kFailed, kSkipped };
const char* text(Status status);

struct Case {
  std::string group;
  std::string name;
  Status status = Status::kPassed;
  std::string message = {};    ///< why it failed or was skipped, or what it has covered
  std::string reproduce = {};  ///< the command that runs this case again
  /// Of a comparison that failed; "" if it was none.
  std::string found = {}, expected = {};
  double tolerance = 0;  ///< how far the numbers might be apart
  double seconds = 0;
};

struct Report {
  std::string plugin, version, sha256;  ///< `plugin`: of a device of the engine, its name
  uint64_t seed = 1;
  bool quick = false;
  bool is_whole = true;  ///< not only one group, or one case
  std::vector<Case> cases;
  size_t count(Status status, const std::string& group = "") const;
};

/// The operations of the engine that cases of a group ("operators", "gradients") have exercised on
/// a device, of as many.
Coverage coverage_of(const Report& report, const std::string& group);

/// How far a plug-in has proven itself, each level with all before it.
enum class Level : uint8_t {
  kNone,
  kLoads,
  kComputes,     ///< no failure in what operations, devices and other parts compute
  kTrains,       ///< nor in gradients
  kDistributed,  ///< nor between ranks, of which something was checked
  kComplete,     ///< nothing was skipped
};
const char* text(Level level);
/// The highest level that the cases of a report prove; those of a single group prove none.
Level level_of(const Report& report);

/// "load", "operators", …: in the order in which they run.
const std::vector<std::string>& groups();

}  // namespace paddle::conformance
