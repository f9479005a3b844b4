// A kind of table that keeps rows in a file instead of memory: `train.tables: file_rows.file_rows`.
// Only keys and positions are in memory. The file has no name and ends with the run; checkpoints
// have all rows, as those of any kind.
//
//   paddle plugin build plugins/file_rows -o file_rows.so
//   paddle plugin check file_rows.so

#include <paddle/plugin/plugin.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using paddle::plugin::Failure;

/// Records in a file that is mapped into memory. It doubles when it is full.
class File {
 public:
  File() {
    const char* const folder = std::getenv("TMPDIR");
    std::string name = std::string(folder ? folder : "/tmp") + "/file_rows-XXXXXX";
    descriptor_ = ::mkstemp(name.data());
    if (descriptor_ < 0) fail(name);
    ::unlink(name.c_str());
  }
  ~File() {
    if (memory_) ::munmap(memory_, size_);
    ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// Makes room for this many bytes. What `at` returned before is no longer valid.
  void reserve(size_t bytes) {
    if (bytes <= size_) return;
    const size_t size = std::max(bytes, std::max(2 * size_, size_t{1} << 20));
    if (const int error = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(size))) {
      errno = error;
      fail("the file of the rows");
    }
    void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (memory == MAP_FAILED) fail("the file of the rows");
    if (memory_) ::munmap(memory_, size_);
    memory_ = static_cast<std::byte*>(memory);
    size_ = size;
  }
  std::byte* at(size_t position) const { return memory_ + position; }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    throw Failure(PADDLE_DEVICE, what + ": " + std::strerror(errno));
  }
  int descriptor_ = -1;
  std::byte* memory_ = nullptr;
  size_t size_ = 0;
};

class FileRows {
 public:
  explicit FileRows(const paddle_table_spec& spec) : spec_(spec) {}

  int64_t count() const { return static_cast<int64_t>(numbers_.size()); }

  void read(std::span<const uint64_t> keys, int32_t missing, std::byte* rows) const {
    for (size_t i = 0; i < keys.size(); ++i, rows += spec_.row_bytes) {
      if (const std::byte* const record = find(keys[i]))
        std::memcpy(rows, record, spec_.row_bytes);
      else if (missing == PADDLE_MISSING_INITIAL)
        paddle::plugin::records().initial_row(&spec_, keys[i], rows);
      else
        std::memset(rows, 0, spec_.row_bytes);
    }
  }

  void update(const paddle::plugin::Update& update) {
    std::vector<void*> records;
    for (const uint64_t key : update.keys()) {
      records.push_back(find(key));
      if (!records.back()) throw Failure(PADDLE_INTERNAL, "an update of a key without a row");
    }
    update.apply(0, records);
  }

  void content(const paddle::plugin::Visitor& visit) const {
    std::vector<uint64_t> keys;
    for (const auto& [key, number] : numbers_) keys.push_back(key);
    // Signed keys are in the order of the numbers that they are.
    const uint64_t sign = spec_.key_dtype == PADDLE_INT64 ? uint64_t{1} << 63 : 0;
    std::sort(keys.begin(), keys.end(),
              [sign](uint64_t a, uint64_t b) { return (a ^ sign) < (b ^ sign); });
    std::vector<const void*> records;
    for (const uint64_t key : keys) records.push_back(find(key));
    if (!keys.empty()) visit(keys, records.data());
  }

  void restore(std::span<const uint64_t> keys, const std::byte* records) {
    file_.reserve((numbers_.size() + keys.size()) * spec_.record_bytes);
    for (size_t i = 0; i < keys.size(); ++i)
      if (numbers_.emplace(keys[i], numbers_.size()).second)
        std::memcpy(find(keys[i]), records + i * spec_.record_bytes, spec_.record_bytes);
  }

 private:
  std::byte* find(uint64_t key) const {
    const auto it = numbers_.find(key);
    return it == numbers_.end() ? nullptr : file_.at(it->second * spec_.record_bytes);
  }

  const paddle_table_spec& spec_;
  std::unordered_map<uint64_t, size_t> numbers_;  ///< of records, in the order of their arrival
  File file_;
};

}  // namespace

PADDLE_PLUGIN(file_rows, "1.0.0", plugin) {
  plugin.summary("rows of tables in a file");
  plugin.table<FileRows>("file_rows", "in a file without a name, in TMPDIR");
}
