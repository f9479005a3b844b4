#include "comm/rendezvous.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "base/error.h"
#include "base/span.h"
#include "base/text.h"
#include "comm/handshake.h"

namespace paddle::comm {
namespace {

constexpr size_t kMaxLineBytes = 4096;
constexpr std::string_view kRecordLine = "record ";
/// Connections that have not registered yet.
constexpr size_t kMaxPendingConnections = 64;

/// "1, 2 and 5 more".
std::string list(const std::vector<int>& numbers) {
  constexpr size_t kShown = 8;
  std::string out;
  for (size_t i = 0; i < std::min(kShown, numbers.size()); ++i)
    out += (i ? ", " : "") + std::to_string(numbers[i]);
  if (numbers.size() > kShown) out += str(" and ", numbers.size() - kShown, " more");
  return out;
}

}  // namespace

std::string RankStatus::line() const {
  return str("alive ", step, " ", exchanges, " ", static_cast<int>(kind), " ", waits_for, " ",
             seconds);
}

std::optional<RankStatus> RankStatus::parse(const std::string& line) {
  std::istringstream in(line);
  std::string word;
  RankStatus s;
  uint32_t kind = 0;
  if (!(in >> word >> s.step >> s.exchanges >> kind >> s.waits_for >> s.seconds) || word != "alive")
    return std::nullopt;
  s.kind = static_cast<Exchange>(kind);
  return s;
}

struct Rendezvous::Client {
  Socket socket;
  Challenge challenge;
  std::string received;
  int rank = -1, node = -1, server = -1;
  int node_ranks = 0, node_servers = 0;
  std::string address;  ///< of a rank or a server, for the others
  std::optional<RankStatus> status;
  Clock::time_point last_heartbeat = Clock::now();
  bool closed = false;  ///< the connection is, or is about to be
  bool reported_lost = false;

