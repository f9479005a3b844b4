#include "support/real_data.h"

#include <cstdlib>
#include <filesystem>

namespace paddle {
namespace {

std::filesystem::path root() {
  const char* configured = std::getenv("PADDLE_TEST_DATA");
  return configured && *configured ? configured : "../shared/data";
}

}  // namespace

std::optional<std::string> real_data(const std::string& relative) {
  const std::filesystem::path path = root() / relative;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  return path.string();
}

std::string missing_data(const std::string& relative) {
  return "no " + relative + " in " + root().string() +
         " (set PADDLE_TEST_DATA to the folder of real data)";
}

}  // namespace paddle
