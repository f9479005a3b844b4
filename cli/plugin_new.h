#pragma once
// `paddle plugin new`: a file to start a plug-in from.

#include <string>
#include <vector>

namespace paddle::cli {

struct PluginTemplate {
  std::string kind;  ///< operator, kernel, pass or rules
  std::string name;
  std::string output;  ///< "": NAME.plugin.yaml or NAME.cc in the current folder
};

/// "operator", "kernel", …
std::vector<std::string> plugin_kinds();
/// Writes the file and returns what to do next, a line each. kUsage for a name that is not a word
/// in lower case, and for a file that exists.
std::string write_plugin_template(const PluginTemplate& options);

}  // namespace paddle::cli
