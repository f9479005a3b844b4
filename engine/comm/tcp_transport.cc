#include "comm/tcp_transport.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "comm/sockets.h"

namespace paddle::comm {
namespace {

struct Header {
  uint32_t kind = 0;
  uint32_t reserved = 0;
  uint64_t bytes = 0;
};

/// A message on its way: first its header, then its bytes.
struct Transfer {
  int peer = 0;
  Header header;
  std::byte* bytes = nullptr;
  size_t size = 0;
  size_t done = 0;  ///< of header and bytes together
  bool finished() const { return done == sizeof header + size; }
};

class TcpTransport final : public Transport {
 public:
  TcpTransport(int rank, std::vector<Socket> peers) : rank_(rank), peers_(std::move(peers)) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }

  void exchange(Exchange kind, std::span<const Outgoing> sends,
                std::span<const Incoming> receives) override {
    outgoing_.clear();
    incoming_.clear();
    for (const Outgoing& s : sends)
      outgoing_.push_back({s.peer,
                           {static_cast<uint32_t>(kind), 0, s.bytes.size()},
                           const_cast<std::byte*>(s.bytes.data()),
                           s.bytes.size()});
    for (const Incoming& r : receives)
      incoming_.push_back({r.peer, {}, r.bytes.data(), r.bytes.size()});
    while (true) {
      waits_.clear();
      for (Transfer& t : outgoing_)
        if (!t.finished() && !send_some(t, kind)) waits_.push_back({socket(t.peer), POLLOUT, 0});
      for (Transfer& t : incoming_)
        if (!t.finished() && !receive_some(t, kind)) waits_.push_back({socket(t.peer), POLLIN, 0});
      if (waits_.empty()) return;
      if (::poll(waits_.data(), waits_.size(), -1) < 0 && errno != EINTR)
        fail(ErrorCode::kPeer, "waiting for other ranks: ", std::strerror(errno));
    }
  }

  void abort(const std::string&) noexcept override {
    for (Socket& peer : peers_) peer.close();
  }

 private:
  int socket(int peer) const { return peers_[static_cast<size_t>(peer)].descriptor(); }

  [[noreturn]] void refuse_lost(int peer, Exchange kind, const std::string& why) const {
    fail(ErrorCode::kPeer, "rank ", rank_, " lost rank ", peer, " during ", text(kind), ": ", why);
  }

  /// Moves what the socket takes now; true if the message is finished.
  bool send_some(Transfer& t, Exchange kind) {
    while (!t.finished()) {
      const bool in_header = t.done < sizeof t.header;
      const std::byte* const from = in_header
                                        ? reinterpret_cast<const std::byte*>(&t.header) + t.done
                                        : t.bytes + (t.done - sizeof t.header);
      const size_t left = in_header ? sizeof t.header - t.done : sizeof t.header + t.size - t.done;
      const ssize_t n = ::send(socket(t.peer), from, left, MSG_NOSIGNAL);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
      if (n < 0) refuse_lost(t.peer, kind, std::strerror(errno));
      t.done += static_cast<size_t>(n);
    }
    return true;
  }

  bool receive_some(Transfer& t, Exchange kind) {
    while (!t.finished()) {
      const bool in_header = t.done < sizeof t.header;
      std::byte* const to = in_header ? reinterpret_cast<std::byte*>(&t.header) + t.done
                                      : t.bytes + (t.done - sizeof t.header);
      const size_t left = in_header ? sizeof t.header - t.done : sizeof t.header + t.size - t.done;
      const ssize_t n = ::recv(socket(t.peer), to, left, 0);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
      if (n < 0) refuse_lost(t.peer, kind, std::strerror(errno));
      if (n == 0) refuse_lost(t.peer, kind, "its process has ended");
      t.done += static_cast<size_t>(n);
      const auto theirs = static_cast<Exchange>(t.header.kind);
      if (in_header && t.done == sizeof t.header && (theirs != kind || t.header.bytes != t.size))
        refuse_mismatch(rank_, kind, t.size, t.peer, theirs, t.header.bytes);
    }
    return true;
  }

  int rank_;
  std::vector<Socket> peers_;                  ///< by rank; that of this rank is empty
  std::vector<Transfer> outgoing_, incoming_;  ///< kept, so that a step allocates nothing
  std::vector<pollfd> waits_;
};

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

int environment_number(const char* name, int least) {
  const std::string value = environment(name);
  const std::optional<int64_t> number = parse_integer(value);
  if (!number || *number < least || *number > kMostRanks)
    fail(ErrorCode::kUsage, name, ": expected a number from ", least, " to ", kMostRanks,
         ", found '", value, "'");
  return static_cast<int>(*number);
}

std::string random_token() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    fail(ErrorCode::kDevice, "the system has no random numbers");
  std::string out;
  for (const unsigned char b : bytes) {
    out += "0123456789abcdef"[b >> 4];
    out += "0123456789abcdef"[b & 15];
  }
  return out;
}

}  // namespace

