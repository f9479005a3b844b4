#include "ps/order_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "ps/updates.h"

namespace paddle::ps {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMagic = 0x31726f7372646470;  // "pddrsor1"
/// Entries between two checksums.
constexpr int kCheckEvery = 64;
constexpr int kKindBits = 4, kStepBits = 40;
constexpr uint64_t kMaxStep = (uint64_t{1} << kStepBits) - 1;

/// As it is in a file.
struct FileHeader {
  uint64_t magic = kMagic;
  int64_t start = 0;
  uint64_t session = 0;
  int32_t lane = 0, lanes = 0, workers = 0;
  uint32_t checksum = 0;  ///< of the fields before it
};

uint32_t checksum_of(const FileHeader& header) {
  const auto bytes = std::as_bytes(std::span(&header, 1));
  return crc32c(bytes.first(bytes.size() - sizeof header.checksum));
}

uint64_t packed(const OrderEntry& entry) {
  return static_cast<uint64_t>(entry.kind) | uint64_t{entry.worker} << kKindBits |
         entry.step << (64 - kStepBits);
}

OrderEntry unpacked(uint64_t bits) {
  constexpr uint64_t kWorkers = (uint64_t{1} << (64 - kStepBits - kKindBits)) - 1;
  return {static_cast<OrderKind>(bits & ((1 << kKindBits) - 1)),
          static_cast<uint32_t>(bits >> kKindBits & kWorkers), bits >> (64 - kStepBits)};
}

uint32_t add_checksum(uint32_t checksum, uint64_t bits) {
  return crc32c(std::as_bytes(std::span(&bits, 1)), checksum);
}

std::string path_of(const std::string& folder, int64_t start, int lane) {
  return (fs::path(folder) / std::to_string(start) / str("lane-", lane)).string();
}

/// The steps at which files of a lane begin, in rising order.
std::vector<int64_t> starts_of(const std::string& folder, int lane) {
  std::vector<int64_t> out;
  if (!is_directory(folder)) return out;
  for (const std::string& name : list_directory(folder, ErrorCode::kModel)) {
    if (name.empty() || name.find_first_not_of("0123456789") != name.npos || name.size() > 12)
      continue;
    if (const int64_t start = std::stoll(name); file_exists(path_of(folder, start, lane)))
      out.push_back(start);
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// A file that was checked.
struct OrderFile {
  OrderHeader header;
  std::vector<uint64_t> entries;  ///< with checksums
  size_t checked = 0;             ///< entries up to the last checksum
  uint32_t checksum = 0;          ///< of those after it
};

/// kModel for a damaged one. What follows the last checksum cannot be checked.
OrderFile read_file(const std::string& path) {
  const auto mapped = MappedFile::open_stored(path, ErrorCode::kModel);
  std::span<const std::byte> left = mapped->bytes();
  FileHeader header;
  if (left.size() < sizeof header) fail(ErrorCode::kModel, path, ": the file is cut off");
  std::memcpy(&header, left.data(), sizeof header);
  left = left.subspan(sizeof header);
  if (header.magic != kMagic) fail(ErrorCode::kModel, path, ": not the order of a lane");
  if (header.checksum != checksum_of(header))
    fail(ErrorCode::kModel, path, ": the header is damaged");
  OrderFile out;
  out.header = {header.start, header.lane, header.lanes, header.workers, header.session};
  out.entries.resize(left.size() / sizeof(uint64_t));
  if (!out.entries.empty())
    std::memcpy(out.entries.data(), left.data(), out.entries.size() * sizeof(uint64_t));
  for (size_t i = 0; i < out.entries.size(); ++i) {
    const OrderEntry entry = unpacked(out.entries[i]);
    const bool is_check = entry == OrderEntry{OrderKind::kCheck, 0, out.checksum};
    if (!is_check && (i - out.checked >= kCheckEvery || entry.kind == OrderKind::kCheck ||
                      entry.kind < OrderKind::kPull || entry.kind > kLastOrderKind))
      fail(ErrorCode::kModel, path, ": one of the entries ", out.checked, " to ", i, " is damaged");
    out.checksum = is_check ? 0 : add_checksum(out.checksum, out.entries[i]);
    if (is_check) out.checked = i + 1;
  }
  for (size_t i = out.checked; i < out.entries.size(); ++i)
    if (unpacked(out.entries[i]).kind == OrderKind::kEnd)
      fail(ErrorCode::kModel, path, ": one of the entries ", out.checked, " to ",
           out.entries.size() - 1, " is damaged");
  return out;
}

}  // namespace

namespace {

void remove_file(const std::string& folder, int64_t start, int lane) {
  std::error_code ignored;
  fs::remove(path_of(folder, start, lane), ignored);
  fs::remove(fs::path(folder) / std::to_string(start), ignored);  // if no lane is left
}

}  // namespace

void OrderLog::remove_old(const std::string& folder, int lane, int64_t start,
                          std::chrono::seconds keep) {
  const auto oldest = fs::file_time_type::clock::now() - keep;
  for (const int64_t each : starts_of(folder, lane)) {
    std::error_code error;
    const auto written = fs::last_write_time(path_of(folder, each, lane), error);
    if (each >= start || error || written > oldest) return;
    remove_file(folder, each, lane);
  }
}

OrderLog OrderLog::create(const std::string& folder, const OrderHeader& header) {
  for (const int64_t start : starts_of(folder, header.lane))
    if (start > header.start) remove_file(folder, start, header.lane);
  const std::string path = path_of(folder, header.start, header.lane);
  ensure_directory(fs::path(path).parent_path().string());
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(ErrorCode::kDevice, path, ": ", std::strerror(errno));
  OrderLog out(path, header.start, descriptor);
  FileHeader first{.start = header.start,
                   .session = header.session,
                   .lane = header.lane,
                   .lanes = header.lanes,
                   .workers = header.workers};
  first.checksum = checksum_of(first);
  if (::write(descriptor, &first, sizeof first) != static_cast<ssize_t>(sizeof first))
    fail(ErrorCode::kDevice, path, ": ", std::strerror(errno));
  return out;
}

std::optional<OrderLog> OrderLog::reopen(const std::string& folder, const OrderHeader& header) {
  const std::string path = path_of(folder, header.start, header.lane);
  if (!file_exists(path)) return std::nullopt;
  OrderFile file;
  try {
    file = read_file(path);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kModel) throw;
    return std::nullopt;
  }
  if (file.header != header) return std::nullopt;
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor < 0) fail(ErrorCode::kDevice, path, ": ", std::strerror(errno));
  OrderLog out(path, header.start, descriptor);
  // The process may have died within an entry.
  if (::ftruncate(descriptor, static_cast<off_t>(sizeof(FileHeader) +
                                                 file.entries.size() * sizeof(uint64_t))) != 0)
    fail(ErrorCode::kDevice, path, ": ", std::strerror(errno));
  for (const uint64_t bits : file.entries) out.note(unpacked(bits));
  out.unchecked_ = static_cast<int>(file.entries.size() - file.checked);
  out.checksum_ = file.checksum;
  return out;
}

