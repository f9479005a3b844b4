#include "data/data_folder.h"

#include <cstdlib>
#include <filesystem>

namespace paddle::data {

std::string data_folder() {
  namespace fs = std::filesystem;
  const auto variable = [](const char* name) -> std::string {
    const char* const value = std::getenv(name);
    return value ? value : "";
  };
  if (const std::string stated = variable("PADDLE_DATA"); !stated.empty())
    return fs::absolute(stated).lexically_normal().string();
  const std::string cache = variable("XDG_CACHE_HOME"), home = variable("HOME");
  const fs::path root = !cache.empty()  ? fs::path(cache)
                        : !home.empty() ? fs::path(home) / ".cache"
                                        : fs::path("/tmp");
  return (root / "paddle" / "data").lexically_normal().string();
}

}  // namespace paddle::data
