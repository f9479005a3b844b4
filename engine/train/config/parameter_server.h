#pragma once
// The section `parameter_server:` of a training config: which processes have the rows of tables.

#include "config/schema.h"
#include "ps/server.h"
#include "train/config/features.h"
#include "train/tables/publish.h"

namespace paddle::train {

/// The carrier of messages between workers and servers.
enum class ServerChannel {
  kAuto,  ///< sockets on one machine, gRPC between machines
  kSockets,
  kGrpc
};

/// Paths of PEM files.
struct TlsFiles {
  std::string authority, certificate, key;
};

/// How often versions are published: whichever is set.
struct PublishInterval {
  Interval steps = {};  ///< updates or epochs
  int64_t days = 0;     ///< days of the tables
  double seconds = 0;   ///< of the run
  bool is_set() const { return steps.steps > 0 || steps.epochs > 0 || days > 0 || seconds > 0; }
};

/// `parameter_server.publish`: versions for serving.
struct Publishing {
  std::string to;  ///< the folder of the store
  PublishInterval base, delta;
  PublishRules rules;
};

struct ParameterServer {
  bool on_servers = false;  ///< else the ranks have them
  int servers = 1;
  int lanes = 0;  ///< 0: four a server
  ps::Durability durability = ps::Durability::kProcess;
  ps::UpdateOptions updates = {};
  ServerChannel channel = ServerChannel::kAuto;
  std::optional<TlsFiles> tls = {};
  std::optional<Publishing> publishing = {};
  /// Not of the config: a run whose order of messages the servers repeat.
  std::optional<ps::ReplayOptions> replay = {};
  /// Nor this: a row whose updates the servers write down.
  std::optional<ps::WatchedRow> watched = {};

  int lane_count() const;
};

config::Schema parameter_server_schema();
ParameterServer read_parameter_server(const config::Section& section,
                                      config::Diagnostics& diagnostics);

}  // namespace paddle::train
