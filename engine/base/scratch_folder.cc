#include "base/scratch_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"

namespace paddle {

ScratchFolder::ScratchFolder() {
  const char* const given = std::getenv("TMPDIR");
  const std::string on_disk = given && *given ? given : "/tmp";
  for (const std::string& parent : {std::string("/dev/shm"), on_disk}) {
    if (!is_directory(parent)) continue;
    path_ = parent + "/paddle-XXXXXX";
    if (::mkdtemp(path_.data())) return;
  }
  fail(ErrorCode::kDevice, on_disk,
       "/paddle-XXXXXX: the folder cannot be made: ", std::strerror(errno));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace paddle
