#include "base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>

#include "base/encryption.h"
#include "base/pages.h"
#include "base/text.h"

namespace paddle {
namespace {

std::string cause(int number) { return std::generic_category().message(number); }

/// Closes a file descriptor on scope exit.
struct Descriptor {
  int value = -1;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

/// Opens a regular file for reading and returns its size.
uint64_t open_regular(const std::string& path, ErrorCode code, Descriptor& out) {
  out.value = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (out.value < 0) fail(code, "cannot open '", path, "': ", cause(errno));
  struct stat status {};
  if (::fstat(out.value, &status) != 0) fail(code, "cannot read '", path, "': ", cause(errno));
  if (S_ISDIR(status.st_mode)) fail(code, "'", path, "' is a folder, a file is needed");
  if (!S_ISREG(status.st_mode)) fail(code, "'", path, "' is not a regular file");
  return static_cast<uint64_t>(status.st_size);
}

/// Reads at most `bytes` from where the descriptor is; the bytes that were there.
size_t read_whole(int descriptor, char* out, size_t bytes, const std::string& path,
                  ErrorCode code) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::read(descriptor, out + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(code, "cannot read '", path, "': ", cause(errno));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

/// The header of an encrypted file (base/encryption.h) of `size`; "" for another file.
std::string encryption_header(int descriptor, uint64_t size, const std::string& path,
                              ErrorCode code) {
  if (size < kEncryptedHeaderBytes) return "";
  std::string header(kEncryptedHeaderBytes, '\0');
  // Without moving the offset: most files are not encrypted, and are read from their start.
  const ssize_t got = ::pread(descriptor, header.data(), header.size(), 0);
  if (got < 0) fail(code, "cannot read '", path, "': ", cause(errno));
  return got == std::ssize(header) && is_encrypted(header) ? header : "";
}

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

std::string program_path() {
  std::error_code problem;
  return std::filesystem::read_symlink("/proc/self/exe", problem).string();
}

std::string read_file(const std::string& path, uint64_t max_bytes, ErrorCode code) {
  Descriptor file;
  const uint64_t size = open_regular(path, code, file);
  const std::string header = encryption_header(file.value, size, path, code);
  const uint64_t bytes = header.empty() ? size : decrypted_size(header, size, path, code);
  if (bytes > max_bytes)
    fail(code, "'", path, "' has ", human_bytes(bytes), ", at most ", human_bytes(max_bytes),
         " are accepted here");
  std::string content(bytes, '\0');
  if (!header.empty())
    decrypt_file(file.value, header, size, path, code,
                 reinterpret_cast<std::byte*>(content.data()));
  else if (read_whole(file.value, content.data(), bytes, path, code) != bytes)
    fail(code, "'", path, "' became shorter while it was read");
  return content;
}

std::string read_beginning(const std::string& path, size_t max_bytes, ErrorCode code) {
  Descriptor file;
  const uint64_t size = open_regular(path, code, file);
  if (const std::string header = encryption_header(file.value, size, path, code); !header.empty())
    return decrypt_beginning(file.value, header, size, path, code).substr(0, max_bytes);
  std::string beginning(std::min<uint64_t>(max_bytes, size), '\0');
  beginning.resize(read_whole(file.value, beginning.data(), beginning.size(), path, code));
  return beginning;
}

namespace {

/// Address ranges of mapped files.
struct MappedRanges {
  std::mutex mutex;
  std::map<uintptr_t, uintptr_t> ends;
};
MappedRanges& mapped_ranges() {
  static MappedRanges ranges;
  return ranges;
}

}  // namespace

void forget_mapped(const void* data, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  MappedRanges& ranges = mapped_ranges();
  const std::lock_guard lock(ranges.mutex);
  const auto after = ranges.ends.upper_bound(begin);
  if (after == ranges.ends.begin() || std::prev(after)->second < begin + bytes) return;
  release_pages(data, bytes);
}

std::shared_ptr<MappedFile> MappedFile::open(const std::string& path, ErrorCode code) {
  return open(path, code, true);
}

std::shared_ptr<MappedFile> MappedFile::open_stored(const std::string& path, ErrorCode code) {
  return open(path, code, false);
}

std::shared_ptr<MappedFile> MappedFile::open(const std::string& path, ErrorCode code,
                                             bool decrypts) {
  Descriptor file;
  const uint64_t stored = open_regular(path, code, file);
  const std::string header =
      decrypts ? encryption_header(file.value, stored, path, code) : std::string();
  const bool encrypted = !header.empty();
  const uint64_t size = encrypted ? decrypted_size(header, stored, path, code) : stored;
  void* data = nullptr;
  if (size > 0) {
    data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | (encrypted ? MAP_ANONYMOUS : MAP_NORESERVE),
                  encrypted ? -1 : file.value, 0);
    if (data == MAP_FAILED)
      fail(ErrorCode::kDevice, "cannot map '", path, "' (", human_bytes(size), "): ", cause(errno));
  }
  std::shared_ptr<MappedFile> mapped(
      new MappedFile(path, static_cast<std::byte*>(data), static_cast<size_t>(size)));
  if (encrypted) {
    if (data) ::madvise(data, size, MADV_DONTDUMP);
    decrypt_file(file.value, header, stored, path, code, mapped->data());
  } else if (data) {
    const auto begin = reinterpret_cast<uintptr_t>(data);
    const std::lock_guard lock(mapped_ranges().mutex);
    mapped_ranges().ends[begin] = begin + size;
  }
  return mapped;
}

MappedFile::~MappedFile() {
  if (!data_) return;
  const std::lock_guard lock(mapped_ranges().mutex);
  mapped_ranges().ends.erase(reinterpret_cast<uintptr_t>(data_));
  ::munmap(data_, size_);
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  static std::atomic<uint64_t> counter{0};
  temporary_ = str(path_, ".", static_cast<int64_t>(::getpid()), "-", counter.fetch_add(1), ".tmp");
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(ErrorCode::kDevice, "cannot write '", path_, "': ", cause(errno));
  buffer_.reserve(size_t{1} << 18);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::flush() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t put = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0)
      fail(ErrorCode::kDevice, "cannot write '", path_, "': ", cause(put < 0 ? errno : ENOSPC));
    done += static_cast<size_t>(put);
  }
  buffer_.clear();
}

void AtomicFile::write(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  written_ += bytes;
  while (bytes > 0) {
    const size_t part = std::min(bytes, buffer_.capacity() - buffer_.size());
    buffer_.insert(buffer_.end(), from, from + part);
    from += part;
    bytes -= part;
    if (buffer_.size() == buffer_.capacity()) flush();
  }
}

void AtomicFile::commit() {
  flush();
  if (::fsync(descriptor_) != 0)
    fail(ErrorCode::kDevice, "cannot write '", path_, "': ", cause(errno));
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int number = errno;
    ::unlink(temporary_.c_str());
    fail(ErrorCode::kDevice, "cannot write '", path_, "': ", cause(number));
  }
  sync_directory(parent_of(path_));
}

