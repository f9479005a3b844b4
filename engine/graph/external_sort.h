#pragma once
// Sorting more records than fit in memory: full buffers are sorted and written to temporary files,
// which are merged at the end. Equal records may be dropped on the way.

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <queue>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"

namespace paddle::graph {

/// How records are kept in temporary files: plain structs as they are, texts after their length.
template <class Record>
struct RecordCodec {
  static_assert(std::is_trivially_copyable_v<Record>);
  static size_t memory(const Record&) { return sizeof(Record); }
  static bool write(const Record& record, std::FILE* file) {
    return std::fwrite(&record, sizeof record, 1, file) == 1;
  }
  static bool read(Record& record, std::FILE* file) {
    return std::fread(&record, sizeof record, 1, file) == 1;
  }
};
template <>
struct RecordCodec<std::string> {
  static size_t memory(const std::string& record) { return record.size() + 48; }
  static bool write(const std::string& record, std::FILE* file) {
    const uint64_t size = record.size();
    return std::fwrite(&size, sizeof size, 1, file) == 1 &&
           std::fwrite(record.data(), 1, record.size(), file) == record.size();
  }
  static bool read(std::string& record, std::FILE* file) {
    uint64_t size = 0;
    if (std::fread(&size, sizeof size, 1, file) != 1) return false;
    record.resize(size);
    return std::fread(record.data(), 1, record.size(), file) == record.size();
  }
};

template <class Record>
class ExternalSorter {
  using Codec = RecordCodec<Record>;

 public:
  /// Uses about `memory` bytes, and files in `folder` beyond them. `distinct`: equal records are
  /// kept once.
  ExternalSorter(std::string folder, uint64_t memory, bool distinct)
      : folder_(std::move(folder)),
        memory_(std::max<uint64_t>(memory, 1 << 16)),
        distinct_(distinct) {}

  void add(Record record) {
    used_ += Codec::memory(record);
    buffer_.push_back(std::move(record));
    if (used_ < memory_) return;
    sort_buffer();
    // Buffers of few distinct records are not worth a file.
    if (used_ > memory_ / 2) spill();
  }

  /// Calls `visit` with all records in order.
  template <class Visit>
  void finish(Visit&& visit) {
    sort_buffer();
    if (runs_.empty()) {
      for (const Record& record : buffer_) visit(record);
      return;
    }
    spill();
    merge(visit);
  }

  size_t runs() const { return runs_.size(); }  ///< temporary files so far

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, CloseFile>;

  void sort_buffer() {
    std::sort(buffer_.begin(), buffer_.end());
    if (!distinct_) return;
    buffer_.erase(std::unique(buffer_.begin(), buffer_.end()), buffer_.end());
    used_ = 0;
    for (const Record& record : buffer_) used_ += Codec::memory(record);
  }

  [[noreturn]] void broken(const char* what) const {
    fail(ErrorCode::kDevice, folder_, ": a temporary file cannot be ", what, ": ",
         std::string(std::strerror(errno)));
  }

  void spill() {
    if (buffer_.empty()) return;
    const std::string path = folder_ + "/run" + std::to_string(reinterpret_cast<uintptr_t>(this)) +
                             "." + std::to_string(runs_.size());
    File file(std::fopen(path.c_str(), "w+b"));
    if (!file) broken("made");
    std::remove(path.c_str());  // it lives as long as it is open
    std::setvbuf(file.get(), nullptr, _IOFBF, 1 << 18);
    for (const Record& record : buffer_)
      if (!Codec::write(record, file.get())) broken("written");
    if (std::fflush(file.get()) != 0) broken("written");
    runs_.push_back(std::move(file));
    buffer_.clear();
    used_ = 0;
  }

  template <class Visit>
  void merge(Visit& visit) {
    using Head = std::pair<Record, size_t>;
    const auto later = [](const Head& a, const Head& b) {
      return b.first < a.first || (!(a.first < b.first) && b.second < a.second);
    };
    std::priority_queue<Head, std::vector<Head>, decltype(later)> heads(later);
    const auto push = [&](size_t run) {
      Record record;
      if (Codec::read(record, runs_[run].get()))
        heads.emplace(std::move(record), run);
      else if (std::ferror(runs_[run].get()))
        broken("read");
    };
    for (size_t run = 0; run < runs_.size(); ++run) {
      std::rewind(runs_[run].get());
      push(run);
    }
    bool any = false;
    Record last{};
    while (!heads.empty()) {
      Head head = heads.top();
      heads.pop();
      push(head.second);
      if (distinct_ && any && !(last < head.first)) continue;
      visit(head.first);
      if (distinct_) last = std::move(head.first);
      any = true;
    }
    runs_.clear();
  }

  std::string folder_;
  uint64_t memory_, used_ = 0;
  bool distinct_;
  std::vector<Record> buffer_;
  std::vector<File> runs_;
};

}  // namespace paddle::graph
