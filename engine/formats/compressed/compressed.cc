#include "formats/compressed/compressed.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/module.h"
#include "formats/compressed/module/interface.h"

namespace paddle::formats {
namespace {

using namespace std::string_view_literals;

struct Compression {
  std::string_view ending, magic;
};

constexpr std::array kCompressions = {
    Compression{".gz", "\x1f\x8b"sv},
    Compression{".bz2", "BZh"sv},
    Compression{".xz",
                "\xfd"
                "7zXZ\0"sv},
    Compression{".zst", "\x28\xb5\x2f\xfd"sv},
    Compression{".lz4", "\x04\x22\x4d\x18"sv},
};

/// The ratio that deflate can reach; files that claim more are rejected.
constexpr uint64_t kMaxRatio = 1032;

/// A file without a name, open for writing: it is gone with its last mapping, however the process
/// ends.
class TemporaryFile {
 public:
  TemporaryFile() {
    const char* const folder = std::getenv("TMPDIR");
    folder_ = folder && *folder ? folder : "/tmp";
    std::string path = folder_ + "/paddle-XXXXXX";
    descriptor_ = ::mkstemp(path.data());
    if (descriptor_ < 0)
      fail(ErrorCode::kDevice, folder_, ": no temporary file can be made: ", std::strerror(errno));
    ::unlink(path.c_str());
  }
  ~TemporaryFile() { ::close(descriptor_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& folder() const { return folder_; }
  std::shared_ptr<MappedFile> map() const {
    return MappedFile::open(str("/proc/self/fd/", descriptor_));
  }
  /// 0, or the number of the error.
  int write(const void* bytes, size_t size) {
    const char* from = static_cast<const char*>(bytes);
    while (size > 0) {
      const ssize_t count = ::write(descriptor_, from, size);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return errno;
      from += count;
      size -= static_cast<size_t>(count);
    }
    return 0;
  }

 private:
  std::string folder_;
  int descriptor_;
};

struct Sink {
  TemporaryFile* file;
  uint64_t room;  ///< bytes that may still come
  int error = 0;
};

int append(void* context, const void* bytes, size_t size) {
  Sink& sink = *static_cast<Sink*>(context);
  sink.error = size > sink.room ? EFBIG : sink.file->write(bytes, size);
  sink.room -= std::min<uint64_t>(sink.room, size);
  return sink.error;
}

decltype(paddle_archive_decompress)* decompressor(const std::string& path) {
  static std::mutex mutex;
  static Module module{Module::default_path("archive"), PADDLE_ARCHIVE_VERSION};
  const std::lock_guard lock(mutex);
  return module.require<decltype(paddle_archive_decompress)>(
      "paddle_archive_decompress", path + ": this installation cannot read compressed files");
}

}  // namespace

std::shared_ptr<MappedFile> open_data_file(const std::string& path) {
  auto file = MappedFile::open(path);
  const auto found =
      std::find_if(kCompressions.begin(), kCompressions.end(),
                   [&](const Compression& each) { return file->view().starts_with(each.magic); });
  if (found == kCompressions.end()) return file;
  TemporaryFile plain;
  Sink sink{&plain, uint64_t{file->size()} * kMaxRatio + (uint64_t{1} << 20)};
  std::array<char, 512> message{};
  const int status =
      decompressor(path)(path.c_str(), append, &sink, message.data(), message.size());
  if (status == 1) fail(ErrorCode::kData, path, ": ", message.data());
  if (sink.error == EFBIG && sink.room == 0)
    fail(ErrorCode::kData, path, ": holds more than ", kMaxRatio, " times its size");
  if (status != 0)
    fail(ErrorCode::kDevice, path, ": cannot be decompressed into ", plain.folder(),
         " (set TMPDIR to another folder): ", std::strerror(sink.error));
  return plain.map();
}

std::string_view uncompressed_name(std::string_view path) {
  for (const Compression& each : kCompressions)
    if (path.ends_with(each.ending)) return path.substr(0, path.size() - each.ending.size());
  return path;
}

bool has_tab_ending(std::string_view path) {
  const std::string_view name = uncompressed_name(path);
  return name.ends_with(".tsv") || name.ends_with(".tab");
}

}  // namespace paddle::formats
