#include "base/file_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <tuple>
#include <vector>

#include "base/files.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/text.h"

namespace paddle {
namespace {

constexpr std::string_view kCacheMagic = "PDLCACH1";
constexpr off_t kMaxFile = off_t{64} << 20;
constexpr int kWritesBetweenLooks = 64;

class OwnFile {
 public:
  explicit OwnFile(int descriptor) : descriptor_(descriptor) {}
  ~OwnFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  OwnFile(const OwnFile&) = delete;
  OwnFile& operator=(const OwnFile&) = delete;
  bool open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

bool write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = write(descriptor, content.data(), content.size());
    if (n <= 0) return false;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

uint64_t checksum(std::string_view content) {
  return crc32(std::as_bytes(std::span(content.data(), content.size())));
}

void put(std::string& out, uint64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

uint64_t number_at(std::string_view content, size_t at) {
  uint64_t value = 0;
  std::memcpy(&value, content.data() + at, sizeof value);
  return value;
}

bool make_folders(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0) return S_ISDIR(status.st_mode);
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0 && !make_folders(path.substr(0, slash))) return false;
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

}  // namespace

std::string read_own_file(const std::string& path) {
  const OwnFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status;
  if (!file.open() || fstat(file.descriptor(), &status) != 0) return {};
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022) != 0 ||
      status.st_size > kMaxFile)
    return {};
  std::string content(static_cast<size_t>(status.st_size), '\0');
  size_t have = 0;
  while (have < content.size()) {
    const ssize_t n = read(file.descriptor(), content.data() + have, content.size() - have);
    if (n <= 0) return {};
    have += static_cast<size_t>(n);
  }
  return content;
}

bool write_own_file(const std::string& folder, const std::string& path, std::string_view content) {
  if (!make_folders(folder)) return false;
  const std::string temporary = str(path, ".", getpid());
  const OwnFile file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.open()) return false;
  if (write_all(file.descriptor(), content) && rename(temporary.c_str(), path.c_str()) == 0)
    return true;
  unlink(temporary.c_str());
  return false;
}

FileCache::FileCache(std::string folder, std::string suffix, uint64_t limit)
    : folder_(std::move(folder)), suffix_(std::move(suffix)), limit_(limit) {}

std::string FileCache::path(const std::string& key) const {
  // The file contains the key, so keys with the same hash merely replace each other.
  const uint64_t hash = fnv1a(key);
  std::byte digits[sizeof hash];
  for (size_t i = 0; i < sizeof hash; ++i) digits[i] = static_cast<std::byte>(hash >> (8 * i));
  return folder_ + "/" + hex_digits(digits) + suffix_;
}

// A file is: magic, checksum of the rest, length of the key, key, content.

std::optional<std::string> FileCache::find(const std::string& key) const {
  constexpr size_t kHead = kCacheMagic.size() + 16;
  if (folder_.empty()) return std::nullopt;
  std::string content = read_own_file(path(key));
  if (content.size() < kHead + key.size() ||
      std::string_view(content).substr(0, kCacheMagic.size()) != kCacheMagic)
    return std::nullopt;
  const std::string_view body = std::string_view(content).substr(kCacheMagic.size() + 8);
  if (number_at(content, kCacheMagic.size()) != checksum(body) ||
      number_at(body, 0) != key.size() || body.substr(8, key.size()) != key)
    return std::nullopt;
  content.erase(0, kHead + key.size());
  return content;
}

void FileCache::keep(const std::string& key, std::string_view content) {
  if (folder_.empty()) return;
  const std::lock_guard lock(mutex_);
  std::string body;
  put(body, key.size());
  body += key;
  body += content;
  std::string file(kCacheMagic);
  // The checksum detects a file that a crash of the machine has truncated.
  put(file, checksum(body));
  if (!write_own_file(folder_, path(key), file + body)) return;
  if (written_++ % kWritesBetweenLooks == 0) remove_oldest();
}

void FileCache::remove_oldest() const {
  DIR* const folder = opendir(folder_.c_str());
  if (!folder) return;
  std::vector<std::tuple<int64_t, std::string, uint64_t>> files;  // time, path, bytes
  uint64_t total = 0;
  while (const dirent* entry = readdir(folder)) {
    const std::string file = folder_ + "/" + entry->d_name;
    struct stat status;
    if (file.find(suffix_) == std::string::npos || lstat(file.c_str(), &status) != 0 ||
        !S_ISREG(status.st_mode))
      continue;
    const auto size = static_cast<uint64_t>(status.st_size);
    total += size;
    files.emplace_back(status.st_mtim.tv_sec, file, size);
  }
  closedir(folder);
  if (total <= limit_) return;
  std::sort(files.begin(), files.end());
  for (const auto& [time, file, size] : files) {
    if (total <= limit_ / 4 * 3) return;
    if (unlink(file.c_str()) == 0) total -= size;
  }
}

std::string cache_folder(const std::string& name) {
  if (const char* const folder = std::getenv("PADDLE_CACHE_DIR"))
    return *folder ? folder + ("/" + name) : "";
  if (const char* const folder = std::getenv("XDG_CACHE_HOME"); folder && *folder == '/')
    return folder + ("/paddle/" + name);
  if (const char* const home = std::getenv("HOME"); home && *home == '/')
    return home + ("/.cache/paddle/" + name);
  return {};
}

}  // namespace paddle
