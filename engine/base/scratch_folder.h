#pragma once
// A folder for files that live as long as a scope: content in memory, for readers of files.

#include <string>

namespace paddle {

/// A folder of this user only, which is removed with its files at the end of the scope. It is in
/// memory where the system has such a folder (/dev/shm), else in $TMPDIR or /tmp, and its name
/// starts with "paddle-PID-".
class ScratchFolder {
 public:
  /// kDevice if it cannot be made.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace paddle
