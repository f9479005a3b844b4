#include "comm/tcp_transport.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "comm/heartbeat.h"

namespace paddle::comm {
namespace {

struct Header {
  uint32_t kind = 0;
  uint32_t tag = 0;  ///< of a posted message
  uint64_t bytes = 0;
};

/// Set in `Header::kind`: what follows is the address of the bytes, which the receiver copies from
/// the memory of the sender and then reports it (kTaken).
constexpr uint32_t kByAddress = 1u << 31;
constexpr uint32_t kTaken = kByAddress | 0xffff;
/// The least size of messages that go by address between processes of one machine.
constexpr size_t kDirect = 128 * 1024;

/// A message on its way: first its header, then its bytes.
struct Transfer {
  int peer = 0;
  Header header;
  std::byte* bytes = nullptr;
  size_t size = 0;
  size_t done = 0;       ///< of header and bytes together
  uint64_t address = 0;  ///< of a message that goes by address; `bytes` is this number then
  bool by_address = false;
  std::byte* place = nullptr;  ///< where a message that comes by address goes
  size_t place_size = 0;
  bool finished() const { return done == sizeof header + size; }
};

class TcpTransport final : public Transport {
 public:
  TcpTransport(int rank, std::vector<Socket> peers, const JoinOptions& options)
      : rank_(rank),
        peers_(std::move(peers)),
        posted_(peers_.size()),
        stash_(peers_.size()),
        timeout_(options.timeout) {}
  ~TcpTransport() override { heartbeat_.reset(); }

  void prepare() {
    for (const Socket& peer : peers_)
      if (peer.descriptor() >= 0) peer.prepare_for_messages();
  }

  /// Starts signs of life; `host` is the rendezvous if it is in this process.
  void watch(Socket rendezvous, std::unique_ptr<RendezvousThread> host) {
    host_ = std::move(host);
    heartbeat_ = std::make_unique<Heartbeat>(std::move(rendezvous), activity_,
                                             [this](const std::string& reason) { end(reason); });
  }

