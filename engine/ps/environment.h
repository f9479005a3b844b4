#pragma once
// The servers of a run as the environment of its launcher says: that of paddle-launch, addresses
// for other launchers, and PaddlePaddle's variables.

#include <optional>
#include <string>
#include <vector>

namespace paddle::ps {

struct ServersPlace {
  int index = -1;  ///< of this process; -1: it is a worker
  int servers = 0;
  std::vector<std::string> addresses =
      {};  ///< host:port by server; empty: the rendezvous knows them
  std::string rendezvous = {}, token = {};
  bool is_local = true;     ///< no server or worker is on another machine
  std::string source = {};  ///< the variables that say so

  bool is_server() const { return index >= 0; }
};

/// Nothing if there are none. kUsage for variables that make no sense.
std::optional<ServersPlace> servers_from_environment();
/// Whether all addresses are of the loopback interface.
bool are_local(const std::vector<std::string>& addresses);
/// "host:port,host:port". kUsage, beginning with `what`, for anything else.
std::vector<std::string> parse_addresses(const std::string& text, const std::string& what);

}  // namespace paddle::ps
