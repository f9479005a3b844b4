#include "comm/mpi_transport.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <thread>
#include <vector>

#include "base/module.h"
#include "base/text.h"
#include "comm/mpi/interface.h"
#include "comm/transfer.h"

namespace paddle::comm {
namespace {

/// The functions of the module, with errors as exceptions.
class Mpi {
 public:
  static Mpi& get() {
    static Mpi mpi;
    return mpi;
  }

  void start(int& rank, int& size) { check(start_(&rank, &size, message_, sizeof message_)); }
  void finish() { finish_(); }
  void* begin(bool send, int peer, int channel, std::span<const paddle_mpi_piece> pieces) {
    void* request = nullptr;
    check(begin_(send, peer, channel, pieces.data(), pieces.size(), &request, message_,
                 sizeof message_));
    return request;
  }
  bool test(void*& request, bool& truncated) {
    bool arrived = false;
    check(test_(&request, &arrived, &truncated, message_, sizeof message_));
    return arrived;
  }
  bool probe(int peer, int channel, uint64_t& bytes) {
    bool found = false;
    check(probe_(peer, channel, &found, &bytes, message_, sizeof message_));
    return found;
  }
  void cancel(void*& request) { cancel_(&request); }

 private:
  template <class F>
  F* find(const char* name) {
    return module_.require<F>(name, "PADDLE_TRANSPORT: this installation has no MPI");
  }
  void check(int status) const {
    if (status != 0) fail(ErrorCode::kPeer, "MPI: ", message_);
  }

  Module module_{Module::default_path("mpi"), PADDLE_MPI_VERSION};
  char message_[512] = "";

  decltype(paddle_mpi_start)* start_ = find<decltype(paddle_mpi_start)>("paddle_mpi_start");
  decltype(paddle_mpi_finish)* finish_ = find<decltype(paddle_mpi_finish)>("paddle_mpi_finish");
  decltype(paddle_mpi_begin)* begin_ = find<decltype(paddle_mpi_begin)>("paddle_mpi_begin");
  decltype(paddle_mpi_test)* test_ = find<decltype(paddle_mpi_test)>("paddle_mpi_test");
  decltype(paddle_mpi_probe)* probe_ = find<decltype(paddle_mpi_probe)>("paddle_mpi_probe");
  decltype(paddle_mpi_cancel)* cancel_ = find<decltype(paddle_mpi_cancel)>("paddle_mpi_cancel");
};

/// Messages of exchanges and those of `isend` do not wait for each other.
constexpr int kExchanges = 0, kPosts = 1;

/// A message on its way. Both ends put the header before its pieces.
struct Moving {
  Header header;
  int peer = 0;
  size_t bytes = 0;  ///< of the pieces, as this end expects
  void* request = nullptr;
  bool truncated = false;
};

class MpiTransport final : public ProcessTransport {
 public:
  MpiTransport(int rank, int size, const ProcessOptions& options)
      : ProcessTransport(rank, size, options), mpi_(Mpi::get()) {
    int mpi_rank = 0, mpi_size = 1;
    mpi_.start(mpi_rank, mpi_size);
    if (mpi_rank != rank || mpi_size != size)
      fail(ErrorCode::kUsage, "PADDLE_TRANSPORT is mpi, and MPI has started this process as rank ",
           mpi_rank, " of ", mpi_size, ", not as rank ", rank, " of ", size,
           ": start the run with mpirun");
  }
  /// A run that ends by an error leaves messages on their way, which MPI would wait for.
  ~MpiTransport() override {
    life_.stop();
    if (broken_ || std::uncaught_exceptions() > 0) return;
    mpi_.finish();
  }

  void exchange(Exchange kind, std::span<const Outgoing> sends,
                std::span<const Incoming> receives) override {
    const Liveness::Scope scope(life_, kind);
    // Requests refer to the headers, so these must not move.
    moving_.resize(std::max(moving_.size(), sends.size() + receives.size()));
    const std::span<Moving> moving(moving_.data(), sends.size() + receives.size());
    const Guard guard{*this, moving};
    size_t next = 0;
    for (const Incoming& r : receives) {
      Moving& m = moving[next++] = {{}, r.peer, size_of(r.pieces)};
      begin(m, false, r.pieces);
    }
    for (const Outgoing& s : sends) {
      Moving& m = moving[next++] = {{}, s.peer, size_of(s.pieces)};
      m.header = {static_cast<uint32_t>(kind), 0, m.bytes};
      begin(m, true, s.pieces);
    }
    wait(scope, [&]() -> int {
      int missing = -1;
      for (Moving& m : moving)
        if (m.request && !mpi_.test(m.request, m.truncated) && missing < 0) missing = m.peer;
      return missing;
    });
    for (const Moving& m : moving.first(receives.size()))
      if (m.truncated || m.header.kind != static_cast<uint32_t>(kind) || m.header.bytes != m.bytes)
        reject_mismatch(rank_, kind, m.bytes, m.peer, static_cast<Exchange>(m.header.kind),
                        m.header.bytes);
  }

