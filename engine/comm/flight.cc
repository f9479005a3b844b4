#include "comm/flight.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/span.h"
#include "tensor/random.h"

namespace paddle::comm {
namespace {

static_assert(sizeof(FlightHeader) <= kFlightHeaderBytes);
static_assert(sizeof(FlightRecord) == 192);

/// A hash of what identifies the members of an exchange.
uint64_t members_number(const FlightRecord& record) {
  uint64_t hash = 0;
  const bool is_message = (record.flags & (FlightRecord::kSends | FlightRecord::kReceives)) != 0;
  for (const auto part : {static_cast<uint64_t>(is_message), static_cast<uint64_t>(record.first),
                          static_cast<uint64_t>(record.stride), static_cast<uint64_t>(record.count),
                          uint64_t{record.tag}})
    hash = mix64(hash ^ part);
  return hash;
}

void* map_new_file(const std::string& path) {
  const auto reject = [&](int error) {
    fail(ErrorCode::kDevice, path, ": cannot keep a record of exchanges: ", std::strerror(error));
  };
  ::unlink(path.c_str());  // a process that still ends may have the file that was there
  constexpr mode_t kMode = 0644;
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
  if (file < 0) reject(errno);
  // A page that the disk has no room for would end the process when it is written.
  int error = ::posix_fallocate(file, 0, static_cast<off_t>(kFlightBytes));
  void* memory = MAP_FAILED;
  if (error == 0) {
    memory = ::mmap(nullptr, kFlightBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) error = errno;
  }
  ::close(file);
  if (error != 0) {
    ::unlink(path.c_str());
    reject(error);
  }
  return memory;
}

}  // namespace

FlightRecorder::FlightRecorder(const std::string& path, int rank, int size, int64_t clock_offset)
    : memory_(map_new_file(path)), rank_(rank) {
  auto* const header = new (memory_) FlightHeader;
  header->rank = rank;
  header->size = size;
  header->process = ::getpid();
  header->clock_offset = clock_offset;
  header->activity_since = steady_nanoseconds();
  ::gethostname(header->host.data(), header->host.size() - 1);
  std::atomic_thread_fence(std::memory_order_release);
  header->magic = FlightHeader::kMagic;
}

FlightRecorder::~FlightRecorder() { ::munmap(memory_, kFlightBytes); }

void FlightRecorder::set_step(int64_t step) { header().step = step; }

void FlightRecorder::set_activity(const char* name) {
  FlightHeader& h = header();
  const int64_t now = steady_nanoseconds();
  const char* const before = h.activity.data();
  if (*before) {
    FlightRecord record{.step = h.step,
                        .begin = h.activity_since,
                        .end = now,
                        .flags = FlightRecord::kActivity,
                        .first = rank_};
    add(record, before, std::strlen(before));
  }
  h.activity.fill('\0');
  h.activity_since = now;
  std::copy_n(name, std::min(std::strlen(name), h.activity.size() - 1), h.activity.data());
}

void FlightRecorder::set_end(FlightEnd end) { header().end = end; }

FlightRecord& FlightRecorder::place_of(uint64_t number) {
  auto* const records =
      reinterpret_cast<FlightRecord*>(static_cast<std::byte*>(memory_) + kFlightHeaderBytes);
  return records[(number - 1) % kFlightRecords];
}

uint64_t FlightRecorder::add(FlightRecord record, const char* place, size_t place_size) {
  const uint64_t number = header().records.load(std::memory_order_relaxed) + 1;
  FlightRecord& to = place_of(number);
  to.number = 0;  // a reader skips it meanwhile
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(record.place, place, std::min(place_size, FlightRecord::kMaxPlace - 1));
  to = record;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  to.number = number;
  header().records.store(number, std::memory_order_release);
  return number;
}

uint64_t FlightRecorder::enter(Exchange kind, std::span<const int> group, int64_t bytes,
                               const std::string* place) {
  FlightRecord record;
  record.kind = static_cast<uint32_t>(kind);
  record.step = header().step;
  record.bytes = bytes;
  record.first = group.empty() ? rank_ : group[0];
  record.stride = group.size() > 1 ? group[1] - group[0] : 1;
  record.count = static_cast<int32_t>(std::max<size_t>(1, group.size()));
  record.turn = ++turns_[members_number(record)];
  record.begin = steady_nanoseconds();
  return add(record, place ? place->data() : "", place ? place->size() : 0);
}

uint64_t FlightRecorder::enter_message(int from, int to, uint32_t tag, int64_t bytes,
                                       const std::string* place) {
  FlightRecord record;
  record.kind = static_cast<uint32_t>(Exchange::kMessage);
  record.flags = from == rank_ ? FlightRecord::kSends : FlightRecord::kReceives;
  record.step = header().step;
  record.bytes = bytes;
  record.first = from;
  record.stride = to - from;
  record.count = 2;
  record.tag = tag;
  record.turn = ++turns_[members_number(record)];
  record.begin = steady_nanoseconds();
  return add(record, place ? place->data() : "", place ? place->size() : 0);
}

void FlightRecorder::leave(uint64_t number) {
  FlightRecord& record = place_of(number);
  if (record.number == number) record.end = steady_nanoseconds();
}

}  // namespace paddle::comm
