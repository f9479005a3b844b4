#include "program/model_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "program/folders.h"

namespace paddle::program {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCurrent = "CURRENT";
constexpr const char* kModule = "module.txt";
constexpr uint64_t kMaxName = 256;

bool has_version(const std::string& store, const std::string& version) {
  return is_step_name(version) && file_exists((fs::path(store) / version / kModule).string());
}

}  // namespace

bool is_store(const std::string& folder) {
  return file_exists((fs::path(folder) / kCurrent).string());
}

std::string current_version(const std::string& store) {
  const std::string path = (fs::path(store) / kCurrent).string();
  std::string name(trim(read_file(path, kMaxName, ErrorCode::kModel)));
  if (!has_version(store, name))
    fail(ErrorCode::kModel, path, ": names '", printable(name),
         "', which is not a version in this folder");
  return name;
}

std::vector<std::string> list_versions(const std::string& store) {
  std::vector<std::string> out;
  for (const std::string& name : list_directory(store, ErrorCode::kModel))
    if (has_version(store, name)) out.push_back(name);
  std::sort(out.begin(), out.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);
  });
  return out;
}

void set_current_version(const std::string& store, const std::string& version) {
  if (!has_version(store, version))
    fail(ErrorCode::kUsage, store, ": has no version '", version, "'",
         did_you_mean(version, list_versions(store)), "; it has ",
         join(list_versions(store), ", "));
  write_file_atomically((fs::path(store) / kCurrent).string(), version + "\n");
}

void sync_folder(const std::string& folder) {
  for (const auto& each : fs::recursive_directory_iterator(folder)) {
    const int file = ::open(each.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    ::fsync(file);
    ::close(file);
  }
}

}  // namespace paddle::program
