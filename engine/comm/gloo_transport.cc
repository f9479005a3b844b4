#include "comm/gloo_transport.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/hex.h"
#include "base/module.h"
#include "base/text.h"
#include "comm/gloo/interface.h"
#include "comm/transfer.h"

namespace paddle::comm {
namespace {

/// The functions of the module. Those that fail give the reason in `problem`.
class Gloo {
 public:
  static Gloo& get() {
    static Gloo gloo;
    return gloo;
  }

  decltype(paddle_gloo_open)* open = find<decltype(paddle_gloo_open)>("paddle_gloo_open");
  decltype(paddle_gloo_address)* address =
      find<decltype(paddle_gloo_address)>("paddle_gloo_address");
  decltype(paddle_gloo_connect)* connect =
      find<decltype(paddle_gloo_connect)>("paddle_gloo_connect");
  decltype(paddle_gloo_close)* close = find<decltype(paddle_gloo_close)>("paddle_gloo_close");
  decltype(paddle_gloo_abort)* abort = find<decltype(paddle_gloo_abort)>("paddle_gloo_abort");
  decltype(paddle_gloo_begin)* begin = find<decltype(paddle_gloo_begin)>("paddle_gloo_begin");
  decltype(paddle_gloo_wait)* wait = find<decltype(paddle_gloo_wait)>("paddle_gloo_wait");
  decltype(paddle_gloo_free)* free = find<decltype(paddle_gloo_free)>("paddle_gloo_free");

 private:
  template <class F>
  static F* find(const char* name) {
    static Module module(Module::default_path("gloo"), PADDLE_GLOO_VERSION);
    return module.require<F>(name, "PADDLE_TRANSPORT: this installation has no Gloo");
  }
};

/// The reason for which a function of the module failed.
struct Problem {
  char text[512] = "";
};

/// The connections of a rank.
class Group {
 public:
  Group(const std::string& host, int rank, int size, std::chrono::milliseconds timeout)
      : gloo_(Gloo::get()) {
    Problem problem;
    if (gloo_.open(host.c_str(), rank, size, timeout.count(), &group_, problem.text,
                   sizeof problem.text))
      fail(ErrorCode::kPeer, "Gloo: ", problem.text);
  }
  ~Group() { gloo_.close(group_); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  std::string address(int peer) {
    char bytes[512];
    size_t size = 0;
    Problem problem;
    if (gloo_.address(group_, peer, bytes, sizeof bytes, &size, problem.text, sizeof problem.text))
      fail(ErrorCode::kPeer, "Gloo: ", problem.text);
    return {bytes, size};
  }
  void connect(int rank, int peer, const std::string& address) {
    Problem problem;
    if (gloo_.connect(group_, peer, address.data(), address.size(), problem.text,
                      sizeof problem.text))
      fail(ErrorCode::kPeer, "rank ", rank, " cannot connect with rank ", peer,
           " over Gloo: ", problem.text);
  }
  void abort() { gloo_.abort(group_); }

 private:
  friend class Request;
  Gloo& gloo_;
  void* group_ = nullptr;
};

/// A message that Gloo sends or receives.
class Request {
 public:
  Request() = default;
  ~Request() { reset(); }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  /// False with the reason in `problem` if the connection is lost.
  bool begin(Group& group, bool send, int peer, uint64_t slot, std::span<const std::byte> memory,
             Problem& problem) {
    reset();
    gloo_ = &group.gloo_;
    // Nothing is written to memory that is sent.
    return gloo_->begin(group.group_, send, peer, slot, const_cast<std::byte*>(memory.data()),
                        memory.size(), &request_, problem.text, sizeof problem.text) == 0;
  }
  /// Whether the message has arrived; false after the time-out, after Group::abort and, with the
  /// reason in `problem`, if the connection is lost.
  bool wait(std::chrono::milliseconds timeout, Problem& problem) {
    bool arrived = false;
    gloo_->wait(request_, timeout.count(), &arrived, problem.text, sizeof problem.text);
    return arrived;
  }
  void reset() {
    if (request_) gloo_->free(std::exchange(request_, nullptr));
  }

 private:
  Gloo* gloo_ = nullptr;
  void* request_ = nullptr;
};

/// Messages on a slot between two ranks keep their order; every message is a header and then, if it
/// has any, its bytes on the next slot.
constexpr uint64_t kExchangeSlot = 0;
uint64_t post_slot(uint32_t tag) { return 2 + 2 * uint64_t{tag}; }

/// Posted messages: Gloo reads them when their receivers ask for them, and a thread frees those
/// that have been sent.
class Outbox {
 public:
  Outbox(Group& group, std::chrono::milliseconds timeout) : group_(group), timeout_(timeout) {}
  ~Outbox() { finish(); }

