#pragma once
// `paddle plugin new`: a file to start a plug-in from.

#include <string>
#include <vector>

namespace paddle::cli {

struct PluginTemplate {
  std::string kind;  ///< of plugin_kinds()
  std::string name;
  /// "": NAME.plugin.yaml, NAME.cc or NAME.c in the current folder; the folder NAME with `cmake`.
  std::string output;
  bool cmake = false;  ///< a project of CMake: a folder with the source and CMakeLists.txt
};

/// "operator", "kernel", …
std::vector<std::string> plugin_kinds();
/// Writes the file and returns what to do next, a line each. kUsage for a name that is not a word
/// in lower case, for a file that exists, and for a project of a kind without code.
std::string write_plugin_template(const PluginTemplate& options);

}  // namespace paddle::cli
