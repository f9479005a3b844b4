#include "base/scratch_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/files.h"

namespace paddle {

ScratchFolder::ScratchFolder() {
  const char* const given = std::getenv("TMPDIR");
  const std::string on_disk = given && *given ? given : "/tmp";
  // The number of the process tells whose folder it is if the process is killed.
  const std::string name = "paddle-" + std::to_string(::getpid()) + "-XXXXXX";
  for (const std::string& parent : {std::string("/dev/shm"), on_disk}) {
    if (!is_directory(parent)) continue;
    path_ = parent + "/" + name;
    if (::mkdtemp(path_.data())) return;
  }
  fail(ErrorCode::kDevice, on_disk, "/", name,
       ": the folder cannot be made: ", std::strerror(errno));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace paddle
