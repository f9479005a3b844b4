#include "comm/tcp_transport.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <utility>

#include "base/text.h"
#include "comm/shared_memory_transport.h"
#include "comm/transfer.h"

namespace paddle::comm {
namespace {

/// The least size of messages that go by address between processes of one machine.
constexpr size_t kDirect = 128 * 1024;
/// More pieces than any message has.
constexpr uint32_t kMaxPieces = 1 << 20;

/// Buffers received bytes of a peer, so that small messages take one system call together.
class Inbox {
 public:
  /// As ::recv.
  ssize_t read(int socket, std::span<std::byte> to) {
    if (begin_ == end_) {
      if (to.size() >= bytes_.size()) return ::recv(socket, to.data(), to.size(), 0);
      const ssize_t n = ::recv(socket, bytes_.data(), bytes_.size(), 0);
      if (n <= 0) return n;
      begin_ = 0;
      end_ = static_cast<size_t>(n);
    }
    const size_t n = std::min(to.size(), end_ - begin_);
    std::memcpy(to.data(), bytes_.data() + begin_, n);
    begin_ += n;
    return static_cast<ssize_t>(n);
  }

 private:
  static constexpr size_t kBytes = 32 * 1024;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kBytes);
  size_t begin_ = 0, end_ = 0;
};

class TcpTransport final : public ProcessTransport {
 public:
  TcpTransport(int rank, std::vector<Socket> peers, const std::vector<std::string>& hosts,
               const ProcessOptions& options)
      : ProcessTransport(rank, static_cast<int>(peers.size()), options), peers_(std::move(peers)) {
    shared_memory_.open(rank_, peers_, hosts);
    for (const Socket& peer : peers_)
      if (peer.descriptor() >= 0) peer.prepare_for_messages();
  }
  ~TcpTransport() override { life_.stop(); }

  void exchange(Exchange kind, std::span<const Outgoing> sends,
                std::span<const Incoming> receives) override {
    outgoing_.clear();
    incoming_.clear();
    for (const Outgoing& s : sends) {
      Transfer& t = outgoing_.emplace_back();
      t.peer = s.peer;
      t.size = size_of(s.pieces);
      t.header = {static_cast<uint32_t>(kind), 0, t.size};
      // Nothing is written through these.
      t.pieces = {reinterpret_cast<const std::span<std::byte>*>(s.pieces.data()), s.pieces.size()};
      if (shared_memory_.is_read_by(t.peer) && t.size >= kDirect) send_by_address(t);
    }
    for (const Incoming& r : receives) {
      Transfer& t = incoming_.emplace_back();
      t.peer = r.peer;
      t.pieces = r.pieces;
      t.size = size_of(r.pieces);
    }
    const Liveness::Scope scope(life_, kind);
    while (true) {
      waits_.clear();
      int missing = -1;
      // A message goes after those that were posted to the same rank.
      bool flushed = flush();
      for (Transfer& t : outgoing_)
        if (!t.finished() && (!connection(t.peer).posted.empty() || !send_some(t, kind)))
          wait_for(t.peer, POLLOUT, missing);
      for (Transfer& t : incoming_)
        if (!t.finished() && !receive_some(t, kind, 0)) wait_for(t.peer, POLLIN, missing);
      for (Transfer& t : outgoing_)
        if (t.by_address && !is_taken(t, kind)) wait_for(t.peer, POLLIN, missing);
      flushed = flush() && flushed;  // that messages have been taken
      if (waits_.empty() && flushed) return;
      wait(missing, scope);
    }
  }

  void isend(int peer, uint32_t tag, std::span<const std::byte> bytes) override {
    connection(peer).posted.push_back({posted_message(tag, bytes), 0});
    waits_.clear();
    flush();
  }

  void recv(int peer, uint32_t tag, std::span<std::byte> bytes) override {
    const Liveness::Scope scope(life_, Exchange::kMessage);
    auto& kept = connection(peer).stash[tag];
    if (!kept.empty()) {
      take_kept(kept, rank_, peer, bytes);
      return;
    }
    Transfer wanted;
    wanted.peer = peer;
    wanted.pieces = {&bytes, 1};
    wanted.size = bytes.size();
    while (true) {
      waits_.clear();
      flush();
      if (receive_some(wanted, Exchange::kMessage, tag)) return;
      int missing = -1;
      wait_for(peer, POLLIN, missing);
      wait(missing, scope);
    }
  }

