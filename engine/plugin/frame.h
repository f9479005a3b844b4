#pragma once
// Which plug-in function runs on a thread, so that a crash inside one names it.

#include <string>

#include "base/error.h"

namespace paddle::plugin {

/// The code of a thread: the plug-in and its version, the function, and the operation or the part
/// of the plug-in, with its place. Null outside of plug-ins.
struct FrameRecord {
  const char* plugin = nullptr;
  const char* function = nullptr;
  const char* subject = nullptr;
  const char* location = nullptr;
};

/// Marks the thread as inside a function of a plug-in while it lives. The texts outlive it.
class Frame {
 public:
  Frame(const char* plugin, const char* function, const char* subject, const char* location = "");
  /// The same on another thread.
  explicit Frame(const FrameRecord& record);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

 private:
  FrameRecord before_;
};
/// That of this thread.
FrameRecord current_frame();

/// Calls a function of a plug-in; a C++ exception that leaves it becomes an error.
template <class F>
auto call_plugin(const Frame&, const char* plugin, const char* subject, F&& f) {
  try {
    return f();
  } catch (const Error&) {
    throw;  // of the host, on the way through the plug-in
  } catch (const std::exception& e) {
    fail(ErrorCode::kInternal, subject, ": a C++ exception left the plug-in ", plugin, ": ",
         e.what());
  }
}

/// Handles signals that end the process: they first write a line that names the plug-in, if the
/// thread is inside one, or runs its code. The exit status stays that of the signal.
void attribute_crashes();
/// Writes these lines to a file instead of standard error.
void write_crashes_to(int descriptor);
/// Notes the memory of a plug-in's code, which holds this address, for threads of its own and for
/// its devices. `label` stays valid.
void note_code(const void* address, const char* label);

}  // namespace paddle::plugin
