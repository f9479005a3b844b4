#include "comm/shared_memory_transport.h"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string_view>

#include "base/text.h"

namespace paddle::comm {
namespace {

iovec remote(uint64_t address, size_t size) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the other process says where it is.
  return {reinterpret_cast<void*>(static_cast<uintptr_t>(address)), size};
}

uint64_t address_of(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }

}  // namespace

void SharedMemoryTransport::open(int rank, const std::vector<Socket>& peers,
                                 const std::vector<std::string>& hosts) {
  reads_here_.assign(peers.size(), false);
  processes_.assign(peers.size(), 0);
  const char* const choice = std::getenv("PADDLE_TRANSPORT");
  const bool wanted = !choice || std::string_view(choice) != "tcp";
  // Where only descendants may be read: these ranks are siblings.
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const auto secret =
      std::make_unique<uint64_t>(static_cast<uint64_t>(now) ^ static_cast<uint64_t>(::getpid()));
  const auto is_local = [&](size_t peer) {
    return peer != static_cast<size_t>(rank) && hosts[peer] == hosts[static_cast<size_t>(rank)];
  };
  for (size_t peer = 0; peer < peers.size(); ++peer)
    if (is_local(peer))
      peers[peer].send_line(str(::getpid(), " ", address_of(secret.get()), " ", *secret));
  for (size_t peer = 0; peer < peers.size(); ++peer) {
    if (!is_local(peer)) continue;
    std::istringstream line(peers[peer].receive_line());
    uint64_t address = 0, value = 0, found = 0;
    line >> processes_[peer] >> address >> value;
    const iovec here{&found, sizeof found}, there = remote(address, sizeof found);
    const bool reads = wanted &&
                       ::process_vm_readv(processes_[peer], &here, 1, &there, 1, 0) ==
                           static_cast<ssize_t>(sizeof found) &&
                       found == value;
    peers[peer].send_line(reads ? "reads" : "does not read");
  }
  for (size_t peer = 0; peer < peers.size(); ++peer)
    if (is_local(peer)) reads_here_[peer] = peers[peer].receive_line() == "reads";
}

bool SharedMemoryTransport::copy(int peer, std::span<const RemotePiece> from,
                                 std::span<const std::span<std::byte>> to) const {
  constexpr size_t kAtOnce = 64;
  std::array<iovec, kAtOnce> here{}, there{};
  size_t from_piece = 0, from_at = 0, to_piece = 0, to_at = 0;
  const auto skip = [](auto pieces, size_t& piece, size_t& at, size_t bytes) {
    at += bytes;
    while (piece < pieces.size() && at >= pieces[piece].size()) at -= pieces[piece++].size();
  };
  const auto skip_remote = [&](size_t bytes) {
    from_at += bytes;
    while (from_piece < from.size() && from_at >= from[from_piece].size)
      from_at -= from[from_piece++].size;
  };
  skip(to, to_piece, to_at, 0);
  skip_remote(0);
  while (from_piece < from.size() && to_piece < to.size()) {
    size_t sources = 0, places = 0;
    for (size_t i = from_piece; i < from.size() && sources < kAtOnce; ++i) {
      const uint64_t begin = i == from_piece ? from_at : 0;
      there[sources++] = remote(from[i].address + begin, from[i].size - begin);
    }
    for (size_t i = to_piece; i < to.size() && places < kAtOnce; ++i) {
      const size_t begin = i == to_piece ? to_at : 0;
      here[places++] = {to[i].data() + begin, to[i].size() - begin};
    }
    const ssize_t n = ::process_vm_readv(processes_[static_cast<size_t>(peer)], here.data(), places,
                                         there.data(), sources, 0);
    if (n <= 0) return false;
    skip(to, to_piece, to_at, static_cast<size_t>(n));
    skip_remote(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace paddle::comm
