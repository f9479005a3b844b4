#include "comm/clock.h"

#include <cstdlib>
#include <limits>

#include "base/span.h"

namespace paddle::comm {
namespace {

constexpr uint32_t kTag = 0xc10c;
constexpr int kRounds = 16;

std::span<std::byte> bytes_of(int64_t& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

std::vector<int64_t> clock_offsets(Communicator& communicator) {
  int64_t value = 0;
  if (!communicator.is_root()) {
    for (int i = 0; i < kRounds; ++i) {
      communicator.recv(0, kTag, bytes_of(value));
      value = steady_nanoseconds();
      communicator.isend(0, kTag, bytes_of(value));
    }
    return {};
  }
  std::vector<int64_t> offsets = {0};
  for (int rank = 1; rank < communicator.size(); ++rank) {
    int64_t shortest = std::numeric_limits<int64_t>::max(), offset = 0;
    for (int i = 0; i < kRounds; ++i) {
      const int64_t begin = steady_nanoseconds();
      communicator.isend(rank, kTag, bytes_of(value));
      communicator.recv(rank, kTag, bytes_of(value));
      const int64_t end = steady_nanoseconds();
      if (end - begin >= shortest) continue;
      shortest = end - begin;
      offset = begin + shortest / 2 - value;
    }
    offsets.push_back(std::abs(offset) <= shortest / 2 ? 0 : offset);
  }
  return offsets;
}

}  // namespace paddle::comm
