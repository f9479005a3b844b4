#pragma once
// `paddle plugin build`: a shared object from the source of a plug-in.

#include <string>
#include <vector>

namespace paddle::cli {

struct PluginBuild {
  std::string source;    ///< a .cc or .c file, or a folder with such files
  std::string output;    ///< "": NAME.so next to the source, or in the folder
  bool debug = false;    ///< without optimization, with symbols
  std::string sanitize;  ///< "address", …; "" for none
};

/// Compiles and links with $CXX (or g++), then reads the result as a loader does. Gives the path of
/// the shared object. kUsage for a source that is not there, kDifference if the compiler fails (its
/// messages go to standard error).
std::string build_plugin(const PluginBuild& build);

}  // namespace paddle::cli
