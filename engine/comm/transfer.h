#pragma once
// A message on its way over a connection: a header, then its bytes, or, where the receiver reads
// the sender's memory, the addresses of their pieces.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "comm/transport.h"

namespace paddle::comm {

struct Header {
  uint32_t kind = 0;
  uint32_t tag = 0;  ///< of a posted message; of one by address, the number of its pieces
  uint64_t bytes = 0;
};

/// Set in `Header::kind`: what follows is a table of the pieces' addresses. The receiver copies
/// them from the memory of the sender and then reports it (kTaken).
inline constexpr uint32_t kByAddress = 1u << 31;
inline constexpr uint32_t kTaken = kByAddress | 0xffff;

struct Transfer {
  int peer = 0;
  Header header;
  std::span<const std::span<std::byte>> pieces;  ///< of what follows the header
  size_t size = 0;                               ///< of these together
  size_t done = 0;                               ///< of header and pieces
  bool by_address = false;
  /// Where a message that comes by address goes; `pieces` is its table then.
  std::span<const std::span<std::byte>> place = {};
  size_t piece = 0, at = 0;  ///< the next byte after the header

  bool finished() const { return done == sizeof header + size; }
  /// The memory of the next bytes; empty if the message is finished.
  std::span<std::byte> rest() {
    if (done < sizeof header)
      return {reinterpret_cast<std::byte*>(&header) + done, sizeof header - done};
    while (piece < pieces.size() && at == pieces[piece].size()) {
      ++piece;
      at = 0;
    }
    return piece < pieces.size() ? pieces[piece].subspan(at) : std::span<std::byte>();
  }
  /// Notes that `bytes` of `rest` have been moved.
  void advance(size_t bytes) {
    if (done >= sizeof header) at += bytes;
    done += bytes;
  }
  /// Reads another header.
  void start_over() {
    header = {};
    done = 0;
  }
};

/// A posted message as it travels: its header, then its bytes.
inline std::vector<std::byte> posted_message(uint32_t tag, std::span<const std::byte> bytes) {
  const Header header{static_cast<uint32_t>(Exchange::kMessage), tag, bytes.size()};
  std::vector<std::byte> message(sizeof header + bytes.size());
  std::memcpy(message.data(), &header, sizeof header);
  std::copy(bytes.begin(), bytes.end(), message.begin() + sizeof header);
  return message;
}

/// Moves the first of the messages of a peer that arrived before they were asked for to `bytes`;
/// kInternal for another size.
inline void take_kept(std::deque<std::vector<std::byte>>& kept, int rank, int peer,
                      std::span<std::byte> bytes) {
  const std::vector<std::byte> message = std::move(kept.front());
  kept.pop_front();
  if (message.size() != bytes.size())
    reject_mismatch(rank, Exchange::kMessage, bytes.size(), peer, Exchange::kMessage,
                    message.size());
  std::copy(message.begin(), message.end(), bytes.begin());
}

}  // namespace paddle::comm
