#pragma once
// Lines that child processes write when a plug-in ends them, in memory.

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "plugin/frame.h"

namespace paddle::conformance {

class CrashLines {
 public:
  CrashLines() : descriptor_(::memfd_create("crashes", MFD_CLOEXEC)) {}
  ~CrashLines() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  CrashLines(const CrashLines&) = delete;
  CrashLines& operator=(const CrashLines&) = delete;
  /// In a child.
  void receive() const {
    if (descriptor_ >= 0) plugin::write_crashes_to(descriptor_);
  }
  /// The answer of a child, with what it wrote before it ended.
  std::string with_line(const std::string& answer) const {
    std::string line(1000, '\0');
    const ssize_t size = descriptor_ < 0 ? 0 : ::pread(descriptor_, line.data(), line.size(), 0);
    if (size <= 0) return answer;
    if (::ftruncate(descriptor_, 0) == 0) ::lseek(descriptor_, 0, SEEK_SET);
    line.resize(static_cast<size_t>(size));
    line = line.substr(0, line.find('\n'));
    constexpr std::string_view kError = "error: ";
    if (line.starts_with(kError)) line.erase(0, kError.size());
    return answer + ": " + line;
  }

 private:
  int descriptor_;
};

}  // namespace paddle::conformance