void write_file_atomically(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

void ensure_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !is_directory(path))
    fail(ErrorCode::kDevice, "cannot make the folder '", path,
         "': ", error ? error.message() : "a file of that name is in the way");
}

void sync_directory(const std::string& path) {
  Descriptor folder{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  // Some file systems cannot sync a folder; the rename has happened all the same.
  if (folder.value >= 0 && ::fsync(folder.value) != 0 && errno == EIO)
    fail(ErrorCode::kDevice, "cannot sync the folder '", path, "': ", cause(errno));
}

uint64_t free_space(const std::string& path) {
  std::filesystem::path at = std::filesystem::absolute(path);
  struct statvfs status {};
  while (::statvfs(at.c_str(), &status) != 0) {
    if (errno != ENOENT || !at.has_relative_path())
      fail(ErrorCode::kDevice, "cannot ask for free space at '", path, "': ", cause(errno));
    at = at.parent_path();
  }
  return static_cast<uint64_t>(status.f_bavail) * status.f_frsize;
}

bool file_exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

uint64_t file_size(const std::string& path, ErrorCode code) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail(code, "cannot open '", path, "': ", cause(errno));
  return static_cast<uint64_t>(status.st_size);
}

std::vector<std::string> list_directory(const std::string& path, ErrorCode code) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator each(path, error), end;
  while (!error && each != end) {
    names.push_back(each->path().filename().string());
    each.increment(error);
  }
  if (error) fail(code, "cannot list the folder '", path, "': ", error.message());
  std::sort(names.begin(), names.end());
  return names;
}

std::string join_path(const std::string& folder, const std::string& path) {
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

uint32_t crc32(std::span<const std::byte> bytes, uint32_t previous) {
  // Slicing-by-8: eight tables, eight bytes per iteration.
  static const auto kTables = [] {
    std::array<std::array<uint32_t, 256>, 8> tables{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xedb88320u : 0u);
      tables[0][i] = value;
    }
    for (size_t t = 1; t < 8; ++t)
      for (size_t i = 0; i < 256; ++i)
        tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 0xff];
    return tables;
  }();
  uint32_t crc = ~previous;
  const std::byte* p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, p += 8) {
    uint32_t low, high;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + 4, 4);
    low ^= crc;
    crc = kTables[7][low & 0xff] ^ kTables[6][(low >> 8) & 0xff] ^ kTables[5][(low >> 16) & 0xff] ^
          kTables[4][low >> 24] ^ kTables[3][high & 0xff] ^ kTables[2][(high >> 8) & 0xff] ^
          kTables[1][(high >> 16) & 0xff] ^ kTables[0][high >> 24];
  }
  for (; left > 0; --left, ++p)
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint32_t>(*p)) & 0xff];
  return ~crc;
}

}  // namespace paddle
