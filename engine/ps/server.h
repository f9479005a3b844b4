#pragma once
// A server: some of the lanes of a run, without input and output.

#include <string>
#include <utility>
#include <vector>

#include "ps/lane.h"

namespace paddle::ps {

/// How often a server writes what has happened.
enum class Durability {
  kNone,     ///< rows are lost with the process
  kProcess,  ///< they survive its death
  kMachine   ///< and that of the machine: each event is synced to the disk
};

/// The lanes [first, second) of a server.
inline std::pair<int, int> lanes_of_server(int server, int servers, int lanes) {
  return {lanes * server / servers, lanes * (server + 1) / servers};
}

struct ServerOptions {
  int index = 0, servers = 1, lanes = 4;
  TableOpener open = {};
  TableSettings settings = {};
  /// The folder of the run, where workers let tables be saved, and logs are.
  std::string output = {};
  Durability durability = Durability::kProcess;
  UpdateOptions updates = {};
  /// A run whose order of messages is repeated.
  std::optional<ReplayOptions> replay = {};
  std::optional<WatchedRow> watched = {};
};

/// The logs of the lanes, in the folder of a run.
inline constexpr const char* kServersFolder = "servers";

/// A worker that connects.
struct WorkerPlace {
  int worker = 0, workers = 1;
  uint64_t session = 0;  ///< of the run; a later run has a higher number
  int servers = 1, lanes = 4;

  std::string text() const;  ///< "tables 0 4 1700000000000000000 2 8"
  static std::optional<WorkerPlace> parse(const std::string& text);
};

/// Of a kHello.
struct LaneState {
  uint64_t events = 0;
};

class Server {
 public:
  explicit Server(ServerOptions options);

  const ServerOptions& options() const { return options_; }
  /// Why lanes could not continue from their logs; "": they did, or there are none.
  std::string problem() const;
  /// The kHello for a worker that has connected, perhaps again. kPeer if it is of another run than
  /// the newest one; kConfig if it counts other servers or lanes.
  Message begin_worker(const WorkerPlace& place);
  /// See Lane::take.
  void take(Message message, Lane::Answers& answers);
  /// Whether all workers of a run have ended it.
  bool is_over() const { return is_over_; }

 private:
  ServerOptions options_;
  std::pair<int, int> range_;
  std::vector<Lane> lanes_;
  std::vector<char> ended_;  ///< by worker
  bool is_over_ = false;
};

/// The events of the lanes that a kHello states.
std::vector<LaneState> read_hello(const Message& message);
/// The error that a kError states; throws it.
[[noreturn]] void rethrow(const Message& message);
/// The message for it.
Message error_message(const Error& error);

}  // namespace paddle::ps
