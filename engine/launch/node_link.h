#pragma once
// The lines that the launcher of one machine and that of node 0 exchange:
//   to node 0:   "failed STATUS MESSAGE" (a rank has failed), "ended" (all ranks have ended)
//   from node 0: "start ATTEMPT FIRST WORLD", "end" (end the ranks), "signal N", "exit STATUS"

#include <chrono>
#include <optional>
#include <string>

#include "comm/sockets.h"

namespace paddle::launch {

/// The end of the connection at a node other than 0.
class NodeLink {
 public:
  /// Connects to node 0 and says how many ranks and servers of tables this node starts. kPeer if it
  /// does not come.
  NodeLink(const std::string& rendezvous, const std::string& token, int node, int ranks,
           int servers, std::chrono::milliseconds timeout);
  int descriptor() const { return socket_.descriptor(); }
  /// The next line that has arrived; "" once node 0 is gone.
  std::optional<std::string> next_line();
  void send(const std::string& line);

 private:
  comm::Socket socket_;
  std::string received_;
  bool gone_ = false;
};

}  // namespace paddle::launch
