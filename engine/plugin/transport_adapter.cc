#include "plugin/transport_adapter.h"

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

#include "base/hex.h"
#include "plugin/frame.h"
#include "plugin/host.h"
#include "plugin/option_struct.h"

namespace paddle::plugin {
namespace {

constexpr size_t kMaxKey = 64, kMaxValue = 1024, kMaxPublished = 32 * 1024;

bool is_key(const char* key) {
  const std::string_view text = key ? key : "";
  return !text.empty() && text.size() <= kMaxKey && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

/// The values of ranks over the connections that they made when they joined. What a rank publishes
/// fits into the buffers of its connections, so `put` does not wait for others.
class SocketRendezvous {
 public:
  SocketRendezvous(const std::vector<comm::Socket>& peers, std::chrono::milliseconds timeout)
      : peers_(peers), timeout_(timeout), values_(peers.size()) {}

  paddle_rendezvous functions() { return {sizeof(paddle_rendezvous), 0, this, put, get}; }

 private:
  static paddle_status put(void* context, paddle_call* call, const char* key, const void* value,
                           size_t size) {
    return guarded(call, [&] {
      static_cast<SocketRendezvous*>(context)->publish(key, static_cast<const std::byte*>(value),
                                                       size);
    });
  }
  static paddle_status get(void* context, paddle_call* call, int32_t peer, const char* key,
                           void* value, size_t capacity, size_t* size) {
    return guarded(call, [&] {
      const std::string& found = static_cast<SocketRendezvous*>(context)->wait(peer, key);
      if (found.size() > capacity)
        fail(ErrorCode::kUsage, "rendezvous: the value of '", key, "' has ", found.size(),
             " bytes, there is memory for ", capacity);
      std::copy(found.begin(), found.end(), static_cast<char*>(value));
      *size = found.size();
    });
  }

  void publish(const char* key, const std::byte* value, size_t size) {
    if (!is_key(key)) fail(ErrorCode::kUsage, "rendezvous: '", key ? key : "", "' is not a key");
    published_ += size + kMaxKey;
    if (size > kMaxValue || published_ > kMaxPublished)
      fail(ErrorCode::kUsage, "rendezvous: the value of '", key, "' is too large");
    const std::string line = str(key, " ", hex_digits(std::span(value, size)));
    for (const comm::Socket& peer : peers_)
      if (peer.descriptor() >= 0) peer.send_line(line);
  }

  const std::string& wait(int32_t peer, const char* key) {
    const auto at = static_cast<size_t>(peer);
    if (peer < 0 || at >= peers_.size() || peers_[at].descriptor() < 0)
      fail(ErrorCode::kUsage, "rendezvous: there is no other rank ", peer);
    if (!is_key(key)) fail(ErrorCode::kUsage, "rendezvous: '", key ? key : "", "' is not a key");
    std::map<std::string, std::string>& values = values_[at];
    while (!values.contains(key)) {
      const auto line = peers_[at].receive_line(timeout_);
      if (!line)
        fail(ErrorCode::kPeer, "rank ", peer, " has ended, or has not published '", key, "' in ",
             comm::seconds_text(timeout_), " seconds");
      const size_t space = std::min(line->find(' '), line->size());
      std::string& value = values[line->substr(0, space)];
      for (size_t i = space + 1; i + 1 < line->size(); i += 2)
        value += static_cast<char>(hex_value((*line)[i]) * 16 + hex_value((*line)[i + 1]));
    }
    return values[key];
  }

  const std::vector<comm::Socket>& peers_;
  std::chrono::milliseconds timeout_;
  std::vector<std::map<std::string, std::string>> values_;  ///< by rank
  size_t published_ = 0;
};

/// A list of messages as C structs, whose memory is kept.
class Messages {
 public:
  template <class Message>
  void assign(std::span<const Message> messages) {
    size_t pieces = 0;
    for (const Message& message : messages) pieces += message.pieces.size();
    structs_.resize(messages.size());
    pointers_.resize(messages.size());
    data_.resize(pieces);
    sizes_.resize(pieces);
    size_t at = 0;
    for (size_t i = 0; i < messages.size(); ++i) {
      structs_[i] = {sizeof(paddle_message),
                     messages[i].peer,
                     static_cast<uint32_t>(messages[i].pieces.size()),
                     0,
                     data_.data() + at,
                     sizes_.data() + at};
      pointers_[i] = &structs_[i];
      for (const auto& piece : messages[i].pieces) {
        data_[at] = const_cast<std::byte*>(piece.data());
        sizes_[at++] = piece.size();
      }
    }
  }
  const paddle_message* const* data() const { return pointers_.data(); }
  uint32_t count() const { return static_cast<uint32_t>(pointers_.size()); }

 private:
  std::vector<paddle_message> structs_;
  std::vector<const paddle_message*> pointers_;
  std::vector<void*> data_;
  std::vector<size_t> sizes_;
};

class PluginTransport final : public comm::ProcessTransport {
 public:
  PluginTransport(const TransportContext& context, int rank, const std::vector<std::string>& hosts,
                  const comm::ProcessOptions& options, const paddle_rendezvous& rendezvous,
                  const KindOptions& kind_options)
      : ProcessTransport(rank, static_cast<int>(hosts.size()), options), context_(context) {
    std::vector<const char*> addresses;
    for (const std::string& host : hosts) addresses.push_back(host.c_str());
    paddle_rank description{};
    description.struct_size = sizeof description;
    description.rank = rank;
    description.size = size_;
    description.timeout = std::chrono::duration<double>(options.timeout).count();
    description.hosts = addresses.data();
    description.rendezvous = &rendezvous;
    const OptionStruct given(kind_options);
    description.options = given.get();
    check("open",
          [&](paddle_call* call) { return context_.functions.open(call, &description, &state_); });
  }
  ~PluginTransport() override {
    if (broken_ || std::uncaught_exceptions() > 0) abort("another rank has ended with an error");
    life_.stop();
    const Frame frame(context_.plugin.c_str(), "close", context_.name.c_str());
    context_.functions.close(state_);
  }

  /// Keeps the connections of the rendezvous open, so that no value is lost that a slower rank has
  /// not read yet.
  void keep(std::vector<comm::Socket> peers) { peers_ = std::move(peers); }

  void exchange(comm::Exchange kind, std::span<const comm::Outgoing> sends,
                std::span<const comm::Incoming> receives) override {
    const comm::Liveness::Scope scope(life_, kind);
    if (receives.size() == 1) scope.wait_for(rank_, receives[0].peer);
    sent_.assign(sends);
    received_.assign(receives);
    check(comm::text(kind), [&](paddle_call* call) {
      return context_.functions.exchange(state_, call, static_cast<uint32_t>(kind), sent_.data(),
                                         sent_.count(), received_.data(), received_.count());
    });
  }
  void isend(int peer, uint32_t tag, std::span<const std::byte> bytes) override {
    check("post", [&](paddle_call* call) {
      return context_.functions.post(state_, call, peer, tag, bytes.data(), bytes.size());
    });
  }
  void recv(int peer, uint32_t tag, std::span<std::byte> bytes) override {
    const comm::Liveness::Scope scope(life_, comm::Exchange::kMessage);
    scope.wait_for(rank_, peer);
    check("take", [&](paddle_call* call) {
      return context_.functions.take(state_, call, peer, tag, bytes.data(), bytes.size());
    });
  }
  void abort(const std::string& reason) noexcept override {
    const Frame frame(context_.plugin.c_str(), "abort", context_.name.c_str());
    context_.functions.abort(state_, reason.c_str());
  }
  bool can_overlap() const override {
    return context_.functions.can_overlap ? context_.functions.can_overlap(state_) != 0
                                          : ProcessTransport::can_overlap();
  }
  void set_step(int64_t step) override {
    ProcessTransport::set_step(step);
    if (context_.functions.at_step) context_.functions.at_step(state_, step);
  }

 protected:
  std::function<void()> on_lost() override {
    return [this] { abort("the run has lost a rank"); };
  }

 private:
  template <class Function>
  void check(const char* what, Function&& function) {
    paddle_call call;
    paddle_status status = PADDLE_INTERNAL;
    {
      const Frame frame(context_.plugin.c_str(), what, context_.name.c_str());
      status = call_plugin(frame, context_.plugin.c_str(), context_.name.c_str(),
                           [&] { return function(&call); });
    }
    if (status == PADDLE_OK) return;
    broken_ = true;
    if (status == PADDLE_PEER) life_.check();  // the reason for which the run has ended
    throw_status(call, status, str("rank ", rank_, ": ", context_.name, ": ", what));
  }

  const TransportContext& context_;
  std::vector<comm::Socket> peers_;
  void* state_ = nullptr;
  bool broken_ = false;
  Messages sent_, received_;
};

}  // namespace

std::shared_ptr<comm::Transport> open_plugin_transport(const TransportContext& context,
                                                       comm::JoinedRank joined) {
  std::vector<comm::Socket> peers = std::move(joined.peers);
  SocketRendezvous rendezvous(peers, joined.options.join_timeout);
  const paddle_rendezvous functions = rendezvous.functions();
  auto transport = std::make_shared<PluginTransport>(
      context, joined.rank, joined.hosts, joined.options, functions, joined.kind_options);
  transport->keep(std::move(peers));
  transport->start(std::move(joined.rendezvous), std::move(joined.host));
  return transport;
}

}  // namespace paddle::plugin
