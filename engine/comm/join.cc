#include "comm/join.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "base/parallel.h"
#include "base/text.h"
#include "comm/handshake.h"
#include "comm/transport_kind.h"

namespace paddle::comm {
namespace {

std::chrono::milliseconds seconds_in_environment(const char* name,
                                                 std::chrono::milliseconds other) {
  const char* const value = std::getenv(name);
  if (!value || !*value) return other;
  char* end = nullptr;
  const double seconds = std::strtod(value, &end);
  constexpr double kMaxSeconds = 1e7, kMilliseconds = 1000;
  if (*end || !(seconds > 0) || seconds > kMaxSeconds)
    fail(ErrorCode::kUsage, name, ": expected seconds, found '", value, "'");
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * kMilliseconds));
}

/// How messages travel, as PADDLE_TRANSPORT says.
Registry<TransportKind>::Handle transport_in_environment() {
  const char* const value = std::getenv("PADDLE_TRANSPORT");
  const std::string chosen = value && *value ? value : "auto";
  auto kind = transport_kinds().find(chosen);
  if (!kind)
    fail(ErrorCode::kUsage, "PADDLE_TRANSPORT: expected one of ",
         paddle::join(transport_kinds().names(), ", "), ", found '", chosen, "'",
         chosen.find('.') == std::string::npos
             ? ""
             : " (ranks connect before they read the config: name a plug-in with --plugin or "
               "PADDLE_PLUGINS)");
  return kind;
}

/// The options of the chosen kind: those of the config where it names the same one.
KindOptions options_of(const TransportKind& kind, const KindChoice& configured) {
  if (configured.name == kind.name) return configured.options;
  if (const std::string key = required_key(kind.keys); !key.empty())
    fail(ErrorCode::kUsage, "PADDLE_TRANSPORT: ", kind.name, " needs the key '", key,
         "', which only a config gives: parallel.transport: {kind: ", kind.name, ", ", key, ": …}");
  return default_options(kind.keys);
}

}  // namespace

JoinOptions JoinOptions::from_environment() {
  JoinOptions o;
  o.join_timeout = seconds_in_environment("PADDLE_JOIN_TIMEOUT", o.join_timeout);
  o.dead_after = seconds_in_environment("PADDLE_DEAD_AFTER", o.dead_after);
  o.timeout = seconds_in_environment("PADDLE_TIMEOUT", o.timeout);
  return o;
}

std::shared_ptr<Transport> join(const Membership& m, const JoinOptions& options) {
  const Registry<TransportKind>::Handle transport = transport_in_environment();
  const std::string& kind = transport->name;
  KindOptions kind_options = options_of(*transport, options.transport);
  std::unique_ptr<RendezvousThread> host;
  if (!m.source.empty() && m.rank == 0)
    host = std::make_unique<RendezvousThread>(m.size, m.rendezvous, m.token, options.dead_after,
                                              options.notice);
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(options.join_timeout).count();
  Socket rendezvous;
  try {
    rendezvous = connect_to(m.rendezvous, options.join_timeout);
  } catch (const Error& e) {
    if (m.rank == 0 || e.code() != ErrorCode::kPeer) throw;
    fail(ErrorCode::kPeer, "rank ", m.rank, " has waited ", seconds,
         " seconds for rank 0: ", e.message());
  }
  Socket listener = listen_on(rendezvous.host(), 0);
  if (!request_admission(
          rendezvous, m.token,
          str("rank ", m.rank, " ", rendezvous.host(), ":", listener.port(), " ", m.attempt),
          options.join_timeout))
    fail(ErrorCode::kPeer, "rank ", m.rank, ": ", m.rendezvous,
         " has closed the connection: it is of another run or has a different token "
         "(PADDLE_RENDEZVOUS_TOKEN), or there is a rank ",
         m.rank, " already");
  // "HOST:PORT HOST:PORT …" of all ranks, when they have come.
  if (!rendezvous.wait_readable(options.join_timeout))
    fail(ErrorCode::kPeer, "rank ", m.rank, " has waited ", seconds, " seconds for ",
         host ? "rank " + host->missing() : "the other ranks", " at ", m.rendezvous);
  std::istringstream answer(rendezvous.receive_line());
  std::vector<std::string> hosts;
  std::vector<Socket> peers(static_cast<size_t>(m.size));
  for (int peer = 0; peer < m.size; ++peer) {
    std::string address;
    if (!(answer >> address))
      fail(ErrorCode::kPeer, "rank ", m.rank,
           ": the launcher ended before all ranks had connected");
    hosts.push_back(address.substr(0, address.rfind(':')));
    if (peer >= m.rank) continue;  // those call here
    Socket& socket = peers[static_cast<size_t>(peer)] = connect_to(address, options.join_timeout);
    if (!request_admission(socket, m.token, str(m.rank, " ", kind), options.join_timeout))
      fail(ErrorCode::kPeer, "rank ", m.rank, ": rank ", peer, " at ", address,
           " has closed the connection");
  }
  for (int waiting = m.size - m.rank - 1; waiting > 0;) {
    if (!listener.wait_readable(options.join_timeout))
      fail(ErrorCode::kPeer, "rank ", m.rank, " has waited ", seconds, " seconds for ", waiting,
           " ranks to connect to ", listener.host(), ":", listener.port());
    Socket caller = listener.accept();
    // A client that sends nothing must not stop the run.
    constexpr auto kFirstLineTimeout = std::chrono::seconds(5);
    Challenge challenge;
    std::optional<std::string> request;
    try {
      caller.send_line(challenge.line());
      if (const auto answer = caller.receive_line(kFirstLineTimeout))
        request = challenge.accept(m.token, *answer);
      if (request) caller.send_line(challenge.welcome());
    } catch (const Error&) {  // it has closed the connection
      continue;
    }
    if (!request) continue;  // not one of ours
    std::istringstream line(*request);
    std::string other;
    int peer = -1;
    line >> peer >> other;
    if (peer <= m.rank || peer >= m.size) continue;
    if (other != kind)
      fail(ErrorCode::kUsage, "PADDLE_TRANSPORT is ", kind, " for rank ", m.rank, " and ", other,
           " for rank ", peer, ": all ranks need the same one");
    peers[static_cast<size_t>(peer)] = std::move(caller);
    --waiting;
  }
  constexpr auto kSpin = std::chrono::microseconds(200);
  const int cores = available_cores() / std::max(1, m.local_size);
  const bool has_network = std::any_of(hosts.begin(), hosts.end(), [&](const std::string& other) {
    return other != hosts[static_cast<size_t>(m.rank)];
  });
  const auto spin = cores > 0 ? kSpin : std::chrono::microseconds(0);
  ProcessOptions process{options.timeout, options.join_timeout, spin, has_network || cores > 1};
  if (has_network)  // a machine has the number of its first rank
    for (const std::string& each : hosts)
      process.machines.push_back(
          static_cast<int>(std::find(hosts.begin(), hosts.end(), each) - hosts.begin()));
  return transport->open({.rank = m.rank,
                          .size = m.size,
                          .peers = std::move(peers),
                          .hosts = std::move(hosts),
                          .options = std::move(process),
                          .rendezvous = std::move(rendezvous),
                          .host = std::move(host),
                          .kind_options = std::move(kind_options)});
}

}  // namespace paddle::comm