  bool post(int peer, uint32_t tag, std::span<const std::byte> bytes, Problem& problem) {
    auto message = std::make_unique<Message>();
    message->header = {static_cast<uint32_t>(Exchange::kMessage), tag, bytes.size()};
    message->bytes.assign(bytes.begin(), bytes.end());
    const auto header = std::as_bytes(std::span(&message->header, 1));
    if (!message->head.begin(group_, true, peer, post_slot(tag), header, problem)) return false;
    if (!bytes.empty() &&
        !message->body.begin(group_, true, peer, post_slot(tag) + 1, message->bytes, problem))
      return false;
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
    wake_.notify_one();
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    return true;
  }
  /// Waits until all messages have been sent, or the group is aborted.
  void finish() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
      wake_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  struct Message {
    Header header;
    std::vector<std::byte> bytes;
    Request head, body;  // end before the memory that they read
  };

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return ends_ || !messages_.empty(); });
      if (messages_.empty()) return;
      const std::unique_ptr<Message> first = std::move(messages_.front());
      messages_.pop_front();
      lock.unlock();
      // A lost receiver is reported by the next exchange and the rendezvous.
      Problem ignored;
      if (first->head.wait(timeout_, ignored) && !first->bytes.empty())
        first->body.wait(timeout_, ignored);
      lock.lock();
    }
  }

  Group& group_;
  std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::unique_ptr<Message>> messages_;
  bool ends_ = false;
  std::thread thread_;
};

/// The bytes of a line that hex_digits made.
std::string from_line(const std::string& line) {
  std::string bytes;
  for (size_t i = 0; i + 1 < line.size(); i += 2)
    bytes += static_cast<char>(hex_value(line[i]) * 16 + hex_value(line[i + 1]));
  return bytes;
}

class GlooTransport final : public ProcessTransport {
 public:
  GlooTransport(int rank, const std::vector<Socket>& peers, const std::string& host,
                const ProcessOptions& options)
      : ProcessTransport(rank, static_cast<int>(peers.size()), options),
        group_(host, rank, size_, options.join_timeout),
        outbox_(group_, options.timeout) {
    const auto others = [&](auto&& f) {
      for (int peer = 0; peer < size_; ++peer)
        if (peer != rank_) f(peer, peers[static_cast<size_t>(peer)]);
    };
    others([&](int peer, const Socket& s) {
      const std::string address = group_.address(peer);
      s.send_line(hex_digits(std::as_bytes(std::span(address))));
    });
    others([&](int peer, const Socket& s) {
      if (!s.wait_readable(options.join_timeout))
        fail(ErrorCode::kPeer, "rank ", rank_, " has waited ", seconds_text(options.join_timeout),
             " seconds for the address of rank ", peer);
      group_.connect(rank_, peer, from_line(s.receive_line()));
    });
  }
  /// Gloo drops what is on its way when it closes a connection, so ranks that end well wait for
  /// each other. A rank that closed its connections earlier has received all messages.
  ~GlooTransport() override {
    if (broken_ || std::uncaught_exceptions() > 0) {
      group_.abort();
    } else {
      outbox_.finish();
      try {
        drain_barrier();
      } catch (const Error&) {
      }
    }
    outbox_.finish();
    life_.stop();
  }

  void exchange(Exchange kind, std::span<const Outgoing> sends,
                std::span<const Incoming> receives) override {
    const Liveness::Scope scope(life_, kind);
    move(kind, sends, receives, &scope);
  }

  void isend(int peer, uint32_t tag, std::span<const std::byte> bytes) override {
    Problem problem;
    if (!outbox_.post(peer, tag, bytes, problem)) reject_lost(peer, Exchange::kMessage, problem);
  }

  void recv(int peer, uint32_t tag, std::span<std::byte> bytes) override {
    const Liveness::Scope scope(life_, Exchange::kMessage);
    Header header;
    Request request;
    begin(request, false, peer, post_slot(tag), header_bytes(header), Exchange::kMessage);
    wait(request, peer, Exchange::kMessage, &scope);
    check_header(header, Exchange::kMessage, peer, bytes.size());
    if (bytes.empty()) return;
    begin(request, false, peer, post_slot(tag) + 1, bytes, Exchange::kMessage);
    wait(request, peer, Exchange::kMessage, &scope);
  }

  void abort(const std::string&) noexcept override {
    broken_ = true;
    group_.abort();
  }

 protected:
  std::function<void()> on_lost() override {
    return [this] { group_.abort(); };
  }

