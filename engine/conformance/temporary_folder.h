#pragma once
// A folder for the files of a check.

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"

namespace paddle::conformance {

/// A folder that is removed with this.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_((std::filesystem::temp_directory_path() / "paddle-check-XXXXXX").string()) {
    if (!::mkdtemp(path_.data())) fail(ErrorCode::kDevice, path_, ": cannot be made");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace paddle::conformance