OrderLog::~OrderLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

OrderLog::OrderLog(OrderLog&& other) noexcept : descriptor_(-1) { *this = std::move(other); }

OrderLog& OrderLog::operator=(OrderLog&& other) noexcept {
  std::swap(path_, other.path_);
  start_ = other.start_;
  std::swap(descriptor_, other.descriptor_);
  checksum_ = other.checksum_;
  digest_ = other.digest_;
  unchecked_ = other.unchecked_;
  undigested_ = other.undigested_;
  updates_ = other.updates_;
  last_ = other.last_;
  last_fence_ = other.last_fence_;
  return *this;
}

void OrderLog::note(const OrderEntry& entry) {
  if (entry.kind == OrderKind::kCheck) return;
  if (entry.kind == OrderKind::kPush || entry.kind == OrderKind::kExchange) ++updates_;
  if (entry.kind == OrderKind::kFence) last_fence_ = entry.step;
  last_ = entry.kind;
}

void OrderLog::put(const OrderEntry& entry) {
  const uint64_t bits = packed(entry);
  ssize_t written = -1;
  while ((written = ::write(descriptor_, &bits, sizeof bits)) < 0 && errno == EINTR) {
  }
  if (written != static_cast<ssize_t>(sizeof bits))
    fail(ErrorCode::kDevice, path_, ": ", written < 0 ? std::strerror(errno) : "the disk is full",
         "; the run can continue from its last checkpoint");
  note(entry);
  if (entry.kind == OrderKind::kCheck) return;
  checksum_ = add_checksum(checksum_, bits);
  if (++unchecked_ == kCheckEvery) put_check();
}

void OrderLog::put_check() {
  if (unchecked_ == 0) return;
  put({OrderKind::kCheck, 0, std::exchange(checksum_, 0)});
  unchecked_ = 0;
}

