#include "comm/socket_streams.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <deque>
#include <map>
#include <utility>

#include "base/text.h"
#include "comm/sockets.h"

namespace paddle::comm {
namespace {

constexpr size_t kReceivedBytes = size_t{256} << 10;

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

class SocketListener final : public StreamListener {
 public:
  SocketListener(const std::string& host, int port)
      : listener_(listen_on(own_address(host), port)), host_(own_address(host)) {
    listener_.set_blocking(false);
  }

  std::string address() const override { return str(host_, ":", listener_.port()); }

  std::vector<StreamEvent> wait(std::chrono::milliseconds timeout) override {
    std::vector<StreamEvent> events;
    std::vector<pollfd> waits = {{listener_.descriptor(), POLLIN, 0}};
    std::vector<std::pair<int, Peer*>> waiting;
    for (auto it = peers_.begin(); it != peers_.end();) {
      Peer& peer = it->second;
      if (peer.is_closed || (peer.closes && peer.unsent.empty())) {
        events.push_back({StreamEvent::Kind::kClosed, it->first});
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
    if (waits[0].revents != 0) accept_callers(events);
    return events;
  }

  void send(int number, std::vector<std::byte> bytes) override {
    const auto at = peers_.find(number);
    if (at == peers_.end() || at->second.is_closed || bytes.empty()) return;
    Peer& peer = at->second;
    peer.unsent_bytes += bytes.size();
    peer.unsent.push_back(std::move(bytes));
    if (!send_some(peer)) peer.is_closed = true;
  }

  void close(int number) override {
    if (const auto at = peers_.find(number); at != peers_.end()) at->second.closes = true;
  }
  void abort(int number) override {
    const auto at = peers_.find(number);
    if (at == peers_.end()) return;
    at->second.is_closed = true;
    at->second.socket.close();
  }

 private:
  struct Peer {
    Socket socket;
    bool is_closed = false, closes = false;
    std::vector<std::byte> received;
    std::deque<std::vector<std::byte>> unsent;
    size_t sent = 0, unsent_bytes = 0;  ///< of the first one; of all
  };

  void accept_callers(std::vector<StreamEvent>& events) {
    constexpr int kAtOnce = 64;
    for (int i = 0; i < kAtOnce; ++i) {
      const int s =
          ::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (s < 0) return;
      Peer& peer = peers_[next_];
      peer.socket = Socket(s);
      peer.socket.prepare_for_messages();
      events.push_back({StreamEvent::Kind::kConnected, next_++});
    }
  }

  static bool send_some(Peer& peer) {
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

  static void receive(int number, Peer& peer, std::vector<StreamEvent>& events) {
    peer.received.resize(kReceivedBytes);
    const ssize_t n =
        ::recv(peer.socket.descriptor(), peer.received.data(), peer.received.size(), 0);
    if (n > 0)
      events.push_back({StreamEvent::Kind::kReceived, number,
                        std::span(peer.received).first(static_cast<size_t>(n))});
    else
      peer.is_closed = n == 0 || !would_wait();
  }

  Socket listener_;
  std::string host_;
  std::map<int, Peer> peers_;
  int next_ = 1;
};

class SocketCaller final : public StreamCaller {
 public:
  void connect(int peer, const std::string& address,
               std::chrono::milliseconds /*timeout*/) override {
    peers_.erase(peer);
    Peer made;
    made.socket = connect_to(address);  // made at once, or an error
    made.socket.prepare_for_messages();
    peers_[peer] = std::move(made);
  }

  bool send(int peer, std::span<const std::byte> bytes,
            std::chrono::milliseconds timeout) override {
    const auto at = peers_.find(peer);
    if (at == peers_.end() || at->second.is_closed) return false;
    const int descriptor = at->second.socket.descriptor();
    while (!bytes.empty()) {
      const ssize_t n = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n >= 0) {
        bytes = bytes.subspan(static_cast<size_t>(n));
        continue;
      }
      if (!would_wait()) return false;
      pollfd wait{descriptor, POLLOUT, 0};
      if (::poll(&wait, 1, static_cast<int>(timeout.count())) == 0) return false;
    }
    return true;
  }

  std::vector<StreamEvent> wait(std::chrono::milliseconds timeout) override {
    std::vector<pollfd> waits;
    std::vector<std::pair<int, Peer*>> waiting;
    for (auto& [number, peer] : peers_) {
      if (peer.is_closed) continue;
      waits.push_back({peer.socket.descriptor(), POLLIN, 0});
      waiting.emplace_back(number, &peer);
    }
    std::vector<StreamEvent> events;
    if (::poll(waits.data(), waits.size(), static_cast<int>(timeout.count())) <= 0) return events;
    for (size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].revents == 0) continue;
      const auto [number, peer] = waiting[i];
      peer->received.resize(kReceivedBytes);
      const ssize_t n = ::recv(waits[i].fd, peer->received.data(), peer->received.size(), 0);
      if (n > 0) {
        events.push_back({StreamEvent::Kind::kReceived, number,
                          std::span(peer->received).first(static_cast<size_t>(n))});
      } else if (n == 0 || !would_wait()) {
        peer->is_closed = true;
        events.push_back({StreamEvent::Kind::kClosed, number});
      }
    }
    return events;
  }

  std::string cause(int /*peer*/) const override { return ""; }
  void close(int peer) override { peers_.erase(peer); }

 private:
  struct Peer {
    Socket socket;
    std::vector<std::byte> received;
    bool is_closed = false;
  };
  std::map<int, Peer> peers_;
};

}  // namespace

std::unique_ptr<StreamListener> listen_for_socket_streams(const std::string& host, int port) {
  return std::make_unique<SocketListener>(host, port);
}

std::unique_ptr<StreamCaller> call_socket_streams() { return std::make_unique<SocketCaller>(); }

}  // namespace paddle::comm
