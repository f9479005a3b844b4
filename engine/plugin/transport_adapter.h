#pragma once
// A transport of a plug-in (paddle/plugin/comm.h) as one of the engine.

#include <memory>
#include <string>
#include <vector>

#include "base/kind_options.h"
#include "comm/transport_kind.h"
#include "paddle/plugin/comm.h"

namespace paddle::plugin {

struct TransportContext {
  std::string plugin;          ///< "acme 1.0.0"
  std::string name;            ///< "acme.ring"
  paddle_transport functions;  ///< what the engine knows of the plug-in's struct
  std::vector<KindKey> keys;
};

/// Opens the transport for a rank; the context must outlive it. Its error, or kPeer.
std::shared_ptr<comm::Transport> open_plugin_transport(const TransportContext& context,
                                                       comm::JoinedRank joined);

}  // namespace paddle::plugin
