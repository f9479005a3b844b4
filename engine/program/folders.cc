#include "program/folders.h"

#include <fcntl.h>

#include <cstdio>

#include "base/error.h"

namespace paddle::program {

namespace fs = std::filesystem;

bool is_step_name(const std::string& name) {
  constexpr size_t kMaxDigits = 18;
  return !name.empty() && name.size() <= kMaxDigits &&
         name.find_first_not_of("0123456789") == std::string::npos;
}

void remove_folder(const fs::path& path) {
  std::error_code ignored;
  const std::string name = path.filename().string();
  const fs::path doomed = name.starts_with('.') ? path : path.parent_path() / (".removing-" + name);
  if (doomed != path) fs::rename(path, doomed, ignored);
  fs::remove_all(doomed, ignored);
}

void put_in_place(const fs::path& folder, const fs::path& place) {
  if (fs::exists(place) &&
      renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) == 0) {
    remove_folder(folder);
    return;
  }
  std::error_code error;
  if (fs::exists(place)) remove_folder(place);  // a file system that cannot exchange
  fs::rename(folder, place, error);
  if (error) fail(ErrorCode::kDevice, place.string(), ": ", error.message());
}

}  // namespace paddle::program
