#pragma once
// A transport between processes over TCP, and the rendezvous through which they find each other:
// each rank listens on a port of its own, tells the launcher, and learns the others' ports.

#include <memory>
#include <string>
#include <vector>

#include "comm/transport.h"

namespace paddle::comm {

/// The place of a process in a run, as the launcher's environment says: PADDLE_RANK,
/// PADDLE_WORLD_SIZE, PADDLE_RENDEZVOUS (host:port) and PADDLE_RENDEZVOUS_TOKEN.
struct Membership {
  int rank = 0, size = 1;
  std::string rendezvous, token;
};

/// The environment's membership; size 1 if there is none. kUsage if it makes no sense.
Membership membership_from_environment();

/// Joins the run: returns when all ranks are connected with each other. kPeer if that fails.
std::shared_ptr<Transport> join(const Membership& membership);

/// The launcher's side: a listening socket on the loopback interface.
class Rendezvous {
 public:
  explicit Rendezvous(int ranks);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// The values of `Membership::rendezvous` and `token` for the ranks.
  std::string address() const;
  const std::string& token() const { return token_; }
  /// File descriptors whose readability means that `advance` has something to do.
  std::vector<int> descriptors() const;
  /// Takes in ranks that wait, without blocking; when all have come, tells each the ports of all.
  void advance();
  bool complete() const { return complete_; }

 private:
  struct Guest {
    int socket = -1;
    std::string received;
    int rank = -1;
    int port = 0;
  };
  int listener_ = -1;
  int port_ = 0;
  int ranks_;
  std::string token_;
  std::vector<Guest> guests_;
  bool complete_ = false;
};

}  // namespace paddle::comm
