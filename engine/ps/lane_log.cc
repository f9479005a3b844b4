#include "ps/lane_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace paddle::ps {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kSnapshotMagic = 0x31656e616c736470;  // "pdslane1"
constexpr size_t kBlock = size_t{1} << 20;
constexpr const char *kSnapshot = "snapshot-", *kLog = "log-";
/// Above that, a length is not one.
constexpr uint32_t kMaxRecord = uint32_t{1} << 31;

struct BlockHeader {
  uint32_t length = 0, checksum = 0;
};

struct RecordHeader {
  uint32_t length = 0, checksum = 0;  // of the kind and the body
  uint32_t kind = 0;
};

void write_all(int descriptor, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      fail(ErrorCode::kDevice, path, ": ", std::strerror(errno),
           "; the run can continue from its last checkpoint");
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

/// That of "snapshot-12"; 0 for files that are not in their place, "snapshot-12.tmp".
uint64_t number_of(const std::string& name) {
  const std::string digits = name.substr(name.find('-') + 1);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() ? number : 0;
}

uint32_t checksum_of(uint32_t kind, std::span<const std::byte> body) {
  return crc32c(body, crc32c(std::as_bytes(std::span(&kind, 1))));
}

}  // namespace

SnapshotReader::SnapshotReader(const std::string& path)
    : path_(path), file_(MappedFile::open_stored(path, ErrorCode::kModel)), left_(file_->bytes()) {
  uint64_t magic = 0;
  if (left_.size() >= sizeof magic) std::memcpy(&magic, left_.data(), sizeof magic);
  if (magic != kSnapshotMagic) fail(ErrorCode::kModel, path, ": not a snapshot of a lane");
  left_ = left_.subspan(sizeof magic);
}

void SnapshotReader::next_block() {
  BlockHeader header;
  if (left_.size() < sizeof header) fail(ErrorCode::kModel, path_, ": the file is cut off");
  std::memcpy(&header, left_.data(), sizeof header);
  left_ = left_.subspan(sizeof header);
  if (header.length == 0 || header.length > kBlock || header.length > left_.size())
    fail(ErrorCode::kModel, path_, ": the file is cut off");
  block_ = left_.first(header.length);
  if (crc32c(block_) != header.checksum) fail(ErrorCode::kModel, path_, ": a checksum is wrong");
  left_ = left_.subspan(header.length);
}

void SnapshotReader::read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    if (block_.empty()) next_block();
    const size_t count = std::min(bytes.size(), block_.size());
    std::memcpy(bytes.data(), block_.data(), count);
    block_ = block_.subspan(count);
    bytes = bytes.subspan(count);
  }
}

std::vector<std::byte> SnapshotReader::take_bytes() {
  const auto count = take<uint64_t>();
  if (count > left_.size() + block_.size()) fail(ErrorCode::kModel, path_, ": the file is cut off");
  std::vector<std::byte> out(count);
  read(out);
  return out;
}

SnapshotWriter::SnapshotWriter(std::string path, bool syncs)
    : path_(std::move(path)), temporary_(path_ + ".tmp"), syncs_(syncs) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor_ < 0) fail(ErrorCode::kDevice, temporary_, ": ", std::strerror(errno));
  write_all(descriptor_, std::as_bytes(std::span(&kSnapshotMagic, 1)), temporary_);
  written_ = sizeof kSnapshotMagic;
  block_.resize(sizeof(BlockHeader));
}

SnapshotWriter::~SnapshotWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void SnapshotWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kBlock + sizeof(BlockHeader) - block_.size());
    block_.insert(block_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count));
    bytes = bytes.subspan(count);
    if (block_.size() == kBlock + sizeof(BlockHeader)) end_block();
  }
}

void SnapshotWriter::add_bytes(std::span<const std::byte> bytes) {
  add<uint64_t>(bytes.size());
  write(bytes);
}

void SnapshotWriter::end_block() {
  const auto content = std::span(block_).subspan(sizeof(BlockHeader));
  if (content.empty()) return;
  const BlockHeader header{static_cast<uint32_t>(content.size()), crc32c(content)};
  std::memcpy(block_.data(), &header, sizeof header);
  write_all(descriptor_, block_, temporary_);
  written_ += block_.size();
  block_.resize(sizeof(BlockHeader));
}