void OrderLog::add(const OrderEntry& entry, std::span<const std::byte> bytes) {
  ensure(entry.step <= kMaxStep, "step ", entry.step, " does not fit into an entry");
  put(entry);
  digest_ = crc32c(bytes, add_checksum(digest_, packed(entry)));
  ++undigested_;
}

uint32_t OrderLog::put_digest() {
  const uint32_t digest = std::exchange(digest_, 0);
  undigested_ = 0;
  put({OrderKind::kDigest, 0, digest});
  return digest;
}

void OrderLog::fence(int64_t step) {
  const OrderEntry entry{OrderKind::kFence, 0, static_cast<uint64_t>(step)};
  if (last_fence_ == entry.step) return;
  if (undigested_ > 0) put_digest();
  put(entry);
  put_check();
}

void OrderLog::restart() {
  digest_ = 0;
  undigested_ = 0;
  if (last_ != OrderKind::kRestart) put({OrderKind::kRestart, 0, 0});
}

void OrderLog::end() {
  if (last_ == OrderKind::kEnd) return;
  put({OrderKind::kEnd, 0, 0});
  put_check();
}

OrderReader::OrderReader(const std::string& folder, int lane, int64_t from,
                         std::optional<int64_t> until) {
  const std::vector<int64_t> starts = starts_of(folder, lane);
  auto start = std::upper_bound(starts.begin(), starts.end(), from);
  if (start == starts.begin())
    fail(ErrorCode::kModel, path_of(folder, from, lane), ": no such file");
  --start;
  const int64_t first = *start;
  for (; start != starts.end() && (*start == first || !until || *start < *until); ++start) {
    std::optional<int64_t> end;
    if (start + 1 != starts.end()) end = *(start + 1);
    add_file(path_of(folder, *start, lane), end);
  }
  end_at(until);
  const OrderEntry begin{OrderKind::kFence, 0, static_cast<uint64_t>(from)};
  at_ = static_cast<size_t>(std::find(entries_.begin(), entries_.end(), packed(begin)) -
                            entries_.begin());
  std::erase_if(fences_, [&](int64_t step) { return step < from; });
  if (at_ == entries_.size())
    fail(ErrorCode::kUsage, files_.front().second,
         ": the workers have not waited for each other after step ", from,
         ", where a replay could begin");
}

namespace {

/// The entries of a file that a replay does not take, because the answer to them was lost with a
/// connection and the worker has asked again before the next fence.
std::vector<char> find_lost(const OrderFile& file) {
  std::vector<char> out(file.entries.size(), 0);
  std::map<uint32_t, std::deque<std::pair<uint64_t, size_t>>> pulls;  // by worker: step and place
  for (size_t i = 0; i < file.entries.size(); ++i) {
    const OrderEntry entry = unpacked(file.entries[i]);
    if (entry.kind == OrderKind::kFence) pulls.clear();
    if (entry.kind != OrderKind::kPull) continue;
    auto& of_worker = pulls[entry.worker];
    const auto same = std::find_if(of_worker.begin(), of_worker.end(),
                                   [&](const auto& pull) { return pull.first == entry.step; });
    if (same != of_worker.end()) {
      out[same->second] = 1;
      of_worker.erase(same);
    }
    of_worker.emplace_back(entry.step, i);
    if (of_worker.size() > kMaxAhead + 1) of_worker.pop_front();
  }
  return out;
}

}  // namespace

void OrderReader::add_file(const std::string& path, std::optional<int64_t> end) {
  const OrderFile file = read_file(path);
  if (files_.empty()) {
    header_ = file.header;
  } else if (file.header.lanes != header_.lanes || file.header.workers != header_.workers) {
    fail(ErrorCode::kModel, path, ": from step ", file.header.start, " on the run has ",
         file.header.workers, " workers and ", file.header.lanes, " lanes, before it ",
         header_.workers, " and ", header_.lanes, "; both are replayed on their own");
  }
  files_.emplace_back(entries_.size(), path);
  const std::vector<char> lost = find_lost(file);
  bool is_altered = false;  // since the last digest
  has_end_ = false;
  for (size_t i = 0; i < file.entries.size(); ++i) {
    const OrderEntry entry = unpacked(file.entries[i]);
    const bool is_digest = entry.kind == OrderKind::kDigest;
    has_end_ = has_end_ || entry.kind == OrderKind::kEnd;
    if (lost[i]) is_altered = true;
    const bool is_kept = !lost[i] && !(is_digest && is_altered) &&
                         entry.kind != OrderKind::kCheck && entry.kind != OrderKind::kEnd &&
                         // The next file begins where the one before it ends.
                         !(entry.kind == OrderKind::kFence && !fences_.empty() &&
                           fences_.back() == static_cast<int64_t>(entry.step));
    if (is_digest || entry.kind == OrderKind::kRestart || entry.kind == OrderKind::kFence)
      is_altered = false;
    if (is_kept) entries_.push_back(file.entries[i]);
    if (entry.kind != OrderKind::kFence) continue;
    if (is_kept) fences_.push_back(static_cast<int64_t>(entry.step));
    if (end && static_cast<int64_t>(entry.step) == *end) return;
  }
  if (end)
    fail(ErrorCode::kModel, path, ": entry ", file.entries.size(), ": the file ends before step ",
         *end, ", from which the run was continued");
  if (fences_.empty()) fail(ErrorCode::kModel, path, ": the file has no whole step");
}

