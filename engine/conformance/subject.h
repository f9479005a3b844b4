#pragma once
// The subject of checks: a plug-in, which each child process loads, or a device of the engine.

#include <memory>
#include <string>
#include <vector>

#include "config/document.h"
#include "conformance/kinds.h"
#include "plugin/plugin.h"

namespace paddle::conformance {

class Subject {
 public:
  /// `options` of the plug-in: "window=4". `path` "" for none.
  Subject(std::string path, const std::vector<std::string>& options);
  /// Loads the plug-in, if there is one, into this process, a child.
  void load() const;
  const plugin::Plugin& plugin() const;  ///< the same, of one that there is
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::shared_ptr<const config::Node> options_;  ///< null for none
};

/// An operation of the plug-in, or one that it has kernels of.
struct Description {
  std::string name;
  bool on_cpu = false;  ///< whether the plug-in has the operation, or a kernel of it for the CPU
  bool has_kernel = false;  ///< for the CPU
  bool sums_by_thread = false;
  std::string no_gradient;  ///< why it is not differentiated; "" if it is
  std::vector<std::string> traits;
  std::vector<std::string> devices;  ///< of the plug-in, that it has kernels for
};

/// The contents of a plug-in, as a child process that loads it tells.
struct Contents {
  std::vector<Description> operations;
  std::vector<std::string> passes, rules;
  Kinds kinds;
};

/// None, with the reason in `why`, if the plug-in cannot be loaded.
std::unique_ptr<Contents> describe(const Subject& subject, double timeout_seconds,
                                   std::string& why);

}  // namespace paddle::conformance
