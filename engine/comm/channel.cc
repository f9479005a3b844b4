#include "comm/channel.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace paddle::comm {
namespace {

constexpr size_t kMaxHandshakeLine = 1024;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

ChannelListener::ChannelListener(std::unique_ptr<StreamListener> streams, std::string token,
                                 std::chrono::milliseconds handshake_timeout)
    : streams_(std::move(streams)),
      token_(std::move(token)),
      handshake_timeout_(handshake_timeout) {}

void ChannelListener::abort(int number, Peer& peer) {
  peer.is_aborted = true;
  streams_->abort(number);
}

void ChannelListener::abort_late_peers() {
  for (auto& [number, peer] : peers_)
    if ((!peer.is_admitted || peer.closes) && !peer.is_aborted &&
        Clock::now() - peer.since > handshake_timeout_)
      abort(number, peer);
}

void ChannelListener::send_line(int peer, const std::string& line) {
  const std::string whole = line + "\n";
  const auto bytes = bytes_of(whole);
  streams_->send(peer, {bytes.begin(), bytes.end()});
}

void ChannelListener::begin(int number) {
  const auto is_pending = [](const auto& each) {
    return !each.second.is_admitted && !each.second.is_aborted;
  };
  const auto pending = static_cast<size_t>(std::count_if(peers_.begin(), peers_.end(), is_pending));
  Peer& made = peers_[number];
  if (peers_.size() - pending > kMaxPeers) return abort(number, made);
  // A caller that knows the token needs a moment only.
  if (pending >= kMaxPending) {
    const auto oldest = std::find_if(peers_.begin(), peers_.end(), is_pending);
    abort(oldest->first, oldest->second);
  }
  send_line(number, made.challenge.line());
}

std::optional<std::string> ChannelListener::receive_line(int number, Peer& peer,
                                                         std::span<const std::byte> bytes) {
  peer.line.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t end = peer.line.find('\n');
  if (end == std::string::npos) {
    if (peer.line.size() > kMaxHandshakeLine) abort(number, peer);
    return std::nullopt;
  }
  // Nothing may follow before the caller has been admitted.
  const bool is_whole = end + 1 == peer.line.size();
  auto request = is_whole ? peer.challenge.accept(token_, peer.line.substr(0, end)) : std::nullopt;
  if (!request) {
    abort(number, peer);
    return std::nullopt;
  }
  peer.is_admitted = true;
  send_line(number, peer.challenge.welcome());
  return request;
}

std::vector<ChannelListener::Event> ChannelListener::wait(std::chrono::milliseconds timeout) {
  abort_late_peers();
  std::vector<Event> events;
  for (const StreamEvent& event : streams_->wait(timeout)) {
    if (event.kind == StreamEvent::Kind::kConnected) {
      begin(event.peer);
      continue;
    }
    const auto at = peers_.find(event.peer);
    if (at == peers_.end()) continue;
    Peer& peer = at->second;
    if (event.kind == StreamEvent::Kind::kClosed) {
      if (peer.is_admitted) events.push_back({.kind = Event::Kind::kClosed, .peer = event.peer});
      peers_.erase(at);
    } else if (peer.is_aborted || peer.closes) {
      continue;
    } else if (peer.is_admitted) {
      events.push_back({.kind = Event::Kind::kReceived, .peer = event.peer, .bytes = event.bytes});
    } else if (auto request = receive_line(event.peer, peer, event.bytes)) {
      events.push_back({Event::Kind::kConnected, event.peer, std::move(*request)});
    }
  }
  return events;
}

void ChannelListener::close(int peer) {
  const auto at = peers_.find(peer);
  if (at == peers_.end()) return;
  at->second.closes = true;
  at->second.since = Clock::now();
  streams_->close(peer);
}

void ChannelCaller::hold(const StreamEvent& event) {
  held_.push_back({event, {event.bytes.begin(), event.bytes.end()}});
}

std::optional<std::string> ChannelCaller::next_line(
    int peer, std::string& received, std::chrono::steady_clock::time_point deadline) {
  while (true) {
    if (const size_t end = received.find('\n'); end != std::string::npos) {
      std::string line = received.substr(0, end);
      received.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || received.size() > kMaxHandshakeLine) return std::nullopt;
    bool is_lost = false;
    for (const StreamEvent& event : streams_->wait(left)) {
      if (event.peer != peer)
        hold(event);
      else if (event.kind == StreamEvent::Kind::kReceived)
        received.append(reinterpret_cast<const char*>(event.bytes.data()), event.bytes.size());
      else
        is_lost = true;
    }
    if (is_lost && received.find('\n') == std::string::npos) return std::nullopt;
  }
}

void ChannelCaller::connect(int peer, const std::string& address, const std::string& request,
                            std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  close(peer);
  streams_->connect(peer, address, timeout);
  Admission admission(token_, request);
  std::string received;
  const auto challenge = next_line(peer, received, deadline);
  std::optional<std::string> welcome;
  if (challenge) {
    const std::string answer = admission.answer(*challenge) + "\n";
    if (streams_->send(peer, bytes_of(answer), timeout))
      welcome = next_line(peer, received, deadline);
  }
  if (!welcome) {
    const std::string cause = streams_->cause(peer);
    streams_->close(peer);
    fail(ErrorCode::kPeer, address, " has closed the connection: ",
         challenge || cause.empty() ? "it is of another run or has a different token" : cause);
  }
  if (!admission.is_welcome(*welcome))
    fail(ErrorCode::kPeer, "the program that listens at ", address,
         " does not know the token of this run");
  if (!received.empty()) hold({StreamEvent::Kind::kReceived, peer, bytes_of(received)});
}

std::vector<StreamEvent> ChannelCaller::wait(std::chrono::milliseconds timeout) {
  handed_out_.clear();
  if (held_.empty()) return streams_->wait(timeout);
  handed_out_.swap(held_);
  std::vector<StreamEvent> events;
  for (Held& each : handed_out_) {
    each.event.bytes = each.bytes;
    events.push_back(each.event);
  }
  return events;
}

void ChannelCaller::close(int peer) {
  std::erase_if(held_, [peer](const Held& each) { return each.event.peer == peer; });
  streams_->close(peer);
}

}  // namespace paddle::comm
