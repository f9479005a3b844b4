#pragma once
// Where the ranks of a run find each other: each listens on a port of its own, registers here, and
// learns the addresses of all. Their connections stay open: ranks send heartbeats over them,
// with what they are doing, so that a rank for which the others wait can be named. The launchers of
// further machines talk to the first one here as well.

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/flight_report.h"
#include "comm/run_certificates.h"
#include "comm/sockets.h"
#include "comm/transport.h"

namespace paddle::comm {

/// The state of a rank in its heartbeats.
struct RankStatus {
  int64_t step = 0;                    ///< the update that it computes, from 1; 0: none yet
  int64_t exchanges = 0;               ///< exchanges that it has entered
  Exchange kind = Exchange::kBarrier;  ///< of the last one
  int waits_for = -1;                  ///< the rank whose message is missing; -1: it computes
  int64_t seconds = 0;                 ///< since it began to wait, or since its last exchange

  std::string line() const;  ///< "alive 12 40 2 1 3"
  static std::optional<RankStatus> parse(const std::string& line);
};

/// Registers a server of tables, which waits for workers at an address, with the rendezvous of its
/// launcher for as long as the socket is open. kPeer if that does not answer.
Socket register_server(const std::string& rendezvous, const std::string& token, int server,
                       const std::string& address);
/// The addresses of the servers that are registered; "" for the others. kPeer as above.
std::vector<std::string> find_servers(const std::string& rendezvous, const std::string& token,
                                      int servers);

/// A certificate of the run for one end of connections between its machines. kPeer if the
/// rendezvous does not answer, kDevice if it has no OpenSSL.
TlsIdentity request_identity(const std::string& rendezvous, const std::string& token,
                             CertificateRole role);

/// The listening side, which runs in the launcher, or in a thread of rank 0 without one.
class Rendezvous {
 public:
  using Clock = std::chrono::steady_clock;

  /// Listens on a port of the interface that has the address of the host, 0 for a free one.
  /// `token`: the shared secret of the run, by which both ends of each connection authenticate
  /// themselves (comm/handshake.h); "" generates one. kDevice if the port is in use.
  explicit Rendezvous(int ranks, const std::string& host = "127.0.0.1", int port = 0,
                      std::string token = {});
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// The values of `Membership::rendezvous` and `token` for the ranks.
  std::string address() const;
  const std::string& token() const { return token_; }
  /// Forgets all ranks and waits for those of another attempt.
  void start_over(int ranks, int attempt);

  /// File descriptors whose readability means that `advance` has something to do.
  std::vector<int> descriptors() const;
  /// Reads what has arrived, without blocking; when all ranks have registered, sends them the
  /// addresses of all.
  void advance();
  bool complete() const { return complete_; }
  /// The ranks that have not registered yet: "1, 2 and 5 more".
  std::string missing() const;

  struct Lost {
    int rank = 0;
    std::string message;
  };
  /// A rank whose heartbeats have stopped for longer than `timeout`; notifies the others.
  std::optional<Lost> find_lost(std::chrono::milliseconds timeout);
  /// One line, once, when ranks have waited for another one longer than `timeout`.
  std::optional<std::string> find_delay(std::chrono::milliseconds timeout);

  /// Where the ranks keep their records of exchanges (flight.h), as rank 0 has said; "" before.
  const std::string& record_folder() const { return record_folder_; }
  /// The exchange in which the ranks differ, "; rank 3 did not enter …", from their records; "" if
  /// there is none.
  std::string divergence() const;

  /// A line from the launcher of another machine; empty when its connection is closed.
  struct NodeLine {
    int node = 0;
    std::string line;
  };
  std::optional<NodeLine> next_node_line();
  /// Processes that the launchers of other machines start, by node; -1 for those not yet
  /// registered.
  std::vector<int> node_ranks(int nodes) const;
  /// Servers of tables that they start.
  std::vector<int> node_servers(int nodes) const;
  void send_to_nodes(const std::string& line) {
    send_to_nodes([&](int) { return line; });
  }
  void send_to_nodes(const std::function<std::string(int node)>& line);

 private:
  struct Client;
  void register_client(Client& client, const std::string& line);
  void handle_line(Client& client, const std::string& line);
  void send_addresses();
  /// "HOST:PORT - HOST:PORT", with "-" for those that are not registered.
  std::string server_addresses(int servers) const;
  /// "sealed TEXT" or "problem TEXT".
  std::string certificate_line(CertificateRole role);
  Client* rank(int number);
  std::string last_place(const Client& lost);

  std::string host_;  ///< numeric
  Socket listener_;
  std::string token_;
  int ranks_, attempt_ = 0;
  std::vector<std::unique_ptr<Client>> clients_;
  std::deque<NodeLine> node_lines_;
  RunCertificates certificates_;
  std::string record_folder_;
  bool complete_ = false;
  int64_t reported_delay_ = -1;  ///< the number of the exchange
};

/// Runs a rendezvous in a thread, for runs that paddle-launch has not started.
class RendezvousThread {
 public:
  RendezvousThread(int ranks, const std::string& address, const std::string& token,
                   std::chrono::milliseconds dead_after,
                   std::function<void(const std::string&)> notice);
  ~RendezvousThread();
  std::string missing();

 private:
  void run(std::chrono::milliseconds dead_after);
  Rendezvous rendezvous_;
  SlowWatch slow_;
  std::function<void(const std::string&)> notice_;
  std::mutex mutex_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace paddle::comm
