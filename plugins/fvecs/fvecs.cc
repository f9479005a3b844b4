// A kind of dataset: vectors in the format .fvecs of benchmarks for nearest neighbors, where each
// vector is a number of elements, int32, and then the elements, float32, all little-endian.
//
//   data: {train: {kind: fvecs.fvecs, path: base.fvecs}}
//
//   paddle plugin build plugins/fvecs -o fvecs.so
//   paddle plugin check fvecs.so --key path=base.fvecs

#include <paddle/plugin/plugin.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace {

using paddle::plugin::Failure;

/// A file that is mapped into memory.
class File {
 public:
  explicit File(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (descriptor < 0 || ::fstat(descriptor, &status) != 0) fail(path, descriptor);
    size_ = static_cast<size_t>(status.st_size);
    changed_ = status.st_mtim;
    if (size_ > 0) {
      void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
      if (memory == MAP_FAILED) fail(path, descriptor);
      memory_ = static_cast<const std::byte*>(memory);
    }
    ::close(descriptor);
  }
  ~File() {
    if (memory_) ::munmap(const_cast<std::byte*>(memory_), size_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  size_t size() const { return size_; }
  const std::byte* at(size_t position) const { return memory_ + position; }
  uint64_t fingerprint() const {
    return static_cast<uint64_t>(changed_.tv_sec) * 1000000007 +
           static_cast<uint64_t>(changed_.tv_nsec) * 31 + size_;
  }

 private:
  [[noreturn]] static void fail(const std::string& path, int descriptor) {
    const std::string why = std::strerror(errno);
    if (descriptor >= 0) ::close(descriptor);
    throw Failure(PADDLE_DATA, path + ": " + why);
  }
  const std::byte* memory_ = nullptr;
  size_t size_ = 0;
  timespec changed_{};
};

class Vectors {
 public:
  explicit Vectors(const paddle::plugin::Options& options)
      : path_(options.text("path")), file_(path_) {
    if (file_.size() < sizeof(int32_t)) throw Failure(PADDLE_DATA, path_ + ": has no vectors");
    width_ = width_at(0);
    if (width_ < 1) throw Failure(PADDLE_DATA, path_ + ": is not a file of vectors");
    if (file_.size() % stride() != 0) throw Failure(PADDLE_DATA, path_ + ": its end is missing");
    size_ = static_cast<int64_t>(file_.size() / stride());
    if (const int64_t limit = options.integer("limit"); limit > 0 && limit < size_) size_ = limit;
  }

  std::string describe() const { return "x: float32[" + std::to_string(width_) + "]"; }
  int64_t size() const { return size_; }

  void read(int64_t index, const paddle::plugin::Sample& sample) const {
    const size_t at = static_cast<size_t>(index) * stride();
    if (width_at(at) != width_)
      throw Failure(PADDLE_DATA, location(index) + ": a vector of another length");
    float* const x = sample.field<float>(0, {width_});
    std::memcpy(x, file_.at(at + sizeof(int32_t)), static_cast<size_t>(width_) * sizeof(float));
  }

  std::string location(int64_t index) const { return path_ + ": vector " + std::to_string(index); }
  uint64_t fingerprint() const { return file_.fingerprint(); }

 private:
  int32_t width_at(size_t position) const {
    int32_t width = 0;
    std::memcpy(&width, file_.at(position), sizeof width);
    return width;
  }
  /// Bytes of a vector with its length.
  size_t stride() const { return sizeof(int32_t) + static_cast<size_t>(width_) * sizeof(float); }

  std::string path_;
  File file_;
  int32_t width_ = 0;
  int64_t size_ = 0;
};

}  // namespace

PADDLE_PLUGIN(fvecs, "1.0.0", plugin) {
  plugin.summary("vectors in files .fvecs");
  plugin.reader<Vectors>("fvecs", "vectors in a file .fvecs", R"(
path: {type: path, required: true, doc: the file}
limit: {type: integer, default: 0, doc: vectors that are used; 0 for all}
)");
}
