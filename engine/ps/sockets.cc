#include "ps/sockets.h"

#include <deque>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "comm/socket_streams.h"
#include "comm/sockets.h"

namespace paddle::ps {

using Clock = std::chrono::steady_clock;
using comm::ChannelListener;

namespace {

std::unique_ptr<comm::StreamListener> listen(const Wire& wire, const std::string& host, int port) {
  return wire.is_grpc ? comm::listen_for_grpc_streams(host, port, wire.identity)
                      : comm::listen_for_socket_streams(host, port);
}

std::unique_ptr<comm::StreamCaller> caller_of(const Wire& wire) {
  return wire.is_grpc ? comm::call_grpc_streams(wire.identity) : comm::call_socket_streams();
}

}  // namespace

SocketServer::SocketServer(Server& server, const std::string& host, int port,
                           const std::string& token, const Wire& wire)
    : server_(server), listener_(listen(wire, host, port), token) {}

void SocketServer::run(const std::function<bool()>& ends, bool stays) {
  constexpr auto kMoment = std::chrono::milliseconds(100);
  while (!ends() && (stays || !server_.is_over())) {
    Lane::Answers answers;
    for (const ChannelListener::Event& event : listener_.wait(kMoment)) {
      try {
        handle(event, answers);
      } catch (const Error& e) {
        reject(event.peer, e);
        if (e.code() == ErrorCode::kPeer) continue;
        while (!peers_.empty()) reject(peers_.begin()->first, e);
        const auto deadline = Clock::now() + std::chrono::seconds(2);
        while (listener_.peers() > 0 && Clock::now() < deadline) listener_.wait(kMoment);
        throw;
      }
    }
    send(answers);
  }
}

void SocketServer::handle(const ChannelListener::Event& event, Lane::Answers& answers) {
  using Kind = ChannelListener::Event::Kind;
  if (event.kind == Kind::kConnected) {
    const auto place = WorkerPlace::parse(event.request);
    if (!place) fail(ErrorCode::kPeer, "tables: a request that is not one of a worker");
    const Message hello = server_.begin_worker(*place);
    const auto worker = static_cast<uint32_t>(place->worker);
    // Answers to what it has sent before go nowhere: it sends it again.
    std::erase_if(answers, [&](const Message& message) { return message.worker == worker; });
    if (const auto before = workers_.find(worker); before != workers_.end()) {
      listener_.close(before->second);
      peers_.erase(before->second);
    }
    workers_[worker] = event.peer;
    peers_[event.peer].worker = place->worker;
    std::vector<std::byte> bytes;
    append_frames(bytes, hello);
    listener_.send(event.peer, std::move(bytes));
    return;
  }
  const auto at = peers_.find(event.peer);
  if (at == peers_.end()) return;
  Peer& peer = at->second;
  if (event.kind == Kind::kClosed) {
    const auto worker = workers_.find(static_cast<uint32_t>(peer.worker));
    if (worker != workers_.end() && worker->second == event.peer) workers_.erase(worker);
    peers_.erase(at);
    return;
  }
  peer.reader.add(event.bytes);
  while (auto message = peer.reader.next()) {
    if (message->worker != static_cast<uint32_t>(peer.worker))
      fail(ErrorCode::kPeer, "tables: worker ", peer.worker, " sends as worker ", message->worker);
    server_.take(std::move(*message), answers);
  }
}

void SocketServer::reject(int peer, const Error& error) {
  std::vector<std::byte> bytes;
  append_frames(bytes, error_message(error));
  listener_.send(peer, std::move(bytes));
  listener_.close(peer);
  peers_.erase(peer);
  std::erase_if(workers_, [&](const auto& each) { return each.second == peer; });
}

void SocketServer::send(Lane::Answers& answers) {
  std::map<int, std::vector<std::byte>> out;
  for (const Message& message : answers)
    if (const auto to = workers_.find(message.worker); to != workers_.end())
      append_frames(out[to->second], message);
  for (auto& [peer, bytes] : out) listener_.send(peer, std::move(bytes));
}

namespace {

class SocketLink final : public Link {
 public:
  explicit SocketLink(SocketLinkOptions options)
      : options_(std::move(options)), caller_(caller_of(options_.wire), options_.token) {}

  Message connect(int server, const WorkerPlace& place) override {
    const auto deadline = Clock::now() + options_.timeout;
    std::string cause = "it has not registered";
    while (true) {
      try {
        const std::string address = options_.address(server);
        if (!address.empty()) {
          if (auto hello = request_hello(server, address, place)) return std::move(*hello);
          cause = "it has closed the connection";
        }
      } catch (const Error& e) {
        if (e.code() != ErrorCode::kPeer) throw;
        cause = e.message();
      }
      if (Clock::now() > deadline)
        fail(ErrorCode::kPeer, "worker ", place.worker, " has waited ",
             comm::seconds_text(options_.timeout), " seconds for server ", server, ": ", cause);
      constexpr auto kMoment = std::chrono::milliseconds(50);
      std::this_thread::sleep_for(kMoment);
    }
  }

  bool send(int server, std::span<const std::shared_ptr<const Message>> messages) override {
    Connection& of = connections_[server];
    if (!of.is_open) return false;
    bytes_.clear();
    for (const auto& message : messages) append_frames(bytes_, *message);
    if (caller_.send(server, bytes_, options_.timeout)) return true;
    of.is_open = false;
    of.is_reported = true;
    return false;
  }

  std::optional<Received> wait(std::chrono::milliseconds timeout) override {
    for (int round = 0; round < 2; ++round) {
      for (auto& [server, of] : connections_) {
        if (!of.messages.empty()) {
          Received out{server, std::move(of.messages.front())};
          of.messages.pop_front();
          return out;
        }
        if (!of.is_open && !of.is_reported) {
          of.is_reported = true;
          return Received{server};
        }
      }
      if (round == 0) receive(timeout);
    }
    return std::nullopt;
  }

 private:
  struct Connection {
    bool is_open = false;
    FrameReader reader;
    std::deque<Message> messages;
    bool is_reported = false;  ///< that it is lost
  };

  std::optional<Message> request_hello(int server, const std::string& address,
                                       const WorkerPlace& place) {
    constexpr auto kAnswer = std::chrono::seconds(5);
    Connection& of = connections_[server];
    of = {};
    caller_.connect(server, address, place.text(), kAnswer);
    of.is_open = true;
    const auto answered = Clock::now() + kAnswer;
    while (of.is_open && Clock::now() < answered) {
      receive(std::chrono::milliseconds(100));
      if (of.messages.empty()) continue;
      Message hello = std::move(of.messages.front());
      of.messages.pop_front();
      return hello;
    }
    return std::nullopt;
  }

  void receive(std::chrono::milliseconds timeout) {
    for (const comm::StreamEvent& event : caller_.wait(timeout)) {
      Connection& of = connections_[event.peer];
      if (event.kind == comm::StreamEvent::Kind::kClosed) {
        of.is_open = false;
        continue;
      }
      of.reader.add(event.bytes);
      while (auto message = of.reader.next()) of.messages.push_back(std::move(*message));
    }
  }

  SocketLinkOptions options_;
  comm::ChannelCaller caller_;
  std::map<int, Connection> connections_;
  std::vector<std::byte> bytes_;
};

}  // namespace

std::unique_ptr<Link> socket_link(SocketLinkOptions options) {
  return std::make_unique<SocketLink>(std::move(options));
}

}  // namespace paddle::ps
