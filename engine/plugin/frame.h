#pragma once
// Which plug-in function runs on a thread, so that a crash inside one names it.

#include <string>

namespace paddle::plugin {

/// Marks the thread as inside a function of a plug-in while it lives. The texts outlive it.
class Frame {
 public:
  Frame(const char* plugin, const char* function, const char* location);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
};

/// Handles signals that end the process: they first write a line that names the plug-in, if the
/// thread is inside one. The exit status stays that of the signal.
void attribute_crashes();

}  // namespace paddle::plugin
