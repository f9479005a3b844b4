#pragma once
// The carrier of messages between workers and servers of tables: sockets, or gRPC with the
// certificates that the config, the environment or the launcher gives.

#include <string>

#include "base/certificates.h"
#include "ps/environment.h"
#include "ps/sockets.h"
#include "train/config/parameter_server.h"

namespace paddle::cli {

/// Of this end. kUsage between machines without certificates, unless PADDLE_INSECURE_NETWORK is 1.
ps::Wire wire_of(const train::ParameterServer& section, const ps::ServersPlace& place,
                 CertificateRole role);

/// "; rows are sent without encryption", for notes; "" on one machine without it.
std::string encryption_note(const ps::Wire& wire, bool is_local);

}  // namespace paddle::cli