  void isend(int peer, uint32_t tag, std::span<const std::byte> bytes) override {
    Posted& posted = posted_.emplace_back();
    posted.message = posted_message(tag, bytes);
    const paddle_mpi_piece piece{posted.message.data(), posted.message.size()};
    posted.request = mpi_.begin(true, peer, kPosts, {&piece, 1});
    flush();
  }

  void recv(int peer, uint32_t tag, std::span<std::byte> bytes) override {
    const Liveness::Scope scope(life_, Exchange::kMessage);
    auto& kept = stash_[{peer, tag}];
    wait(scope, [&]() -> int {
      flush();
      while (kept.empty() && receive_post(peer, scope)) {
      }
      return kept.empty() ? peer : -1;
    });
    take_kept(kept, rank_, peer, bytes);
  }

  void abort(const std::string&) noexcept override { broken_ = true; }

 private:
  struct Posted {
    std::vector<std::byte> message;
    void* request = nullptr;
  };
  /// Gives up what has not arrived when an exchange ends by an error.
  struct Guard {
    ~Guard() {
      for (Moving& m : moving)
        if (m.request) {
          transport.mpi_.cancel(m.request);
          transport.broken_ = true;
        }
    }
    MpiTransport& transport;
    std::span<Moving> moving;
  };

  template <class Byte>
  void begin(Moving& m, bool send, std::span<const std::span<Byte>> pieces) {
    pieces_.clear();
    pieces_.push_back({&m.header, sizeof m.header});
    for (const std::span<Byte> piece : pieces)  // nothing is written through those that are sent
      pieces_.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
    m.request = mpi_.begin(send, m.peer, kExchanges, pieces_);
  }

  /// Calls `step` until it returns -1; else it returns the rank that is waited for. MPI moves
  /// messages only while it is called, so the waits between calls are short.
  template <class Step>
  void wait(const Liveness::Scope& scope, Step&& step) {
    using Clock = std::chrono::steady_clock;
    const auto begun = Clock::now();
    constexpr auto kMinPause = std::chrono::microseconds(20),
                   kMaxPause = std::chrono::microseconds(500);
    for (auto pause = kMinPause;;) {
      const int missing = step();
      if (missing < 0) return;
      try {
        life_.check();
        scope.wait_for(rank_, missing);
      } catch (const Error&) {
        broken_ = true;
        throw;
      }
      if (Clock::now() - begun < options_.spin) continue;
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kMaxPause);
    }
  }

  /// Frees what has been sent.
  void flush() {
    bool truncated = false;
    while (!posted_.empty() && mpi_.test(posted_.front().request, truncated)) posted_.pop_front();
  }

  /// Receives the next posted message of a peer if one is there.
  bool receive_post(int peer, const Liveness::Scope& scope) {
    uint64_t size = 0;
    if (!mpi_.probe(peer, kPosts, size)) return false;
    if (size < sizeof(Header))
      reject_mismatch(rank_, Exchange::kMessage, sizeof(Header), peer, Exchange::kMessage, size);
    Moving m;
    m.peer = peer;
    std::vector<std::byte> bytes(size - sizeof(Header));
    const paddle_mpi_piece pieces[] = {{&m.header, sizeof m.header}, {bytes.data(), bytes.size()}};
    const Guard guard{*this, {&m, 1}};
    m.request = mpi_.begin(false, peer, kPosts, pieces);
    wait(scope, [&] { return mpi_.test(m.request, m.truncated) ? -1 : peer; });
    stash_[{peer, m.header.tag}].push_back(std::move(bytes));
    return true;
  }

  Mpi& mpi_;
  std::vector<Moving> moving_;  ///< kept, so that a step allocates little
  std::vector<paddle_mpi_piece> pieces_;
  std::deque<Posted> posted_;
  std::map<std::pair<int, uint32_t>, std::deque<std::vector<std::byte>>> stash_;
  bool broken_ = false;
};

}  // namespace

std::shared_ptr<Transport> make_mpi_transport(int rank, int size, const ProcessOptions& options,
                                              Socket rendezvous,
                                              std::unique_ptr<RendezvousThread> host) {
  auto transport = std::make_shared<MpiTransport>(rank, size, options);
  transport->start(std::move(rendezvous), std::move(host));
  return transport;
}

}  // namespace paddle::comm
