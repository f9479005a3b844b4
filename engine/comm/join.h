#pragma once
// How the processes of a run connect. Each rank listens on a port of its own, registers it at the
// rendezvous (rendezvous.h), receives the addresses of the others, and connects to those below it.

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/kind_options.h"
#include "comm/membership.h"
#include "comm/transport.h"

namespace paddle::comm {

struct JoinOptions {
  /// Time for all ranks to come; PADDLE_JOIN_TIMEOUT, in seconds.
  std::chrono::milliseconds join_timeout = std::chrono::minutes(2);
  /// A rank without a heartbeat for this long counts as lost, where rank 0 holds the
  /// rendezvous; PADDLE_DEAD_AFTER.
  std::chrono::milliseconds dead_after = std::chrono::seconds(10);
  /// The longest wait for another rank in an exchange; PADDLE_TIMEOUT.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  /// Gets what rank 0 notices about the others where paddle-launch has not started them.
  std::function<void(const std::string&)> notice;

  /// For the transport if it is this kind; PADDLE_TRANSPORT may choose another one.
  KindChoice transport = {};

  /// With what the environment says. kUsage for anything but numbers.
  static JoinOptions from_environment();
};

/// Joins the run: returns when all ranks are connected with each other. kPeer if that fails.
std::shared_ptr<Transport> join(const Membership& membership, const JoinOptions& options = {});

}  // namespace paddle::comm