 private:
  /// A message of an exchange.
  struct Moving {
    int peer = 0;
    Header header;
    std::span<const std::span<std::byte>> pieces;
    std::vector<std::byte> packed;  ///< the pieces one after the other, if there are several
    Request head, body;             // end before the memory that they use

    std::span<std::byte> bytes() {
      if (pieces.size() == 1) return pieces[0];
      return packed;
    }
  };

  static std::span<std::byte> header_bytes(Header& header) {
    return std::as_writable_bytes(std::span(&header, 1));
  }

  void move(Exchange kind, std::span<const Outgoing> sends, std::span<const Incoming> receives,
            const Liveness::Scope* scope) {
    std::deque<Moving> in, out;
    for (const Incoming& r : receives) {
      Moving& m = in.emplace_back();
      m.peer = r.peer;
      m.pieces = r.pieces;
      begin(m.head, false, m.peer, kExchangeSlot, header_bytes(m.header), kind);
    }
    for (const Outgoing& s : sends) {
      Moving& m = out.emplace_back();
      m.peer = s.peer;
      // Nothing is written through these.
      m.pieces = {reinterpret_cast<const std::span<std::byte>*>(s.pieces.data()), s.pieces.size()};
      if (m.pieces.size() != 1)
        for (const std::span<std::byte> piece : m.pieces)
          m.packed.insert(m.packed.end(), piece.begin(), piece.end());
      m.header = {static_cast<uint32_t>(kind), 0, m.bytes().size()};
      begin(m.head, true, m.peer, kExchangeSlot, header_bytes(m.header), kind);
      if (!m.bytes().empty()) begin(m.body, true, m.peer, kExchangeSlot + 1, m.bytes(), kind);
    }
    for (Moving& m : in) {
      wait(m.head, m.peer, kind, scope);
      const size_t size = size_of(m.pieces);
      check_header(m.header, kind, m.peer, size);
      if (m.pieces.size() != 1) m.packed.resize(size);
      if (size > 0) begin(m.body, false, m.peer, kExchangeSlot + 1, m.bytes(), kind);
    }
    for (Moving& m : in) {
      if (m.header.bytes > 0) wait(m.body, m.peer, kind, scope);
      auto next = m.packed.begin();
      if (m.pieces.size() != 1)
        for (const std::span<std::byte> piece : m.pieces) {
          const auto end = next + static_cast<std::ptrdiff_t>(piece.size());
          std::copy(next, end, piece.begin());
          next = end;
        }
    }
    for (Moving& m : out) {
      wait(m.head, m.peer, kind, scope);
      if (m.header.bytes > 0) wait(m.body, m.peer, kind, scope);
    }
  }

  /// Waits for all other ranks, without reporting the wait in heartbeats.
  void drain_barrier() {
    std::vector<Outgoing> sends;
    std::vector<Incoming> receives;
    for (int peer = 0; peer < size_; ++peer)
      if (peer != rank_) {
        sends.push_back({peer, {}});
        receives.push_back({peer, {}});
      }
    move(Exchange::kBarrier, sends, receives, nullptr);
  }

  void begin(Request& request, bool send, int peer, uint64_t slot, std::span<std::byte> memory,
             Exchange kind) {
    Problem problem;
    if (!request.begin(group_, send, peer, slot, memory, problem)) reject_lost(peer, kind, problem);
  }

  void wait(Request& request, int peer, Exchange kind, const Liveness::Scope* scope) {
    Problem problem;
    if (scope) scope->wait_for(rank_, peer);
    if (request.wait(options_.timeout, problem)) return;
    broken_ = true;
    life_.check();
    if (!problem.text[0] && scope) scope->wait_for(rank_, peer);
    reject_lost(peer, kind, problem);
  }

  [[noreturn]] void reject_lost(int peer, Exchange kind, const Problem& problem) {
    broken_ = true;
    life_.reject_lost(rank_, peer, kind, problem.text[0] ? problem.text : "the run has ended");
  }

  void check_header(const Header& header, Exchange kind, int peer, size_t bytes) {
    if (header.kind == static_cast<uint32_t>(kind) && header.bytes == bytes) return;
    broken_ = true;
    reject_mismatch(rank_, kind, bytes, peer, static_cast<Exchange>(header.kind), header.bytes);
  }

  Group group_;
  Outbox outbox_;
  bool broken_ = false;
};

}  // namespace

std::shared_ptr<Transport> make_gloo_transport(int rank, const std::vector<Socket>& peers,
                                               const ProcessOptions& options, Socket rendezvous,
                                               std::unique_ptr<RendezvousThread> host) {
  auto transport = std::make_shared<GlooTransport>(rank, peers, rendezvous.host(), options);
  transport->start(std::move(rendezvous), std::move(host));
  return transport;
}

}  // namespace paddle::comm
