#include "comm/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "comm/handshake.h"

namespace paddle::comm {
namespace {

constexpr size_t kMaxHandshakeLine = 1024;
constexpr size_t kReceivedBytes = size_t{256} << 10;
constexpr size_t kMaxUnsent = size_t{64} << 20;

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

struct ChannelListener::Peer {
  Socket socket;
  Challenge challenge;
  bool is_admitted = false, is_closed = false, closes = false;
  std::string line;
  std::vector<std::byte> received;
  std::deque<std::vector<std::byte>> unsent;
  size_t sent = 0, unsent_bytes = 0;  ///< of the first one; of all
  Clock::time_point since = Clock::now();

  void put(std::vector<std::byte> bytes) {
    unsent_bytes += bytes.size();
    unsent.push_back(std::move(bytes));
  }
  void put_line(const std::string& text) {
    const std::string whole = text + "\n";
    const auto bytes = std::as_bytes(std::span(whole));
    put({bytes.begin(), bytes.end()});
  }
};

ChannelListener::ChannelListener(const std::string& host, int port, std::string token,
                                 std::chrono::milliseconds handshake_timeout)
    : listener_(listen_on(own_address(host), port)),
      host_(own_address(host)),
      token_(std::move(token)),
      handshake_timeout_(handshake_timeout) {
  listener_.set_blocking(false);
}

ChannelListener::~ChannelListener() = default;

std::string ChannelListener::address() const { return str(host_, ":", listener_.port()); }

void ChannelListener::accept_callers() {
  for (int s; (s = ::accept4(listener_.descriptor(), nullptr, nullptr,
                             SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
    Socket socket(s);
    const auto is_pending = [](const auto& each) { return !each.second->is_admitted; };
    const auto pending =
        static_cast<size_t>(std::count_if(peers_.begin(), peers_.end(), is_pending));
    if (peers_.size() - pending >= kMaxPeers) continue;
    // A caller that knows the token needs a moment only.
    if (pending >= kMaxPending)
      peers_.erase(std::find_if(peers_.begin(), peers_.end(), is_pending));
    socket.prepare_for_messages();
    auto peer = std::make_unique<Peer>();
    peer->socket = std::move(socket);
    peer->put_line(peer->challenge.line());
    send_some(*peer);
    peers_.emplace(next_++, std::move(peer));
  }
}

bool ChannelListener::send_some(Peer& peer) {
  while (!peer.unsent.empty()) {
    const std::vector<std::byte>& first = peer.unsent.front();
    const ssize_t n = ::send(peer.socket.descriptor(), first.data() + peer.sent,
                             first.size() - peer.sent, MSG_NOSIGNAL);
    if (n < 0) return would_wait();
    peer.sent += static_cast<size_t>(n);
    if (peer.sent < first.size()) continue;
    peer.unsent_bytes -= first.size();
    peer.sent = 0;
    peer.unsent.pop_front();
  }
  return true;
}

bool ChannelListener::handle_lines(int number, Peer& peer, std::vector<Event>& events) {
  const size_t end = peer.line.find('\n');
  if (end == std::string::npos) return peer.line.size() <= kMaxHandshakeLine;
  // Nothing may follow before the caller has been admitted.
  if (end + 1 != peer.line.size()) return false;
  const auto request = peer.challenge.accept(token_, peer.line.substr(0, end));
  if (!request) return false;
  peer.is_admitted = true;
  peer.put_line(peer.challenge.welcome());
  events.push_back({Event::Kind::kConnected, number, *request});
  return send_some(peer);
}

void ChannelListener::receive(int number, Peer& peer, std::vector<Event>& events) {
  peer.received.resize(kReceivedBytes);
  const ssize_t n = ::recv(peer.socket.descriptor(), peer.received.data(), peer.received.size(), 0);
  if (n == 0 || (n < 0 && !would_wait())) {
    peer.is_closed = true;
    return;
  }
  if (n < 0) return;
  const auto bytes = std::span(peer.received).first(static_cast<size_t>(n));
  if (peer.is_admitted) {
    events.push_back({.kind = Event::Kind::kReceived, .peer = number, .bytes = bytes});
    return;
  }
  peer.line.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  peer.is_closed = !handle_lines(number, peer, events);
}

std::vector<ChannelListener::Event> ChannelListener::wait(std::chrono::milliseconds timeout) {
  std::vector<Event> events;
  std::vector<pollfd> waits = {{listener_.descriptor(), POLLIN, 0}};
  std::vector<std::pair<int, Peer*>> waiting;
  for (auto it = peers_.begin(); it != peers_.end();) {
    Peer& peer = *it->second;
    const bool is_late =
        (!peer.is_admitted || peer.closes) && Clock::now() - peer.since > handshake_timeout_;
    if (peer.is_closed || is_late || (peer.closes && peer.unsent.empty())) {
      if (peer.is_admitted) events.push_back({.kind = Event::Kind::kClosed, .peer = it->first});
      it = peers_.erase(it);
      continue;
    }
    // A peer that takes no answers asks for no more.
    const bool reads = peer.unsent_bytes < kMaxUnsent && !peer.closes;
    const auto wanted =
        static_cast<short>((reads ? POLLIN : 0) | (peer.unsent.empty() ? 0 : POLLOUT));
    waits.push_back({peer.socket.descriptor(), wanted, 0});
    waiting.emplace_back(it->first, &peer);
    ++it;
  }
  if (!events.empty()) timeout = std::chrono::milliseconds(0);
  if (::poll(waits.data(), waits.size(), static_cast<int>(timeout.count())) <= 0) return events;
  for (size_t i = 0; i < waiting.size(); ++i) {
    Peer& peer = *waiting[i].second;
    const short happened = waits[i + 1].revents;
    if ((happened & POLLOUT) != 0 && !send_some(peer)) peer.is_closed = true;
    if (peer.closes)
      peer.is_closed = peer.is_closed || (happened & (POLLHUP | POLLERR)) != 0;
    else if ((happened & (POLLIN | POLLHUP | POLLERR)) != 0 && !peer.is_closed)
      receive(waiting[i].first, peer, events);
  }
  if (waits[0].revents != 0) accept_callers();
  return events;
}

void ChannelListener::send(int peer, std::vector<std::byte> bytes) {
  const auto at = peers_.find(peer);
  if (at == peers_.end() || at->second->is_closed || bytes.empty()) return;
  at->second->put(std::move(bytes));
  if (!send_some(*at->second)) at->second->is_closed = true;
}

void ChannelListener::close(int peer) {
  const auto at = peers_.find(peer);
  if (at == peers_.end()) return;
  at->second->closes = true;
  at->second->since = Clock::now();
}

Channel::Channel(const std::string& address, const std::string& token, const std::string& request,
                 std::chrono::milliseconds timeout)
    : socket_(connect_to(address, std::chrono::milliseconds(0))) {
  if (!request_admission(socket_, token, request, timeout))
    fail(ErrorCode::kPeer, address,
         " has closed the connection: it is of another run or has a different token");
  socket_.prepare_for_messages();
}

bool Channel::send(std::span<const std::byte> bytes, std::chrono::milliseconds timeout) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(n));
      continue;
    }
    if (!would_wait()) return false;
    pollfd wait{socket_.descriptor(), POLLOUT, 0};
    if (::poll(&wait, 1, static_cast<int>(timeout.count())) == 0) return false;
  }
  return true;
}

std::optional<size_t> Channel::receive(std::span<std::byte> to) {
  const ssize_t n = ::recv(socket_.descriptor(), to.data(), to.size(), 0);
  if (n > 0) return static_cast<size_t>(n);
  if (n < 0 && would_wait()) return 0;
  return std::nullopt;
}

}  // namespace paddle::comm
