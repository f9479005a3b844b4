#pragma once
// The checks of `paddle plugin check`: whether a plug-in loads, and whether its operations and
// kernels compute what their bodies say, and its transports, tables and readers do what those of
// the engine do. Everything of the plug-in runs in child processes, so that one that crashes or
// never ends is one failed case.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/report.h"

namespace paddle::conformance {

struct CheckOptions {
  std::string path;    ///< of the plug-in; "" for a device of the engine, or of a loaded plug-in
  std::string device;  ///< only this one: "relay", "cpu"; "" for all of the plug-in
  /// Of the plug-in: "window=4".
  std::vector<std::string> options = {};
  std::string group;  ///< "" for all
  std::string only;   ///< name of a case, or of an operation; "" for all
  /// Of the dataset that readers are checked with: "path=rows.fvecs".
  std::vector<std::string> keys = {};
  uint64_t seed = 1;
  bool quick = false;           ///< fewer shapes, and gradients of first order only
  double timeout_seconds = 60;  ///< of a case with `quick`; otherwise four times as many
};

/// Checks a plug-in, or a device. Throws kUsage for a file, device, group or case that does not
/// exist; a file that cannot be loaded is a failed case.
Report check_plugin(const CheckOptions& options);

}  // namespace paddle::conformance
