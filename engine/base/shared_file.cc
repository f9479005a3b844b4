#include "base/shared_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace paddle {
namespace {

[[noreturn]] void reject(const std::string& path, int number) {
  fail(ErrorCode::kDevice, "cannot write '", path, "': ", std::strerror(number));
}

}  // namespace

void SharedFile::create(const std::string& path, uint64_t bytes) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) reject(path, errno);
  const int number = bytes > 0 ? ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes)) : 0;
  if (::close(descriptor) != 0 && number == 0) reject(path, errno);
  if (number != 0) reject(path, number);
}

SharedFile::SharedFile(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor_ < 0) reject(path_, errno);
}

SharedFile::~SharedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

SharedFile::SharedFile(SharedFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

void SharedFile::write(uint64_t at, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) reject(path_, put < 0 ? errno : ENOSPC);
    at += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

void SharedFile::sync() {
  if (::fsync(descriptor_) != 0) reject(path_, errno);
}

}  // namespace paddle
