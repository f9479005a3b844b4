#include "ps/environment.h"

#include <algorithm>

#include "base/environment.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/sockets.h"

namespace paddle::ps {
namespace {

constexpr const char* kPaddleServers = "PADDLE_PSERVERS_IP_PORT_LIST";

int number(const char* name, int least) {
  const std::string value = environment(name);
  const auto found = comm::parse_integer(value);
  if (!found || *found < least || *found > comm::kMaxRanks)
    fail(ErrorCode::kUsage, name, ": expected a number from ", least, " to ", comm::kMaxRanks,
         ", found '", value, "'");
  return static_cast<int>(*found);
}

/// This process is the server with its address, or a trainer, as PaddlePaddle's variables say.
void place_by_paddle(ServersPlace& place) {
  const std::string role = environment("TRAINING_ROLE");
  if (role == "TRAINER" || role.empty()) return;
  if (role != "PSERVER")
    fail(ErrorCode::kUsage, "TRAINING_ROLE: expected TRAINER or PSERVER, found '", role, "'");
  const std::string own = environment("POD_IP") + ":" + environment("PADDLE_PORT");
  const auto at = std::find(place.addresses.begin(), place.addresses.end(), own);
  if (at == place.addresses.end())
    fail(ErrorCode::kUsage, "TRAINING_ROLE is PSERVER; POD_IP:PADDLE_PORT, ", own, ", is not in ",
         kPaddleServers, ", ", join(place.addresses, ","));
  place.index = static_cast<int>(at - place.addresses.begin());
}

}  // namespace

std::vector<std::string> parse_addresses(const std::string& text, const std::string& what) {
  std::vector<std::string> out;
  for (const std::string& each : split(text, ',')) {
    const std::string address(trim(each));
    comm::parse_address(address, what);
    if (std::find(out.begin(), out.end(), address) != out.end())
      fail(ErrorCode::kUsage, what, ": ", address, " is a duplicate");
    out.push_back(address);
  }
  if (out.size() > static_cast<size_t>(comm::kMaxRanks))
    fail(ErrorCode::kUsage, what, ": more than ", comm::kMaxRanks, " addresses");
  return out;
}

bool are_local(const std::vector<std::string>& addresses) {
  return std::all_of(addresses.begin(), addresses.end(), [](const std::string& each) {
    return comm::is_loopback(comm::parse_address(each, "address of a server").host);
  });
}

std::optional<ServersPlace> servers_from_environment() {
  ServersPlace out;
  out.token = environment("PADDLE_RENDEZVOUS_TOKEN");
  out.rendezvous = environment("PADDLE_RENDEZVOUS");
  const std::string addresses = environment("PADDLE_SERVER_ADDRESSES");
  const std::string of_paddle = environment(kPaddleServers);
  if (!addresses.empty()) {
    out.source = "PADDLE_SERVER_ADDRESSES";
    out.addresses = parse_addresses(addresses, out.source);
    out.servers = static_cast<int>(out.addresses.size());
    if (environment("PADDLE_ROLE") == "server") out.index = number("PADDLE_SERVER", 0);
  } else if (!environment("PADDLE_SERVERS").empty() && environment("PADDLE_SERVERS") != "0") {
    out.source = "PADDLE_SERVERS";
    out.servers = number("PADDLE_SERVERS", 1);
    comm::parse_address(out.rendezvous, "PADDLE_RENDEZVOUS");
    if (environment("PADDLE_ROLE") == "server") out.index = number("PADDLE_SERVER", 0);
  } else if (!of_paddle.empty()) {
    out.source = kPaddleServers;
    out.addresses = parse_addresses(of_paddle, out.source);
    out.servers = static_cast<int>(out.addresses.size());
    place_by_paddle(out);
  } else {
    return std::nullopt;
  }
  const std::string nodes = environment("PADDLE_NODES");
  out.is_local = out.addresses.empty() ? nodes.empty() || nodes == "1" : are_local(out.addresses);
  if (out.index >= out.servers)
    fail(ErrorCode::kUsage, "PADDLE_SERVER is ", out.index, ", the run has ", out.servers,
         " servers, which count from 0");
  return out;
}

}  // namespace paddle::ps
