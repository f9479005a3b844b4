#pragma once
// The state of a process that loading a plug-in must leave as it is, besides what the loader puts
// back (plugin/process_state.h).

#include <string>
#include <vector>

namespace paddle::conformance {

class Environment {
 public:
  /// That of now.
  Environment();
  /// "" or what is different in another one: "it changes the handlers of signals".
  std::string change(const Environment& to) const;

 private:
  std::vector<void (*)(int)> handlers_;
  std::vector<std::string> variables_;
  size_t threads_ = 0;
};

}  // namespace paddle::conformance
