#include "fuzz/fuzz_target.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <numeric>

#include "base/error.h"

namespace paddle::fuzz {
namespace {

namespace fs = std::filesystem;

void write(const std::string& path, const void* data, size_t bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || ::write(file, data, bytes) != static_cast<ssize_t>(bytes)) std::abort();
  ::close(file);
}

/// A folder that is there while the process runs.
struct Folder {
  std::string path =
      (fs::temp_directory_path() / ("paddle_fuzz_" + std::to_string(::getpid()))).string();
  Folder() {
    fs::create_directories(path);
    const uint8_t weights[64] = {};
    write(path + "/weights.bin", weights, sizeof weights);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

}  // namespace

std::string input_file(std::span<const uint8_t> bytes, const std::string& name) {
  static const Folder folder;
  const std::string path = folder.path + "/" + name;
  write(path, bytes.data(), bytes.size());
  return path;
}

void expect_documented_end(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kModel || e.code() == ErrorCode::kData ||
        e.code() == ErrorCode::kDevice)
      return;
    std::fprintf(stderr, "status %d: %s\n", static_cast<int>(e.code()), e.what());
    std::abort();
  } catch (const std::bad_alloc&) {
    return;
  }
}

void read_all(const Array& array) {
  static volatile unsigned sum = 0;
  const auto* bytes = static_cast<const uint8_t*>(array.raw());
  sum = std::accumulate(bytes, bytes + storage_bytes(array.dtype, array.size()), sum);
}

}  // namespace paddle::fuzz
