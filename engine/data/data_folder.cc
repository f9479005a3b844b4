#include "data/data_folder.h"

#include <filesystem>

#include "base/environment.h"

namespace paddle::data {

std::string data_folder() {
  namespace fs = std::filesystem;
  if (const std::string stated = environment("PADDLE_DATA"); !stated.empty())
    return fs::absolute(stated).lexically_normal().string();
  const std::string cache = environment("XDG_CACHE_HOME"), home = environment("HOME");
  const fs::path root = !cache.empty()  ? fs::path(cache)
                        : !home.empty() ? fs::path(home) / ".cache"
                                        : fs::path("/tmp");
  return (root / "paddle" / "data").lexically_normal().string();
}

}  // namespace paddle::data