uint64_t SnapshotWriter::commit() {
  end_block();
  if (syncs_ && ::fsync(descriptor_) != 0)
    fail(ErrorCode::kDevice, temporary_, ": ", std::strerror(errno));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail(ErrorCode::kDevice, path_, ": ", std::strerror(errno));
  ::close(std::exchange(descriptor_, -1));
  if (syncs_) sync_directory(fs::path(path_).parent_path().string());
  return written_;
}

LaneLog::LaneLog(std::string folder, bool syncs) : folder_(std::move(folder)), syncs_(syncs) {}

LaneLog::~LaneLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

LaneLog::LaneLog(LaneLog&& other) noexcept
    : folder_(std::move(other.folder_)),
      syncs_(other.syncs_),
      number_(other.number_),
      log_bytes_(other.log_bytes_),
      snapshot_bytes_(other.snapshot_bytes_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

std::string LaneLog::path(const char* name, uint64_t number) const {
  return (fs::path(folder_) / (name + std::to_string(number))).string();
}

void LaneLog::open_log(bool keeps) {
  if (descriptor_ >= 0) ::close(descriptor_);
  const std::string file = path(kLog, number_);
  descriptor_ =
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (keeps ? 0 : O_TRUNC), 0600);
  if (descriptor_ < 0) fail(ErrorCode::kDevice, file, ": ", std::strerror(errno));
}

bool LaneLog::restore(const std::function<void(SnapshotReader&)>& snapshot, const Record& record) {
  if (!is_directory(folder_)) return false;
  for (const std::string& name : list_directory(folder_, ErrorCode::kModel))
    if (name.starts_with(kSnapshot)) number_ = std::max(number_, number_of(name));
  if (number_ == 0) return false;
  {
    const std::string file = path(kSnapshot, number_);
    snapshot_bytes_ = file_size(file, ErrorCode::kModel);
    SnapshotReader reader(file);
    snapshot(reader);
  }
  const std::string file = path(kLog, number_);
  log_bytes_ = 0;
  if (file_exists(file) && file_size(file, ErrorCode::kModel) > 0) {
    const auto mapped = MappedFile::open_stored(file, ErrorCode::kModel);
    std::span<const std::byte> left = mapped->bytes();
    while (left.size() >= sizeof(RecordHeader)) {
      RecordHeader header;
      std::memcpy(&header, left.data(), sizeof header);
      if (header.length > kMaxRecord)
        fail(ErrorCode::kModel, file, ": the record at byte ", log_bytes_, " is damaged");
      const size_t whole = sizeof header + header.length;
      if (left.size() < whole) break;
      const auto body = left.subspan(sizeof header, header.length);
      if (checksum_of(header.kind, body) != header.checksum) {
        if (left.size() == whole) break;
        fail(ErrorCode::kModel, file, ": the record at byte ", log_bytes_, " is damaged");
      }
      record(static_cast<uint16_t>(header.kind), body);
      log_bytes_ += whole;
      left = left.subspan(whole);
    }
  }
  open_log(true);
  if (::ftruncate(descriptor_, static_cast<off_t>(log_bytes_)) != 0)
    fail(ErrorCode::kDevice, file, ": ", std::strerror(errno));
  remove_older();
  return true;
}

void LaneLog::add(uint16_t kind, std::span<const std::byte> body) {
  ensure(body.size() <= kMaxRecord, "a record of a log has ", body.size(), " bytes");
  const RecordHeader header{static_cast<uint32_t>(body.size()), checksum_of(kind, body), kind};
  const std::string file = path(kLog, number_);
  write_all(descriptor_, std::as_bytes(std::span(&header, 1)), file);
  write_all(descriptor_, body, file);
  if (syncs_ && ::fdatasync(descriptor_) != 0)
    fail(ErrorCode::kDevice, file, ": ", std::strerror(errno));
  log_bytes_ += sizeof header + body.size();
}

void LaneLog::replace(const std::function<void(SnapshotWriter&)>& snapshot) {
  ensure_directory(folder_);
  SnapshotWriter writer(path(kSnapshot, number_ + 1), syncs_);
  snapshot(writer);
  snapshot_bytes_ = writer.commit();
  ++number_;
  open_log(false);
  log_bytes_ = 0;
  remove_older();
}

void LaneLog::remove_older() {
  for (const std::string& name : list_directory(folder_, ErrorCode::kModel)) {
    if (number_of(name) == number_) continue;
    std::error_code ignored;
    fs::remove(fs::path(folder_) / name, ignored);
  }
}

void LaneLog::remove() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  number_ = 0;
  log_bytes_ = snapshot_bytes_ = 0;
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace paddle::ps