  void abort(const std::string&) noexcept override {
    for (Socket& peer : peers_) peer.close();
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Posted {
    std::vector<std::byte> bytes;
    size_t done = 0;
  };
  /// A posted message that comes before the one that is wanted.
  struct Early {
    bool active = false;
    uint32_t tag = 0;
    std::vector<std::byte> bytes;
    size_t done = 0;
  };
  /// The state of the messages to and from a peer.
  struct Connection {
    Inbox inbox;
    std::deque<Posted> posted;
    std::map<uint32_t, std::deque<std::vector<std::byte>>> stash;
    Early early;
    Transfer taken;  ///< the answer to a message by address
    std::vector<RemotePiece> own_table, their_table;
    std::span<std::byte> own_bytes, their_bytes;  ///< of the tables
  };

  static size_t index(int peer) { return static_cast<size_t>(peer); }
  int socket(int peer) const { return peers_[index(peer)].descriptor(); }
  Connection& connection(int peer) { return connections_[index(peer)]; }

  [[noreturn]] void reject_lost(int peer, Exchange kind, const std::string& why) {
    life_.reject_lost(rank_, peer, kind, why);
  }

  void wait_for(int peer, short event, int& missing) {
    waits_.push_back({socket(peer), event, 0});
    if (missing < 0 || event == POLLIN) missing = peer;
  }

  void wait(int missing, const Liveness::Scope& scope) {
    life_.check();
    const auto begun = Clock::now();
    int ready = 0;
    do {
      ready = ::poll(waits_.data(), waits_.size(), 0);
    } while (ready == 0 && Clock::now() - begun < options_.spin);
    constexpr int kMoment = 200;
    if (ready == 0) ready = ::poll(waits_.data(), waits_.size(), kMoment);
    if (ready < 0 && errno != EINTR)
      fail(ErrorCode::kPeer, "waiting for other ranks: ", std::strerror(errno));
    if (ready > 0) return;
    scope.wait_for(rank_, missing);
  }

  /// Sends what was posted, as far as the sockets take it now; true if that is all.
  bool flush() {
    bool all = true;
    for (size_t i = 0; i < connections_.size(); ++i) {
      const auto peer = static_cast<int>(i);
      auto& posted = connections_[i].posted;
      while (!posted.empty()) {
        Posted& first = posted.front();
        const ssize_t n = ::send(socket(peer), first.bytes.data() + first.done,
                                 first.bytes.size() - first.done, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
          reject_lost(peer, Exchange::kMessage, std::strerror(errno));
        if (n > 0) first.done += static_cast<size_t>(n);
        if (first.done < first.bytes.size()) {
          waits_.push_back({socket(peer), POLLOUT, 0});
          all = false;
          break;
        }
        posted.pop_front();
      }
    }
    return all;
  }

  void send_by_address(Transfer& t) {
    Connection& c = connection(t.peer);
    c.own_table.clear();
    for (const std::span<std::byte> piece : t.pieces)
      c.own_table.push_back({reinterpret_cast<uintptr_t>(piece.data()), piece.size()});
    c.own_bytes = std::as_writable_bytes(std::span(c.own_table));
    t.header.kind |= kByAddress;
    t.header.tag = static_cast<uint32_t>(c.own_table.size());
    t.by_address = true;
    t.pieces = {&c.own_bytes, 1};
    t.size = c.own_bytes.size();
    c.taken = {};
    c.taken.peer = t.peer;
  }

  /// Whether the receiver has copied the message. The answer may come before or after a message of
  /// its own.
  bool is_taken(const Transfer& t, Exchange kind) {
    Transfer& answer = connection(t.peer).taken;
    if (answer.finished()) return true;
    const bool reading = std::any_of(incoming_.begin(), incoming_.end(), [&](const Transfer& i) {
      return i.peer == t.peer && !i.finished();
    });
    return !reading && t.finished() && receive_some(answer, kind, 0);
  }

  /// Copies a message from the memory of its sender, and confirms it.
  void copy_from(Transfer& t, Exchange kind) {
    Connection& c = connection(t.peer);
    uint64_t bytes = 0;
    for (const RemotePiece& piece : c.their_table) bytes += piece.size;
    if (bytes != size_of(t.place))
      reject_mismatch(rank_, kind, size_of(t.place), t.peer, kind, bytes);
    if (!shared_memory_.copy(t.peer, c.their_table, t.place))
      reject_lost(t.peer, kind, std::strerror(errno));
    const Header taken{kTaken, 0, 0};
    std::vector<std::byte> message(sizeof taken);
    std::memcpy(message.data(), &taken, sizeof taken);
    c.posted.push_back({std::move(message), 0});
  }

  /// Moves what the socket takes now; true if the message is finished.
  bool send_some(Transfer& t, Exchange kind) {
    while (!t.finished()) {
      // The header and the first pieces together.
      std::array<iovec, 16> parts{};
      size_t count = 0;
      const std::span<std::byte> rest = t.rest();
      parts[count++] = {rest.data(), rest.size()};
      const size_t next = t.done < sizeof t.header ? 0 : t.piece + 1;
      for (size_t i = next; i < t.pieces.size() && count < parts.size(); ++i)
        parts[count++] = {t.pieces[i].data(), t.pieces[i].size()};
      msghdr message{};
      message.msg_iov = parts.data();
      message.msg_iovlen = count;
      ssize_t n = ::sendmsg(socket(t.peer), &message, MSG_NOSIGNAL);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
      if (n < 0) reject_lost(t.peer, kind, std::strerror(errno));
      while (n > 0) {
        const size_t moved = std::min(t.rest().size(), static_cast<size_t>(n));
        t.advance(moved);
        n -= static_cast<ssize_t>(moved);
      }
    }
    return true;
  }

  /// Reads a message of this kind and tag. Posted messages of other tags that come before it are
  /// kept for `recv`.
  bool receive_some(Transfer& t, Exchange kind, uint32_t tag) {
    Connection& c = connection(t.peer);
    Early& early = c.early;
    while (!t.finished()) {
      const std::span<std::byte> to =
          early.active ? std::span(early.bytes).subspan(early.done) : t.rest();
      if (!to.empty()) {
        const ssize_t n = c.inbox.read(socket(t.peer), to);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
        if (n < 0) reject_lost(t.peer, kind, std::strerror(errno));
        if (n == 0) reject_lost(t.peer, kind, "its process has ended");
        if (early.active)
          early.done += static_cast<size_t>(n);
        else
          t.advance(static_cast<size_t>(n));
      }
      if (early.active) {
        if (early.done < early.bytes.size()) continue;
        c.stash[early.tag].push_back(std::move(early.bytes));
        early = {};
      } else if (t.done == sizeof t.header && !t.by_address) {
        look_at_header(t, kind, tag);
      } else if (t.by_address && t.finished()) {
        copy_from(t, kind);
      }
    }
    return true;
  }

  void look_at_header(Transfer& t, Exchange kind, uint32_t tag) {
    Connection& c = connection(t.peer);
    if (t.header.kind == kTaken) {
      if (&t == &c.taken) return;
      c.taken.done = sizeof t.header;
      t.start_over();
      return;
    }
    const bool by_address = (t.header.kind & kByAddress) != 0;
    const auto theirs = static_cast<Exchange>(t.header.kind & ~kByAddress);
    if (theirs == kind && (by_address || t.header.tag == tag) && t.header.bytes == t.size &&
        &t != &c.taken) {
      if (!by_address) return;
      if (t.header.tag > kMaxPieces)
        reject_mismatch(rank_, kind, t.size, t.peer, theirs, t.header.bytes);
      c.their_table.resize(t.header.tag);
      c.their_bytes = std::as_writable_bytes(std::span(c.their_table));
      t.by_address = true;
      t.place = t.pieces;
      t.pieces = {&c.their_bytes, 1};
      t.size = c.their_bytes.size();
      return;
    }
    constexpr uint64_t kMaxMessageBytes = uint64_t{1} << 40;
    if (theirs != Exchange::kMessage || (kind == theirs && t.header.tag == tag) || by_address ||
        t.header.bytes > kMaxMessageBytes)
      reject_mismatch(rank_, kind, t.size, t.peer, theirs, t.header.bytes);
    c.early = {true, t.header.tag, std::vector<std::byte>(t.header.bytes), 0};
    t.start_over();
  }

  std::vector<Socket> peers_;  ///< by rank; that of this rank is empty
  SharedMemoryTransport shared_memory_;
  std::vector<Connection> connections_ = std::vector<Connection>(peers_.size());
  std::vector<Transfer> outgoing_, incoming_;  ///< kept, so that a step allocates nothing
  std::vector<pollfd> waits_;
};

}  // namespace

std::shared_ptr<Transport> make_tcp_transport(int rank, std::vector<Socket> peers,
                                              const std::vector<std::string>& hosts,
                                              const ProcessOptions& options, Socket rendezvous,
                                              std::unique_ptr<RendezvousThread> host) {
  auto transport = std::make_shared<TcpTransport>(rank, std::move(peers), hosts, options);
  transport->start(std::move(rendezvous), std::move(host));
  return transport;
}

}  // namespace paddle::comm