  bool is_registered() const { return rank >= 0 || node >= 0 || server >= 0; }
  void send(const std::string& line) const {
    const std::string text = line + "\n";
    (void)!::send(socket.descriptor(), text.data(), text.size(), MSG_NOSIGNAL);
  }
};

Rendezvous::Rendezvous(int ranks, const std::string& host, int port, std::string token)
    : host_(own_address(host)),
      listener_(listen_on(host_, port)),
      token_(token.empty() ? random_digits() : std::move(token)),
      ranks_(ranks) {
  listener_.set_blocking(false);
}

Rendezvous::~Rendezvous() = default;

std::string Rendezvous::address() const { return str(host_, ":", listener_.port()); }

void Rendezvous::start_over(int ranks, int attempt) {
  std::erase_if(clients_,
                [](const auto& client) { return client->node < 0 && client->server < 0; });
  ranks_ = ranks;
  attempt_ = attempt;
  complete_ = false;
  record_folder_.clear();
  reported_delay_ = -1;
}

std::vector<int> Rendezvous::descriptors() const {
  std::vector<int> out = {listener_.descriptor()};
  for (const auto& client : clients_)
    if (!client->closed) out.push_back(client->socket.descriptor());
  return out;
}

Rendezvous::Client* Rendezvous::rank(int number) {
  for (const auto& client : clients_)
    if (client->rank == number) return client.get();
  return nullptr;
}

/// The first line is the answer to the challenge, whose request is "rank NUMBER HOST:PORT ATTEMPT",
/// "node NUMBER RANKS SERVERS", "server NUMBER HOST:PORT", "find SERVERS" or "certificate ROLE".
void Rendezvous::register_client(Client& client, const std::string& line) {
  client.closed = true;
  const auto request = client.challenge.accept(token_, line);
  if (!request) return;
  std::istringstream in(*request);
  std::string role, address;
  int number = -1, further = -1;
  in >> role >> number;
  if (number < 0 || number >= kMaxRanks) return;
  if (role == "rank" && in >> address >> further) {
    if (further != attempt_ || number >= ranks_ || complete_ || rank(number)) return;
    client.rank = number;
    client.address = address;
  } else if (role == "node" && in >> further) {
    const bool known = std::any_of(clients_.begin(), clients_.end(),
                                   [&](const auto& other) { return other->node == number; });
    int servers = 0;
    if (known || further < 0 || further > kMaxRanks) return;
    if (in >> servers && (servers < 0 || servers > kMaxRanks)) return;
    client.node = number;
    client.node_ranks = further;
    client.node_servers = servers;
  } else if (role == "server" && in >> address) {
    // One that was started again replaces the one before.
    for (const auto& other : clients_)
      if (other->server == number) other->closed = true;
    client.server = number;
    client.address = address;
  } else if (role == "find") {
    client.send(client.challenge.welcome());
    return client.send(server_addresses(number));
  } else if (role == "certificate" && number <= 1) {
    client.send(client.challenge.welcome());
    return client.send(
        certificate_line(number == 0 ? CertificateRole::kListener : CertificateRole::kCaller));
  } else {
    return;
  }
  client.closed = false;
  client.send(client.challenge.welcome());
}

std::string Rendezvous::certificate_line(CertificateRole role) {
  try {
    return "sealed " + certificates_.sealed(token_, role);
  } catch (const Error& e) {
    return "problem " + e.message();
  }
}

std::string Rendezvous::server_addresses(int servers) const {
  std::vector<std::string> found(static_cast<size_t>(servers), "-");
  for (const auto& client : clients_)
    if (client->server >= 0 && client->server < servers && !client->closed)
      found[static_cast<size_t>(client->server)] = client->address;
  return paddle::join(found, " ");
}

void Rendezvous::handle_line(Client& client, const std::string& line) {
  client.last_heartbeat = Clock::now();
  if (!client.is_registered())
    register_client(client, line);
  else if (client.node >= 0)
    node_lines_.push_back({client.node, line});
  else if (const auto status = RankStatus::parse(line))
    client.status = status;
  else if (client.rank == 0 && line.starts_with(kRecordLine))
    record_folder_ = line.substr(kRecordLine.size());
}

void Rendezvous::advance() {
  for (int s; (s = ::accept4(listener_.descriptor(), nullptr, nullptr,
                             SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
    auto client = std::make_unique<Client>();
    client->socket = Socket(s);
    const auto pending = std::count_if(clients_.begin(), clients_.end(),
                                       [](const auto& c) { return !c->is_registered(); });
    if (static_cast<size_t>(pending) >= kMaxPendingConnections) continue;
    client->send(client->challenge.line());
    clients_.push_back(std::move(client));
  }
  for (const auto& client : clients_) {
    char buffer[4096];
    ssize_t n = 1;
    while (!client->closed &&
           (n = ::recv(client->socket.descriptor(), buffer, sizeof buffer, 0)) != 0) {
      if (n < 0) {
        client->closed = errno != EAGAIN && errno != EINTR;
        break;
      }
      client->received.append(buffer, static_cast<size_t>(n));
      size_t end = 0;
      while (!client->closed && (end = client->received.find('\n')) != std::string::npos) {
        handle_line(*client, client->received.substr(0, end));
        client->received.erase(0, end + 1);
      }
      if (client->received.size() > kMaxLineBytes) client->closed = true;
    }
    client->closed = client->closed || n == 0;
    if (client->closed && client->node >= 0) node_lines_.push_back({client->node, ""});
  }
  std::erase_if(clients_, [](const auto& client) { return client->closed; });
  if (!complete_ && missing().empty()) send_addresses();
}

std::string Rendezvous::missing() const {
  std::vector<bool> registered(static_cast<size_t>(ranks_), false);
  for (const auto& client : clients_)
    if (client->rank >= 0) registered[static_cast<size_t>(client->rank)] = true;
  std::vector<int> absent;
  for (int r = 0; r < ranks_; ++r)
    if (!registered[static_cast<size_t>(r)]) absent.push_back(r);
  return list(absent);
}

void Rendezvous::send_addresses() {
  std::string line;
  for (int r = 0; r < ranks_; ++r) line += (r ? " " : "") + rank(r)->address;
  for (int r = 0; r < ranks_; ++r) rank(r)->send(line);
  complete_ = true;
}

/// The last known position of a rank: a rank that waits for it is more precise than its own last
/// heartbeat.
std::string Rendezvous::last_place(const Client& lost) {
  for (int r = 0; r < ranks_; ++r)
    if (const Client* const other = rank(r); other && other->status && other != &lost)
      if (const RankStatus& s = *other->status; s.waits_for == lost.rank)
        return str("; rank ", r, " waits for it in ", text(s.kind), " ", s.exchanges, " of step ",
                   s.step);
  return lost.status->step > 0 ? str("; it was at step ", lost.status->step) : "";
}

std::optional<Rendezvous::Lost> Rendezvous::find_lost(std::chrono::milliseconds timeout) {
  for (const auto& client : clients_) {
    if (!client->status || client->reported_lost || Clock::now() - client->last_heartbeat < timeout)
      continue;
    client->reported_lost = true;
    const Lost lost{client->rank, str("rank ", client->rank, " has sent no heartbeat for ",
                                      seconds_text(timeout), " seconds", last_place(*client))};
    for (const auto& other : clients_)
      if (other->rank >= 0 && other != client) other->send("end " + lost.message);
    return lost;
  }
  return std::nullopt;
}

std::optional<std::string> Rendezvous::find_delay(std::chrono::milliseconds timeout) {
  for (const auto& client : clients_) {
    if (!client->status || client->status->waits_for < 0 ||
        std::chrono::seconds(client->status->seconds) < timeout)
      continue;
    Client* const late = rank(client->status->waits_for);
    // A rank that waits itself is not the cause; ended and silent ranks are reported elsewhere.
    constexpr auto kHeartbeatAge = std::chrono::seconds(1);
    if (!late || !late->status || late->status->waits_for >= 0 ||
        Clock::now() - late->last_heartbeat > kHeartbeatAge)
      continue;
    if (client->status->exchanges == reported_delay_) return std::nullopt;
    reported_delay_ = client->status->exchanges;
    std::vector<int> waiting;
    for (int r = 0; r < ranks_; ++r)
      if (const Client* const other = rank(r); other && other->status)
        if (other->status->waits_for == late->rank) waiting.push_back(r);
    return str("rank ", late->rank, " is late: it is at step ", late->status->step, " after ",
               text(late->status->kind), " ", late->status->exchanges, "; ",
               waiting.size() == 1 ? "rank " : "ranks ", list(waiting),
               waiting.size() == 1 ? " has" : " have", " waited for it in ",
               text(client->status->kind), " ", client->status->exchanges, " of step ",
               client->status->step, " for ", client->status->seconds, " seconds", divergence());
  }
  return std::nullopt;
}

std::string Rendezvous::divergence() const {
  if (record_folder_.empty()) return "";
  try {
    const auto found = find_divergence(read_flights(record_folder_), steady_nanoseconds());
    return found ? "; " + *found : "";
  } catch (const Error&) {  // the record is an extra
    return "";
  }
}

std::optional<Rendezvous::NodeLine> Rendezvous::next_node_line() {
  if (node_lines_.empty()) return std::nullopt;
  NodeLine line = std::move(node_lines_.front());
  node_lines_.pop_front();
  return line;
}

std::vector<int> Rendezvous::node_ranks(int nodes) const {
  std::vector<int> out(static_cast<size_t>(nodes), -1);
  for (const auto& client : clients_)
    if (client->node >= 0 && client->node < nodes)
      out[static_cast<size_t>(client->node)] = client->node_ranks;
  return out;
}

std::vector<int> Rendezvous::node_servers(int nodes) const {
  std::vector<int> out(static_cast<size_t>(nodes), 0);
  for (const auto& client : clients_)
    if (client->node >= 0 && client->node < nodes)
      out[static_cast<size_t>(client->node)] = client->node_servers;
  return out;
}

void Rendezvous::send_to_nodes(const std::function<std::string(int node)>& line) {
  for (const auto& client : clients_)
    if (client->node >= 0) client->send(line(client->node));
}

namespace {

constexpr auto kAnswerTimeout = std::chrono::seconds(5);

/// A connection to the rendezvous that has admitted this request.
Socket admitted(const std::string& rendezvous, const std::string& token,
                const std::string& request) {
  Socket socket = connect_to(rendezvous);
  if (!request_admission(socket, token, request, kAnswerTimeout))
    fail(ErrorCode::kPeer, rendezvous, " has closed the connection of '", request, "'");
  return socket;
}

}  // namespace

Socket register_server(const std::string& rendezvous, const std::string& token, int server,
                       const std::string& address) {
  return admitted(rendezvous, token, str("server ", server, " ", address));
}

std::vector<std::string> find_servers(const std::string& rendezvous, const std::string& token,
                                      int servers) {
  const auto line = admitted(rendezvous, token, str("find ", servers)).receive_line(kAnswerTimeout);
  std::vector<std::string> out = split(line.value_or(""), ' ');
  out.resize(static_cast<size_t>(servers));
  for (std::string& address : out)
    if (address == "-") address.clear();
  return out;
}

TlsIdentity request_identity(const std::string& rendezvous, const std::string& token,
                             CertificateRole role) {
  const Socket socket =
      admitted(rendezvous, token, str("certificate ", role == CertificateRole::kListener ? 0 : 1));
  const std::string line = socket.receive_line(kAnswerTimeout).value_or("");
  const size_t space = line.find(' ');
  const std::string word = line.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
  if (word == "problem") fail(ErrorCode::kDevice, rendezvous, ": ", rest);
  return open_sealed_identity(token, rest);
}

RendezvousThread::RendezvousThread(int ranks, const std::string& address, const std::string& token,
                                   std::chrono::milliseconds dead_after,
                                   std::function<void(const std::string&)> notice)
    : rendezvous_(ranks, parse_address(address, "rendezvous").host,
                  parse_address(address, "rendezvous").port, token),
      notice_(std::move(notice)),
      thread_([this, dead_after] { run(dead_after); }) {}

RendezvousThread::~RendezvousThread() {
  ends_ = true;
  thread_.join();
}

std::string RendezvousThread::missing() {
  const std::lock_guard lock(mutex_);
  return rendezvous_.missing();
}

void RendezvousThread::run(std::chrono::milliseconds dead_after) {
  while (!ends_) {
    std::vector<pollfd> waits;
    for (const int descriptor : rendezvous_.descriptors()) waits.push_back({descriptor, POLLIN, 0});
    constexpr int kPollMilliseconds = 100;
    ::poll(waits.data(), waits.size(), kPollMilliseconds);
    const std::lock_guard lock(mutex_);
    rendezvous_.advance();
    if (const auto lost = rendezvous_.find_lost(dead_after); lost && notice_)
      notice_(lost->message + rendezvous_.divergence());
    if (const auto delay = rendezvous_.find_delay(dead_after); delay && notice_) notice_(*delay);
    for (const std::string& line : slow_.advance(rendezvous_.record_folder()))
      if (notice_) notice_(line);
  }
}

}  // namespace paddle::comm
