// A transport whose ranks have two connections each, however many they are: messages travel around
// a ring and are passed on by the ranks between sender and receiver. PADDLE_TRANSPORT=ring.ring
// selects it; ranks must be on one machine, as the connections are Unix sockets.
//
//   paddle plugin build plugins/ring -o ring.so
//   paddle plugin check ring.so
//   PADDLE_TRANSPORT=ring.ring paddle launch -n 3 paddle train config.yaml --plugin ring.so

#include <paddle/plugin/plugin.hpp>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace {

using paddle::plugin::Failure;
using paddle::plugin::Messages;

/// The connection to a neighbor.
class Connection {
 public:
  explicit Connection(int descriptor = -1) : descriptor_(descriptor) {}
  ~Connection() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  int descriptor() const { return descriptor_; }

  bool send(const void* data, size_t size) const {
    const auto* at = static_cast<const std::byte*>(data);
    while (size > 0) {
      const ssize_t n = ::send(descriptor_, at, size, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += n;
      size -= static_cast<size_t>(n);
    }
    return true;
  }
  bool receive(void* data, size_t size) const {
    auto* at = static_cast<std::byte*>(data);
    while (size > 0) {
      const ssize_t n = ::recv(descriptor_, at, size, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += n;
      size -= static_cast<size_t>(n);
    }
    return true;
  }
  /// No more is sent; the neighbor still receives what was.
  void end_sending() const { ::shutdown(descriptor_, SHUT_WR); }
  void end() const { ::shutdown(descriptor_, SHUT_RDWR); }

 private:
  int descriptor_;
};

/// An address in the abstract namespace, which needs no file. It is unique for the listener.
sockaddr_un address_of(const std::string& name, socklen_t& size) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

[[noreturn]] void fail_with_errno(const char* what) {
  throw Failure(PADDLE_DEVICE, std::string(what) + ": " + std::strerror(errno));
}

class Ring {
 public:
  explicit Ring(const paddle::plugin::Rank& rank)
      : rank_(rank.rank()), size_(rank.size()), timeout_(rank.timeout()) {
    for (int32_t other = 0; other < size_; ++other)
      if (rank.host(other) != rank.host(rank_))
        throw Failure(PADDLE_USAGE, "ring: the ranks are on several machines");
    connect(rank);
    receiver_ = std::thread([this] { receive_all(); });
    sender_ = std::thread([this] { send_all(); });
  }

  /// Says that this rank ends, and passes on messages of others until they all have said so.
  ~Ring() {
    bool lost = false;
    {
      std::unique_lock lock(mutex_);
      if (reason_.empty()) outgoing_.push_back({{.kind = Kind::kEnd, .from = rank_}, {}});
      changed_.notify_all();
      changed_.wait(lock, [this] { return !reason_.empty() || ended_ == size_; });
      lost = !reason_.empty();
      closes_ = true;
      changed_.notify_all();
    }
    sender_.join();
    next_->end_sending();
    if (lost) previous_->end();  // that rank may not know yet
    receiver_.join();
  }

  void exchange(uint32_t kind, Messages sends, Messages receives) {
    {
      const std::lock_guard lock(mutex_);
      for (const paddle_message* message : sends) {
        std::vector<std::byte> bytes;
        for (uint32_t i = 0; i < message->piece_count; ++i) {
          const auto* const piece = static_cast<const std::byte*>(message->pieces[i]);
          bytes.insert(bytes.end(), piece, piece + message->sizes[i]);
        }
        const Header header = {.size = bytes.size(),
                               .kind = Kind::kExchange,
                               .from = rank_,
                               .to = message->peer,
                               .kind_of_exchange = kind};
        enqueue(header, std::move(bytes));
      }
    }
    for (const paddle_message* message : receives) {
      size_t expected = 0;
      for (uint32_t i = 0; i < message->piece_count; ++i) expected += message->sizes[i];
      const Frame frame = wait_for(Kind::kExchange, message->peer, 0);
      if (frame.header.kind_of_exchange != kind)
        reject("rank " + std::to_string(message->peer) + " is in another exchange");
      check_size(frame, expected);
      const std::byte* from = frame.bytes.data();
      for (uint32_t i = 0; i < message->piece_count; from += message->sizes[i++])
        if (message->sizes[i] > 0) std::memcpy(message->pieces[i], from, message->sizes[i]);
    }
  }

  void post(int32_t peer, uint32_t tag, const void* bytes, size_t size) {
    const auto* const begin = static_cast<const std::byte*>(bytes);
    const std::lock_guard lock(mutex_);
    enqueue({.size = size, .kind = Kind::kMessage, .from = rank_, .to = peer, .tag = tag},
            {begin, begin + size});
  }

  void take(int32_t peer, uint32_t tag, void* bytes, size_t size) {
    const Frame frame = wait_for(Kind::kMessage, peer, tag);
    check_size(frame, size);
    if (size > 0) std::memcpy(bytes, frame.bytes.data(), size);
  }

  void abort(const char* reason) noexcept {
    const std::lock_guard lock(mutex_);
    end_run(reason && *reason ? reason : "the run was aborted");
  }

 private:
  enum class Kind : uint32_t { kExchange, kMessage, kEnd, kAbort };
  struct Header {
    uint64_t size = 0;
    Kind kind = Kind::kExchange;
    int32_t from = 0, to = 0;
    uint32_t tag = 0, kind_of_exchange = 0, unused = 0;
  };
  struct Frame {
    Header header;
    std::vector<std::byte> bytes;
  };

  void connect(const paddle::plugin::Rank& rank) {
    const Connection listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un own{};
    own.sun_family = AF_UNIX;
    // An address without a name: the system chooses one.
    if (::bind(listener.descriptor(), reinterpret_cast<sockaddr*>(&own), sizeof(sa_family_t)) !=
            0 ||
        ::listen(listener.descriptor(), 1) != 0)
      fail_with_errno("ring: a socket");
    socklen_t size = sizeof own;
    ::getsockname(listener.descriptor(), reinterpret_cast<sockaddr*>(&own), &size);
    const size_t name = size - offsetof(sockaddr_un, sun_path) - 1;
    rank.put("address", std::string(own.sun_path + 1, name));
    const std::string next = rank.get((rank_ + 1) % size_, "address");
    const sockaddr_un address = address_of(next, size);
    next_ = std::make_unique<Connection>(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(next_->descriptor(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
      fail_with_errno("ring: the next rank");
    previous_ = std::make_unique<Connection>(
        ::accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    if (previous_->descriptor() < 0) fail_with_errno("ring: the rank before");
    ucred peer{};
    socklen_t peer_size = sizeof peer;
    if (::getsockopt(previous_->descriptor(), SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0 ||
        peer.uid != ::getuid())
      throw Failure(PADDLE_PEER, "ring: a process of another user has connected");
  }

  /// Adds a frame to what is sent to the next rank. With the lock.
  void enqueue(const Header& header, std::vector<std::byte> bytes) {
    if (!reason_.empty()) throw Failure(PADDLE_PEER, reason_);
    outgoing_.push_back({header, std::move(bytes)});
    changed_.notify_all();
  }

  /// Ends the run for all ranks. With the lock.
  void end_run(const std::string& reason) {
    if (!reason_.empty()) return;
    reason_ = reason;
    const auto* const text = reinterpret_cast<const std::byte*>(reason_.data());
    outgoing_.clear();
    outgoing_.push_back({{.size = reason_.size(), .kind = Kind::kAbort, .from = rank_},
                         {text, text + reason_.size()}});
    changed_.notify_all();
  }

  [[noreturn]] void reject(const std::string& why) {
    const std::lock_guard lock(mutex_);
    end_run(why);
    throw Failure(PADDLE_INTERNAL, why);
  }
  void check_size(const Frame& frame, size_t expected) {
    if (frame.bytes.size() != expected)
      reject("rank " + std::to_string(frame.header.from) + " sends " +
             std::to_string(frame.bytes.size()) + " bytes, expected " + std::to_string(expected));
  }

  Frame wait_for(Kind kind, int32_t peer, uint32_t tag) {
    std::unique_lock lock(mutex_);
    auto& frames = inbox_[{kind, peer, tag}];
    const bool arrived =
        changed_.wait_for(lock, std::chrono::duration<double>(std::min(timeout_, 1e6)),
                          [&] { return !frames.empty() || !reason_.empty(); });
    if (!arrived) end_run("waited too long for rank " + std::to_string(peer));
    if (frames.empty()) throw Failure(PADDLE_PEER, reason_);
    Frame out = std::move(frames.front());
    frames.pop_front();
    return out;
  }

  void send_all() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !outgoing_.empty() || closes_; });
      if (outgoing_.empty()) return;
      const Frame frame = std::move(outgoing_.front());
      outgoing_.pop_front();
      lock.unlock();
      const bool sent = next_->send(&frame.header, sizeof frame.header) &&
                        next_->send(frame.bytes.data(), frame.bytes.size());
      lock.lock();
      if (!sent) {
        end_run("the next rank of the ring has ended");
        outgoing_.clear();
        return;
      }
    }
  }

  /// Takes what is for this rank and passes on the rest. A frame of this rank that comes back has
  /// been everywhere.
  void receive_all() {
    Frame frame;
    while (previous_->receive(&frame.header, sizeof frame.header)) {
      constexpr uint64_t kMaxFrame = uint64_t{1} << 34;
      if (frame.header.size > kMaxFrame) break;
      frame.bytes.resize(frame.header.size);
      if (!previous_->receive(frame.bytes.data(), frame.bytes.size())) break;
      const std::lock_guard lock(mutex_);
      const Header& h = frame.header;
      if (h.kind == Kind::kAbort) {
        if (reason_.empty() && h.from != rank_) {
          reason_.assign(reinterpret_cast<const char*>(frame.bytes.data()), frame.bytes.size());
          outgoing_.clear();
          outgoing_.push_back(std::move(frame));
        }
      } else if (h.kind == Kind::kEnd) {
        ++ended_;
        if (h.from != rank_) outgoing_.push_back(std::move(frame));
      } else if (h.to == rank_) {
        inbox_[{h.kind, h.from, h.tag}].push_back(std::move(frame));
      } else if (reason_.empty()) {
        outgoing_.push_back(std::move(frame));
      }
      changed_.notify_all();
      frame = {};
    }
    const std::lock_guard lock(mutex_);
    if (ended_ < size_) end_run("the rank before this one in the ring has ended");
  }

  const int32_t rank_, size_;
  const double timeout_;
  std::unique_ptr<Connection> next_, previous_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Frame> outgoing_;
  std::map<std::tuple<Kind, int32_t, uint32_t>, std::deque<Frame>> inbox_;
  std::string reason_;  ///< for which the run has ended
  int32_t ended_ = 0;   ///< ranks that have said that they end
  bool closes_ = false;
  std::thread receiver_, sender_;
};

}  // namespace

PADDLE_PLUGIN(ring, "1.0.0", plugin) {
  plugin.summary("messages around a ring of ranks");
  plugin.transport<Ring>("ring", "around a ring of Unix sockets, on one machine");
}