Membership membership_from_environment() {
  Membership m;
  if (environment("PADDLE_WORLD_SIZE").empty()) return m;
  m.size = environment_number("PADDLE_WORLD_SIZE", 1);
  m.rank = environment_number("PADDLE_RANK", 0);
  m.rendezvous = environment("PADDLE_RENDEZVOUS");
  m.token = environment("PADDLE_RENDEZVOUS_TOKEN");
  if (m.rank >= m.size)
    fail(ErrorCode::kUsage, "PADDLE_RANK is ", m.rank, ", PADDLE_WORLD_SIZE ", m.size,
         ": ranks count from 0");
  if (m.size > 1 && m.rendezvous.find(':') == std::string::npos)
    fail(ErrorCode::kUsage, "PADDLE_RENDEZVOUS: expected host:port, found '", m.rendezvous,
         "'; paddle-launch sets it");
  return m;
}

std::shared_ptr<Transport> join(const Membership& m) {
  Socket listener = listen_on_loopback();
  Socket launcher = connect_to(m.rendezvous);
  launcher.send_line(str(m.token, " ", m.rank, " ", listener.port()));
  // "PORT PORT …" of all ranks, when they have come.
  std::istringstream answer(launcher.receive_line());
  std::vector<Socket> peers(static_cast<size_t>(m.size));
  const std::string host = m.rendezvous.substr(0, m.rendezvous.rfind(':'));
  for (int peer = 0; peer < m.size; ++peer) {
    int port = 0;
    if (!(answer >> port))
      fail(ErrorCode::kPeer, "rank ", m.rank, ": the launcher ended before all ranks had come");
    if (peer >= m.rank) continue;  // those call here
    Socket& socket = peers[static_cast<size_t>(peer)] = connect_to(str(host, ":", port));
    socket.send_line(str(m.token, " ", m.rank));
  }
  for (int waiting = m.size - m.rank - 1; waiting > 0;) {
    Socket caller = listener.accept();
    std::istringstream line(caller.receive_line());
    std::string token;
    int peer = -1;
    line >> token >> peer;
    if (token != m.token || peer <= m.rank || peer >= m.size) continue;  // not one of ours
    peers[static_cast<size_t>(peer)] = std::move(caller);
    --waiting;
  }
  for (int peer = 0; peer < m.size; ++peer)
    if (peer != m.rank) peers[static_cast<size_t>(peer)].prepare_for_messages();
  return std::make_shared<TcpTransport>(m.rank, std::move(peers));
}

Rendezvous::Rendezvous(int ranks) : ranks_(ranks), token_(random_token()) {
  Socket listener = listen_on_loopback();
  port_ = listener.port();
  listener.set_blocking(false);
  listener_ = listener.release();
}

Rendezvous::~Rendezvous() {
  for (const Guest& guest : guests_) ::close(guest.socket);
  ::close(listener_);
}

std::string Rendezvous::address() const { return str("127.0.0.1:", port_); }

std::vector<int> Rendezvous::descriptors() const {
  std::vector<int> out;
  if (complete_) return out;
  out.push_back(listener_);
  for (const Guest& guest : guests_)
    if (guest.rank < 0) out.push_back(guest.socket);
  return out;
}

void Rendezvous::advance() {
  if (complete_) return;
  for (int s; (s = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;)
    guests_.push_back({s, {}, -1, 0});
  int present = 0;
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    char buffer[256];
    ssize_t n = 1;
    while (guest->rank < 0 && (n = ::recv(guest->socket, buffer, sizeof buffer, 0)) > 0) {
      guest->received.append(buffer, static_cast<size_t>(n));
      if (guest->received.find('\n') == std::string::npos && guest->received.size() < 512) continue;
      std::istringstream line(guest->received);
      std::string token;
      line >> token >> guest->rank >> guest->port;
      if (token != token_ || guest->rank < 0 || guest->rank >= ranks_) n = 0;
      break;
    }
    if (n == 0) {  // gone, or not one of ours
      ::close(guest->socket);
      guest = guests_.erase(guest);
      continue;
    }
    present += guest->rank >= 0;
    ++guest;
  }
  if (present < ranks_) return;
  std::vector<int> ports(static_cast<size_t>(ranks_));
  for (const Guest& guest : guests_)
    if (guest.rank >= 0) ports[static_cast<size_t>(guest.rank)] = guest.port;
  std::string line;
  for (const int port : ports) line += str(port, " ");
  line += "\n";
  for (const Guest& guest : guests_)
    if (guest.rank >= 0) (void)!::send(guest.socket, line.data(), line.size(), MSG_NOSIGNAL);
  complete_ = true;
}

}  // namespace paddle::comm
