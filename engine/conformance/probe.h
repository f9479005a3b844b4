#pragma once
// The parts that a plug-in offers, or why it does not load, as a child process finds out.

#include <string>
#include <utility>
#include <vector>

namespace paddle::conformance {

struct Probe {
  std::string name, version;  ///< as the file states them; "" if it does not
  std::string fault;          ///< "" if it loads
  /// "operations", "kernels", "devices", …, each with the names, without empty ones.
  std::vector<std::pair<std::string, std::vector<std::string>>> parts;
};

/// Loads the file in a child process, which may take as many seconds of processor time.
Probe probe_plugin(const std::string& path, double timeout_seconds);

}  // namespace paddle::conformance
