#include "comm/grpc_streams.h"

#include <utility>

#include "base/module.h"
#include "base/text.h"
#include "comm/grpc/interface.h"
#include "comm/sockets.h"

namespace paddle::comm {
namespace {

/// The functions of the module. Those that fail give the reason in a message.
class GrpcModule {
 public:
  static GrpcModule& get() {
    static GrpcModule grpc;
    return grpc;
  }

  decltype(paddle_grpc_listen)* listen = find<decltype(paddle_grpc_listen)>("paddle_grpc_listen");
  decltype(paddle_grpc_wait)* wait = find<decltype(paddle_grpc_wait)>("paddle_grpc_wait");
  decltype(paddle_grpc_send)* send = find<decltype(paddle_grpc_send)>("paddle_grpc_send");
  decltype(paddle_grpc_end)* end = find<decltype(paddle_grpc_end)>("paddle_grpc_end");
  decltype(paddle_grpc_free_listener)* free_listener =
      find<decltype(paddle_grpc_free_listener)>("paddle_grpc_free_listener");
  decltype(paddle_grpc_make_caller)* make_caller =
      find<decltype(paddle_grpc_make_caller)>("paddle_grpc_make_caller");
  decltype(paddle_grpc_connect)* connect =
      find<decltype(paddle_grpc_connect)>("paddle_grpc_connect");
  decltype(paddle_grpc_wait_call)* wait_call =
      find<decltype(paddle_grpc_wait_call)>("paddle_grpc_wait_call");
  decltype(paddle_grpc_send_call)* send_call =
      find<decltype(paddle_grpc_send_call)>("paddle_grpc_send_call");
  decltype(paddle_grpc_cause)* cause = find<decltype(paddle_grpc_cause)>("paddle_grpc_cause");
  decltype(paddle_grpc_end_call)* end_call =
      find<decltype(paddle_grpc_end_call)>("paddle_grpc_end_call");
  decltype(paddle_grpc_free_caller)* free_caller =
      find<decltype(paddle_grpc_free_caller)>("paddle_grpc_free_caller");

 private:
  template <class F>
  static F* find(const char* name) {
    static Module module(Module::default_path("grpc"), PADDLE_GRPC_VERSION);
    return module.require<F>(
        name,
        "parameter_server.channel: this installation has no gRPC (Debian: libgrpc++1.51, and "
        "libgrpc++-dev to build with it)");
  }
};

struct Reason {
  char text[512] = "";
};

/// The identity for a call; null without one.
class Tls {
 public:
  Tls(const std::optional<TlsIdentity>& identity, const std::string& name) {
    if (!identity) return;
    tls_ = {identity->authority.c_str(), identity->certificate.c_str(), identity->key.c_str(),
            name.c_str()};
    is_given_ = true;
  }
  const PaddleGrpcTls* get() const { return is_given_ ? &tls_ : nullptr; }

 private:
  PaddleGrpcTls tls_ = {};
  bool is_given_ = false;
};

std::vector<StreamEvent> events_of(const PaddleGrpcEvent* events, size_t count) {
  std::vector<StreamEvent> out;
  out.reserve(count);
  for (const PaddleGrpcEvent& each : std::span(events, count)) {
    const auto kind = each.kind == kPaddleGrpcConnected  ? StreamEvent::Kind::kConnected
                      : each.kind == kPaddleGrpcReceived ? StreamEvent::Kind::kReceived
                                                         : StreamEvent::Kind::kClosed;
    out.push_back({kind, each.peer, {static_cast<const std::byte*>(each.bytes), each.size}});
  }
  return out;
}

class GrpcListener final : public StreamListener {
 public:
  GrpcListener(const std::string& host, int port, const std::optional<TlsIdentity>& identity)
      : grpc_(GrpcModule::get()), host_(own_address(host)) {
    // gRPC says why it cannot listen in its log only.
    if (port > 0) listen_on(host_, port);
    Reason reason;
    const std::string address = str(host_, ":", port);
    if (grpc_.listen(address.c_str(), Tls(identity, "").get(), kMaxUnsent, &listener_, &port_,
                     reason.text, sizeof reason.text))
      fail(identity ? ErrorCode::kConfig : ErrorCode::kDevice, "gRPC cannot listen on ", address,
           identity ? " with the certificate and key of parameter_server.tls: " : ": ",
           reason.text);
  }
  ~GrpcListener() override { grpc_.free_listener(listener_); }

  std::string address() const override { return str(host_, ":", port_); }
  std::vector<StreamEvent> wait(std::chrono::milliseconds timeout) override {
    const PaddleGrpcEvent* events = nullptr;
    const size_t count = grpc_.wait(listener_, timeout.count(), &events);
    return events_of(events, count);
  }
  void send(int peer, std::vector<std::byte> bytes) override {
    if (bytes.empty()) return;
    auto owner = std::make_unique<std::vector<std::byte>>(std::move(bytes));
    const std::span<const std::byte> all = *owner;
    grpc_.send(
        listener_, peer, all.data(), all.size(),
        [](void* owned) { delete static_cast<std::vector<std::byte>*>(owned); }, owner.release());
  }
  void close(int peer) override { grpc_.end(listener_, peer, false); }
  void abort(int peer) override { grpc_.end(listener_, peer, true); }

 private:
  GrpcModule& grpc_;
  std::string host_;
  void* listener_ = nullptr;
  int port_ = 0;
};

class GrpcCaller final : public StreamCaller {
 public:
  explicit GrpcCaller(std::optional<TlsIdentity> identity)
      : grpc_(GrpcModule::get()), identity_(std::move(identity)), caller_(grpc_.make_caller()) {}
  ~GrpcCaller() override { grpc_.free_caller(caller_); }

  void connect(int peer, const std::string& address, std::chrono::milliseconds timeout) override {
    const std::string host = parse_address(address, "address").host;
    const std::string name =
        identity_ && !identity_->listener_name.empty() ? identity_->listener_name : host;
    const std::string addresses = paddle::join(numeric_addresses(address), ",");
    Reason reason;
    if (grpc_.connect(caller_, peer, addresses.c_str(), Tls(identity_, name).get(), timeout.count(),
                      reason.text, sizeof reason.text))
      fail(ErrorCode::kPeer, "cannot connect to ", address, ": ", reason.text);
  }
  bool send(int peer, std::span<const std::byte> bytes,
            std::chrono::milliseconds timeout) override {
    return grpc_.send_call(caller_, peer, bytes.data(), bytes.size(), timeout.count()) == 0;
  }
  std::vector<StreamEvent> wait(std::chrono::milliseconds timeout) override {
    const PaddleGrpcEvent* events = nullptr;
    const size_t count = grpc_.wait_call(caller_, timeout.count(), &events);
    return events_of(events, count);
  }
  std::string cause(int peer) const override {
    Reason reason;
    grpc_.cause(caller_, peer, reason.text, sizeof reason.text);
    return reason.text;
  }
  void close(int peer) override { grpc_.end_call(caller_, peer); }

 private:
  GrpcModule& grpc_;
  std::optional<TlsIdentity> identity_;
  void* caller_;
};

}  // namespace

std::unique_ptr<StreamListener> listen_for_grpc_streams(
    const std::string& host, int port, const std::optional<TlsIdentity>& identity) {
  return std::make_unique<GrpcListener>(host, port, identity);
}

std::unique_ptr<StreamCaller> call_grpc_streams(std::optional<TlsIdentity> identity) {
  return std::make_unique<GrpcCaller>(std::move(identity));
}

}  // namespace paddle::comm
