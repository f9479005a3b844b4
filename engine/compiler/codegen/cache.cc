#include "compiler/codegen/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"

namespace paddle::codegen {
namespace {

constexpr std::string_view kMagic = "PDLCODE1";
constexpr std::string_view kSuffix = ".code";
constexpr off_t kMaxFile = off_t{16} << 20;
constexpr int kWritesBetweenLooks = 64;

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
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

uint32_t checksum(std::string_view content) {
  return crc32(std::as_bytes(std::span(content.data(), content.size())));
}

void put(std::string& out, uint64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}
void put(std::string& out, std::string_view text) {
  put(out, text.size());
  out += text;
}

class Reader {
 public:
  explicit Reader(std::string_view content) : content_(content) {}
  bool number(uint64_t& value) {
    if (content_.size() < sizeof value) return false;
    std::memcpy(&value, content_.data(), sizeof value);
    content_.remove_prefix(sizeof value);
    return true;
  }
  bool text(std::string_view& value) {
    uint64_t size = 0;
    if (!number(size) || size > content_.size()) return false;
    value = content_.substr(0, size);
    content_.remove_prefix(size);
    return true;
  }
  bool done() const { return content_.empty(); }

 private:
  std::string_view content_;
};

/// magic, checksum of the rest, key, entry, names of functions, code
std::string file_content(const std::string& key, const CodeImage& image) {
  std::string body;
  put(body, key);
  put(body, image.entry);
  put(body, join(image.functions, "\n"));
  put(body, image.bytes);
  std::string content(kMagic);
  put(content, uint64_t{checksum(body)});
  return content + body;
}

std::optional<CodeImage> image_of(std::string_view content, const std::string& key) {
  if (content.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  content.remove_prefix(kMagic.size());
  uint64_t sum = 0;
  Reader head(content);
  if (!head.number(sum)) return std::nullopt;
  content.remove_prefix(sizeof sum);
  if (checksum(content) != sum) return std::nullopt;
  Reader reader(content);
  CodeImage image;
  std::string_view stored, functions, bytes;
  if (!reader.text(stored) || stored != key || !reader.number(image.entry) ||
      !reader.text(functions) || !reader.text(bytes) || !reader.done())
    return std::nullopt;
  if (!functions.empty()) image.functions = split(functions, '\n');
  image.bytes = bytes;
  return image;
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
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
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
  const File file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.open()) return false;
  if (write_all(file.descriptor(), content) && rename(temporary.c_str(), path.c_str()) == 0)
    return true;
  unlink(temporary.c_str());
  return false;
}

std::string hex(uint64_t number) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (; out.size() < 16; number >>= 4) out += kDigits[number & 15];
  return out;
}

CodeCache::CodeCache(std::string folder, uint64_t limit)
    : folder_(std::move(folder)), limit_(limit) {}

std::string CodeCache::path(const std::string& key) const {
  // The file contains the key, so keys with the same hash merely replace each other.
  return folder_ + "/" + hex(fnv1a(key)) + std::string(kSuffix);
}

std::optional<CodeImage> CodeCache::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  return image_of(read_own_file(path(key)), key);
}

void CodeCache::keep(const std::string& key, const CodeImage& image) {
  if (folder_.empty()) return;
  const std::lock_guard lock(mutex_);
  // The checksum detects a file that a crash of the machine has truncated.
  if (!write_own_file(folder_, path(key), file_content(key, image))) return;
  if (written_++ % kWritesBetweenLooks == 0) remove_oldest();
}

void CodeCache::remove_oldest() const {
  DIR* const folder = opendir(folder_.c_str());
  if (!folder) return;
  std::vector<std::tuple<int64_t, std::string, uint64_t>> files;  // time, path, bytes
  uint64_t total = 0;
  while (const dirent* entry = readdir(folder)) {
    const std::string file = folder_ + "/" + entry->d_name;
    struct stat status;
    if (file.find(kSuffix) == std::string::npos || lstat(file.c_str(), &status) != 0 ||
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

std::string default_cache_folder() {
  if (const char* const folder = std::getenv("PADDLE_CACHE_DIR"))
    return *folder ? std::string(folder) + "/codegen" : "";
  if (const char* const folder = std::getenv("XDG_CACHE_HOME"); folder && *folder == '/')
    return std::string(folder) + "/paddle/codegen";
  if (const char* const home = std::getenv("HOME"); home && *home == '/')
    return std::string(home) + "/.cache/paddle/codegen";
  return {};
}

}  // namespace paddle::codegen
