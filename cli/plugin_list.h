#pragma once
// `paddle plugin list`: the plug-ins that are loaded or named, and why others cannot be loaded.

#include <string>

namespace paddle::cli {

struct PluginListing {
  bool json = false;
  /// Load each in a child process: those of the command line, PADDLE_PLUGINS, the config and the
  /// user's list.
  bool probe = false;
  std::string config;  ///< with `probe`: a config whose plug-ins are listed, too; "" for none
  double timeout_seconds = 10;  ///< of processor time, for one plug-in
};

/// The text to print.
std::string list_plugins(const PluginListing& listing);

}  // namespace paddle::cli
