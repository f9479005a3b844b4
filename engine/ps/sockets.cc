#include "ps/sockets.h"

#include <poll.h>

#include <deque>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace paddle::ps {

using Clock = std::chrono::steady_clock;
using comm::ChannelListener;

SocketServer::SocketServer(Server& server, const std::string& host, int port,
                           const std::string& token)
    : server_(server), listener_(host, port, token) {}

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
  explicit SocketLink(SocketLinkOptions options) : options_(std::move(options)) {}

  Message connect(int server, const WorkerPlace& place) override {
    const auto deadline = Clock::now() + options_.timeout;
    std::string cause = "it has not registered";
    while (true) {
      try {
        const std::string address = options_.address(server);
        if (!address.empty()) {
          Connection& of = connections_[server];
          of = {};
          constexpr auto kAnswer = std::chrono::seconds(5);
          of.channel =
              std::make_unique<comm::Channel>(address, options_.token, place.text(), kAnswer);
          const auto answered = Clock::now() + kAnswer;
          while (of.channel && Clock::now() < answered) {
            poll_all(std::chrono::milliseconds(100));
            if (of.messages.empty()) continue;
            Message hello = std::move(of.messages.front());
            of.messages.pop_front();
            return hello;
          }
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
    if (!of.channel) return false;
    bytes_.clear();
    for (const auto& message : messages) append_frames(bytes_, *message);
    if (of.channel->send(bytes_, options_.timeout)) return true;
    of.channel.reset();
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
        if (!of.channel && !of.is_reported) {
          of.is_reported = true;
          return Received{server};
        }
      }
      if (round == 0) poll_all(timeout);
    }
    return std::nullopt;
  }

 private:
  struct Connection {
    std::unique_ptr<comm::Channel> channel;
    FrameReader reader;
    std::deque<Message> messages;
    bool is_reported = false;  ///< that it is lost
  };

  void poll_all(std::chrono::milliseconds timeout) {
    std::vector<pollfd> waits;
    std::vector<Connection*> waiting;
    for (auto& [server, of] : connections_) {
      if (!of.channel) continue;
      waits.push_back({of.channel->descriptor(), POLLIN, 0});
      waiting.push_back(&of);
    }
    if (::poll(waits.data(), waits.size(), static_cast<int>(timeout.count())) <= 0) return;
    constexpr size_t kReceivedBytes = size_t{256} << 10;
    buffer_.resize(kReceivedBytes);
    for (size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].revents == 0) continue;
      Connection& of = *waiting[i];
      const auto received = of.channel->receive(buffer_);
      if (!received) {
        of.channel.reset();
        continue;
      }
      of.reader.add(std::span(buffer_).first(*received));
      while (auto message = of.reader.next()) of.messages.push_back(std::move(*message));
    }
  }

  SocketLinkOptions options_;
  std::map<int, Connection> connections_;
  std::vector<std::byte> bytes_, buffer_;
};

}  // namespace

std::unique_ptr<Link> socket_link(SocketLinkOptions options) {
  return std::make_unique<SocketLink>(std::move(options));
}

}  // namespace paddle::ps