  /// Finds out which ranks may read the memory of which others; `hosts` are the addresses of all.
  /// All ranks call it, before messages.
  void share_memory(const std::vector<std::string>& hosts) {
    const char* const choice = std::getenv("PADDLE_TRANSPORT");
    const bool wanted = !choice || std::string_view(choice) != "tcp";
    // Where only descendants may be read: these ranks are siblings.
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    const auto secret =
        std::make_unique<uint64_t>(static_cast<uint64_t>(Clock::now().time_since_epoch().count()) ^
                                   static_cast<uint64_t>(::getpid()));
    const auto is_near = [&](size_t peer) {
      return static_cast<int>(peer) != rank_ && hosts[peer] == hosts[index(rank_)];
    };
    for (size_t peer = 0; peer < peers_.size(); ++peer)
      if (is_near(peer))
        peers_[peer].send_line(
            str(::getpid(), " ", reinterpret_cast<uintptr_t>(secret.get()), " ", *secret));
    for (size_t peer = 0; peer < peers_.size(); ++peer) {
      if (!is_near(peer)) continue;
      std::istringstream line(peers_[peer].receive_line());
      uint64_t address = 0, value = 0, found = 0;
      line >> pids_[peer] >> address >> value;
      const iovec here{&found, sizeof found};
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      const iovec there{reinterpret_cast<void*>(static_cast<uintptr_t>(address)), sizeof found};
      const bool reads = wanted &&
                         ::process_vm_readv(pids_[peer], &here, 1, &there, 1, 0) == sizeof found &&
                         found == value;
      peers_[peer].send_line(reads ? "reads" : "does not read");
    }
    for (size_t peer = 0; peer < peers_.size(); ++peer)
      if (is_near(peer)) reads_here_[peer] = peers_[peer].receive_line() == "reads";
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  void at_step(int64_t step) override { activity_.at_step(step); }

  void exchange(Exchange kind, std::span<const Outgoing> sends,
                std::span<const Incoming> receives) override {
    outgoing_.clear();
    incoming_.clear();
    for (const Outgoing& s : sends)
      outgoing_.push_back({s.peer,
                           {static_cast<uint32_t>(kind), 0, s.bytes.size()},
                           const_cast<std::byte*>(s.bytes.data()),
                           s.bytes.size()});
    for (Transfer& t : outgoing_)
      if (reads_here_[index(t.peer)] && t.size >= kDirect) send_by_address(t);
    for (const Incoming& r : receives)
      incoming_.push_back({r.peer, {}, r.bytes.data(), r.bytes.size()});
    const Entered entered(activity_, kind);
    const Deadline deadline(timeout_);
    while (true) {
      waits_.clear();
      int missing = -1;
      // A message goes after those that were posted to the same rank.
      bool flushed = flush();
      for (Transfer& t : outgoing_)
        if (!t.finished() && (!posted_[index(t.peer)].empty() || !send_some(t, kind)))
          wait_for(t.peer, POLLOUT, missing);
      for (Transfer& t : incoming_)
        if (!t.finished() && !receive_some(t, kind, 0)) wait_for(t.peer, POLLIN, missing);
      for (Transfer& t : outgoing_)
        if (t.by_address && !is_taken(t, kind)) wait_for(t.peer, POLLIN, missing);
      flushed = flush() && flushed;  // that messages have been taken
      if (waits_.empty() && flushed) return;
      wait(missing, deadline);
    }
  }

  void post(int peer, uint32_t tag, std::span<const std::byte> bytes) override {
    const Header header{static_cast<uint32_t>(Exchange::kMessage), tag, bytes.size()};
    std::vector<std::byte> message(sizeof header + bytes.size());
    std::memcpy(message.data(), &header, sizeof header);
    std::copy(bytes.begin(), bytes.end(), message.begin() + sizeof header);
    posted_[index(peer)].push_back({std::move(message), 0});
    waits_.clear();
    flush();
  }

  void take(int peer, uint32_t tag, std::span<std::byte> bytes) override {
    const Entered entered(activity_, Exchange::kMessage);
    const Deadline deadline(timeout_);
    auto& kept = stash_[index(peer)][tag];
    if (!kept.empty()) {
      const std::vector<std::byte> message = std::move(kept.front());
      kept.pop_front();
      if (message.size() != bytes.size())
        refuse_mismatch(rank_, Exchange::kMessage, bytes.size(), peer, Exchange::kMessage,
                        message.size());
      std::copy(message.begin(), message.end(), bytes.begin());
      return;
    }
    Transfer wanted{peer, {}, bytes.data(), bytes.size()};
    while (true) {
      waits_.clear();
      flush();
      if (receive_some(wanted, Exchange::kMessage, tag)) return;
      int missing = -1;
      wait_for(peer, POLLIN, missing);
      wait(missing, deadline);
    }
  }

  void abort(const std::string&) noexcept override {
    for (Socket& peer : peers_) peer.close();
  }

 private:
  /// Says for the scope of a call what the rank is doing.
  struct Entered {
    Entered(Activity& activity, Exchange kind) : activity_(activity) { activity_.enter(kind); }
    ~Entered() { activity_.leave(); }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    Activity& activity_;
  };
  using Clock = std::chrono::steady_clock;
  struct Deadline {
    explicit Deadline(std::chrono::milliseconds patience) : at(Clock::now() + patience) {}
    Clock::time_point at;
  };
  struct Posted {
    std::vector<std::byte> bytes;
    size_t done = 0;
  };

  static size_t index(int peer) { return static_cast<size_t>(peer); }
  int socket(int peer) const { return peers_[index(peer)].descriptor(); }

  [[noreturn]] void refuse_lost(int peer, Exchange kind, const std::string& why) {
    const std::lock_guard lock(end_mutex_);
    if (!end_reason_.empty()) fail(ErrorCode::kPeer, end_reason_);
    fail(ErrorCode::kPeer, "rank ", rank_, " lost rank ", peer, " during ", text(kind), ": ", why);
  }

  void end(const std::string& reason) {
    const std::lock_guard lock(end_mutex_);
    end_reason_ = reason;
    ended_ = true;
  }

  void wait_for(int peer, short event, int& missing) {
    waits_.push_back({socket(peer), event, 0});
    if (missing < 0 || event == POLLIN) missing = peer;
  }

  void wait(int missing, const Deadline& deadline) {
    if (ended_) {
      const std::lock_guard lock(end_mutex_);
      fail(ErrorCode::kPeer, end_reason_);
    }
    constexpr int kMoment = 200;
    const int ready = ::poll(waits_.data(), waits_.size(), kMoment);
    if (ready < 0 && errno != EINTR)
      fail(ErrorCode::kPeer, "waiting for other ranks: ", std::strerror(errno));
    if (ready > 0) return;
    activity_.wait_for(missing);
    if (Clock::now() > deadline.at)
      fail(ErrorCode::kPeer, "rank ", rank_, " has waited for rank ", missing, " in ",
           activity_.text(), " for ",
           std::chrono::duration_cast<std::chrono::seconds>(timeout_).count(), " seconds");
  }

  /// Sends what was posted, as far as the sockets take it now; true if that is all.
  bool flush() {
    bool all = true;
    for (size_t peer = 0; peer < posted_.size(); ++peer)
      while (!posted_[peer].empty()) {
        Posted& first = posted_[peer].front();
        const ssize_t n = ::send(socket(static_cast<int>(peer)), first.bytes.data() + first.done,
                                 first.bytes.size() - first.done, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
          refuse_lost(static_cast<int>(peer), Exchange::kMessage, std::strerror(errno));
        if (n > 0) first.done += static_cast<size_t>(n);
        if (first.done < first.bytes.size()) {
          waits_.push_back({socket(static_cast<int>(peer)), POLLOUT, 0});
          all = false;
          break;
        }
        posted_[peer].pop_front();
      }
    return all;
  }

  void send_by_address(Transfer& t) {
    t.header.kind |= kByAddress;
    t.address = reinterpret_cast<uintptr_t>(t.bytes);
    t.by_address = true;
    t.bytes = reinterpret_cast<std::byte*>(&t.address);
    t.size = sizeof t.address;
    taken_[index(t.peer)] = {t.peer, {}, nullptr, 0};
  }

  /// Whether the receiver has copied the message. The answer may come before or behind a message of
  /// its own.
  bool is_taken(const Transfer& t, Exchange kind) {
    Transfer& answer = taken_[index(t.peer)];
    if (answer.finished()) return true;
    const bool reading = std::any_of(incoming_.begin(), incoming_.end(), [&](const Transfer& i) {
      return i.peer == t.peer && !i.finished();
    });
    return !reading && t.finished() && receive_some(answer, kind, 0);
  }

  /// Copies a message from the memory of its sender.
  void copy_from(int peer, uint64_t address, std::byte* to, size_t size, Exchange kind) {
    while (size > 0) {
      const iovec here{to, size};
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the other process says where it is.
      const iovec there{reinterpret_cast<void*>(static_cast<uintptr_t>(address)), size};
      const ssize_t n = ::process_vm_readv(pids_[index(peer)], &here, 1, &there, 1, 0);
      if (n <= 0) refuse_lost(peer, kind, std::strerror(errno));
      to += n;
      address += static_cast<uint64_t>(n);
      size -= static_cast<size_t>(n);
    }
    const Header taken{kTaken, 0, 0};
    std::vector<std::byte> message(sizeof taken);
    std::memcpy(message.data(), &taken, sizeof taken);
    posted_[index(peer)].push_back({std::move(message), 0});
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

  /// Reads a message of this kind and tag. Posted messages of other tags that come before it are
  /// kept for `take`.
  bool receive_some(Transfer& t, Exchange kind, uint32_t tag) {
    Early& early = early_[index(t.peer)];
    while (!t.finished()) {
      std::byte* to = nullptr;
      size_t left = 0;
      if (early.active) {
        to = early.bytes.data() + early.done;
        left = early.bytes.size() - early.done;
      } else if (t.done < sizeof t.header) {
        to = reinterpret_cast<std::byte*>(&t.header) + t.done;
        left = sizeof t.header - t.done;
      } else {
        to = t.bytes + (t.done - sizeof t.header);
        left = sizeof t.header + t.size - t.done;
      }
      if (left > 0) {
        const ssize_t n = ::recv(socket(t.peer), to, left, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
        if (n < 0) refuse_lost(t.peer, kind, std::strerror(errno));
        if (n == 0) refuse_lost(t.peer, kind, "its process has ended");
        (early.active ? early.done : t.done) += static_cast<size_t>(n);
      }
      if (early.active) {
        if (early.done < early.bytes.size()) continue;
        stash_[index(t.peer)][early.tag].push_back(std::move(early.bytes));
        early = {};
      } else if (t.done == sizeof t.header && !t.by_address) {
        look_at_header(t, kind, tag, early);
      } else if (t.by_address && t.finished()) {
        copy_from(t.peer, t.address, t.place, t.place_size, kind);
      }
    }
    return true;
  }

  struct Early {
    bool active = false;
    uint32_t tag = 0;
    std::vector<std::byte> bytes;
    size_t done = 0;
  };

  void look_at_header(Transfer& t, Exchange kind, uint32_t tag, Early& early) {
    if (t.header.kind == kTaken) {
      if (&t == &taken_[index(t.peer)]) return;
      taken_[index(t.peer)].done = sizeof t.header;
      t.header = {};
      t.done = 0;
      return;
    }
    const auto theirs = static_cast<Exchange>(t.header.kind & ~kByAddress);
    if (theirs == kind && t.header.tag == tag && t.header.bytes == t.size &&
        &t != &taken_[index(t.peer)]) {
      if ((t.header.kind & kByAddress) == 0) return;
      t.by_address = true;
      t.place = t.bytes;
      t.place_size = t.size;
      t.bytes = reinterpret_cast<std::byte*>(&t.address);
      t.size = sizeof t.address;
      return;
    }
    constexpr uint64_t kLongest = uint64_t{1} << 40;
    if (theirs != Exchange::kMessage || (kind == theirs && t.header.tag == tag) ||
        t.header.bytes > kLongest)
      refuse_mismatch(rank_, kind, t.size, t.peer, theirs, t.header.bytes);
    early = {true, t.header.tag, std::vector<std::byte>(t.header.bytes), 0};
    t.header = {};
    t.done = 0;
  }

  int rank_;
  std::vector<Socket> peers_;                  ///< by rank; that of this rank is empty
  std::vector<Transfer> outgoing_, incoming_;  ///< kept, so that a step allocates nothing
  std::vector<pollfd> waits_;
  std::vector<std::deque<Posted>> posted_;                                     ///< by receiver
  std::vector<std::map<uint32_t, std::deque<std::vector<std::byte>>>> stash_;  ///< by sender
  std::vector<Early> early_ = std::vector<Early>(peers_.size());
  std::vector<bool> reads_here_ = std::vector<bool>(peers_.size(), false);
  std::vector<pid_t> pids_ = std::vector<pid_t>(peers_.size(), 0);
  std::vector<Transfer> taken_ = std::vector<Transfer>(peers_.size());  ///< answers, by receiver
  std::chrono::milliseconds timeout_;
  Activity activity_;
  std::mutex end_mutex_;
  std::string end_reason_;
  std::atomic<bool> ended_ = false;
  std::unique_ptr<RendezvousThread> host_;
  std::unique_ptr<Heartbeat> heartbeat_;
};

std::chrono::milliseconds seconds_in_environment(const char* name,
                                                 std::chrono::milliseconds other) {
  const char* const value = std::getenv(name);
  if (!value || !*value) return other;
  char* end = nullptr;
  const double seconds = std::strtod(value, &end);
  constexpr double kLongest = 1e7, kMilliseconds = 1000;
  if (*end || !(seconds > 0) || seconds > kLongest)
    fail(ErrorCode::kUsage, name, ": expected seconds, found '", value, "'");
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * kMilliseconds));
}

}  // namespace

JoinOptions JoinOptions::from_environment() {
  JoinOptions o;
  o.patience = seconds_in_environment("PADDLE_JOIN_TIMEOUT", o.patience);
  o.dead_after = seconds_in_environment("PADDLE_DEAD_AFTER", o.dead_after);
  o.timeout = seconds_in_environment("PADDLE_TIMEOUT", o.timeout);
  return o;
}

std::shared_ptr<Transport> join(const Membership& m, const JoinOptions& options) {
  std::unique_ptr<RendezvousThread> host;
  if (!m.source.empty() && m.rank == 0)
    host = std::make_unique<RendezvousThread>(m.size, m.rendezvous, m.token, options.dead_after,
                                              options.notice);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.patience).count();
  Socket rendezvous;
  try {
    rendezvous = connect_to(m.rendezvous, options.patience);
  } catch (const Error& e) {
    if (m.rank == 0 || e.code() != ErrorCode::kPeer) throw;
    fail(ErrorCode::kPeer, "rank ", m.rank, " has waited ", seconds,
         " seconds for rank 0: ", e.message());
  }
  Socket listener = listen_on(rendezvous.host(), 0);
  rendezvous.send_line(
      str(m.token, " rank ", m.rank, " ", rendezvous.host(), ":", listener.port(), " ", m.attempt));
  // "HOST:PORT HOST:PORT …" of all ranks, when they have come.
  if (!rendezvous.wait_readable(options.patience))
    fail(ErrorCode::kPeer, "rank ", m.rank, " has waited ", seconds, " seconds for ",
         host ? "rank " + host->missing() : "the other ranks", " at ", m.rendezvous);
  std::istringstream answer(rendezvous.receive_line());
  std::vector<std::string> hosts;
  std::vector<Socket> peers(static_cast<size_t>(m.size));
  for (int peer = 0; peer < m.size; ++peer) {
    std::string address;
    if (!(answer >> address))
      fail(ErrorCode::kPeer, "rank ", m.rank, ": the launcher ended before all ranks had come");
    hosts.push_back(address.substr(0, address.rfind(':')));
    if (peer >= m.rank) continue;  // those call here
    Socket& socket = peers[static_cast<size_t>(peer)] = connect_to(address, options.patience);
    socket.send_line(str(m.token, " ", m.rank));
  }
  for (int waiting = m.size - m.rank - 1; waiting > 0;) {
    if (!listener.wait_readable(options.patience))
      fail(ErrorCode::kPeer, "rank ", m.rank, " has waited ", seconds, " seconds for ", waiting,
           " ranks to connect to ", listener.host(), ":", listener.port());
    Socket caller = listener.accept();
    // A stranger that says nothing must not stop the run.
    constexpr auto kGreeting = std::chrono::seconds(5);
    if (!caller.wait_readable(kGreeting)) continue;
    std::istringstream line(caller.receive_line());
    std::string token;
    int peer = -1;
    line >> token >> peer;
    if (token != m.token || peer <= m.rank || peer >= m.size) continue;  // not one of ours
    peers[static_cast<size_t>(peer)] = std::move(caller);
    --waiting;
  }
  auto transport = std::make_shared<TcpTransport>(m.rank, std::move(peers), options);
  transport->share_memory(hosts);
  transport->prepare();
  transport->watch(std::move(rendezvous), std::move(host));
  return transport;
}

}  // namespace paddle::comm