/// Leaves out what comes after the end.
void OrderReader::end_at(std::optional<int64_t> until) {
  until_ = fences_.back();
  if (until && *until > until_)
    fail(ErrorCode::kModel, files_.back().second, ": entry ", entries_.size() - files_.back().first,
         ": the order is known up to step ", until_, ", not ", *until);
  if (until) until_ = *until;
  const auto is_late = [&](uint64_t bits) {
    return static_cast<int64_t>(unpacked(bits).step) > until_;
  };
  const auto end = std::find_if(entries_.begin(), entries_.end(), [&](uint64_t bits) {
    return unpacked(bits).kind == OrderKind::kFence && is_late(bits);
  });
  entries_.erase(end, entries_.end());
  std::erase_if(fences_, [&](int64_t step) { return step > until_; });
  bool is_altered = false;  // since the last digest
  const auto is_left_out = [&](uint64_t bits) {
    const OrderKind kind = unpacked(bits).kind;
    if (kind == OrderKind::kDigest) return std::exchange(is_altered, false);
    if (kind == OrderKind::kRestart || kind == OrderKind::kFence) is_altered = false;
    is_altered = is_altered || is_late(bits);
    return is_late(bits);
  };
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), is_left_out), entries_.end());
}

std::optional<OrderEntry> OrderReader::next() const {
  return at_ < entries_.size() ? std::optional(unpacked(entries_[at_])) : std::nullopt;
}

template <class Wanted>
bool OrderReader::finds_before_fence(const Wanted& wanted) const {
  for (size_t i = at_; i < entries_.size(); ++i) {
    const OrderEntry entry = unpacked(entries_[i]);
    if (entry.kind == OrderKind::kFence) return false;
    if (wanted(entry)) return true;
  }
  return false;
}

bool OrderReader::expects(const OrderEntry& entry) const {
  return finds_before_fence([&](const OrderEntry& each) { return each == entry; });
}

bool OrderReader::expects_from(uint32_t worker) const {
  return finds_before_fence([&](const OrderEntry& each) {
    return each.worker == worker && each.kind <= OrderKind::kExchange;
  });
}

std::string OrderReader::place() const {
  const auto after = std::upper_bound(files_.begin(), files_.end(), at_,
                                      [](size_t at, const auto& file) { return at < file.first; });
  const auto& [first, path] = *(after - 1);
  return str(path, ", message ", at_ - first);
}

RecordedOrder read_order(const std::string& run, int64_t from, std::optional<int64_t> until) {
  const std::string folder = (fs::path(run) / kOrderFolder).string();
  const std::vector<int64_t> starts = starts_of(folder, 0);
  if (starts.empty())
    fail(ErrorCode::kUsage, run,
         ": the run has no order of its messages; asynchronous runs with "
         "parameter_server.order_log have one");
  if (from < starts.front())
    fail(ErrorCode::kUsage, run, ": the order of messages before step ", starts.front(),
         " was removed (parameter_server.order_log.keep); expected --from with a checkpoint of "
         "step ",
         starts.front(), " or later");
  RecordedOrder out;
  for (int lane = 0; lane < out.lanes; ++lane) {
    const OrderReader order(folder, lane, from, until);
    if (lane == 0)
      out = {order.header().lanes, order.header().workers, order.until(), order.fences(),
             order.has_end()};
    else if (order.fences() != out.fences || order.until() != out.last_step ||
             order.has_end() != out.has_ended)
      fail(ErrorCode::kModel, path_of(folder, from, lane), ": the file ends at step ",
           order.until(), ", that of lane 0 at step ", out.last_step, "; one of them is cut off");
  }
  return out;
}

}  // namespace paddle::ps
