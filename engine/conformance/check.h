#pragma once
// The checks of `paddle plugin check`: whether a plug-in loads, and whether its operations and
// kernels compute what their bodies say, and its transports, tables and readers do what those of
// the engine do. Everything of the plug-in runs in child processes, so that one that crashes or
// never ends is one failed case.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/every_operation.h"

namespace paddle::conformance {

struct CheckOptions {
  std::string path;
  std::string group;  ///< "" for all
  std::string only;   ///< name of a case, or of an operation; "" for all
  /// Of the dataset that readers are checked with: "path=rows.fvecs".
  std::vector<std::string> keys = {};
  uint64_t seed = 1;
  bool quick = false;  ///< fewer shapes, and gradients of first order only
  double timeout_seconds = 60;
};

enum class Status : uint8_t { kPassed, kFailed, kSkipped };
const char* text(Status status);

struct Case {
  std::string group;
  std::string name;
  Status status = Status::kPassed;
  std::string message = {};    ///< why it failed or was skipped, or what it has covered
  std::string reproduce = {};  ///< the command that runs this case again
  double seconds = 0;
};

struct Report {
  std::string plugin, version, sha256;
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

/// Checks a plug-in. kUsage if there is no such file, group or case; a file that cannot be loaded
/// is a failed case.
Report check_plugin(const CheckOptions& options);

}  // namespace paddle::conformance
