// libpaddle_grpc.so: see interface.h.

#include "comm/grpc/interface.h"

#include <grpc/support/log.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::system_clock;  // of gRPC's deadlines
using grpc::ByteBuffer;
using grpc::Slice;

constexpr const char* kMethod = "/paddle.Streams/Bytes";
constexpr size_t kMaxMessage = size_t{1} << 20;
constexpr int kMaxReceived = 4 << 20;
constexpr int kWindow = 8 << 20;
constexpr int kHandshakeMs = 5000;
constexpr size_t kMaxUnread = size_t{64} << 20;

/// The last line that gRPC has logged about an error; it would write it to standard error.
struct LastProblem {
  std::mutex mutex;
  std::string text;
};
LastProblem& last_problem() {
  static auto* const problem = new LastProblem;  // gRPC's threads may outlive static objects
  return *problem;
}

void keep_problem(gpr_log_func_args* args) {
  if (args->severity != GPR_LOG_SEVERITY_ERROR) return;
  const std::lock_guard lock(last_problem().mutex);
  last_problem().text = args->message;
}

void prepare_once() {
  static const bool done = [] {
    // gRPC takes TLS 1.2 as well, and has no option against it. Suites of TLS 1.2 that need a key
    // shared beforehand, of which there is none, leave TLS 1.3, which has suites of its own.
    ::setenv("GRPC_SSL_CIPHER_SUITES", "PSK-AES256-GCM-SHA384", 1);
    gpr_set_log_function(keep_problem);
    return true;
  }();
  (void)done;
}

void put(char* message, size_t size, const std::string& text) {
  std::snprintf(message, size, "%s", text.c_str());
  for (char* c = message; *c; ++c)
    if (static_cast<unsigned char>(*c) < 0x20) *c = ' ';
}

enum class Step { kBegun, kRead, kWritten, kFinished };

struct Stream;
struct Tag {
  Stream* stream;
  Step step;
};

/// A call with messages in both directions.
struct Stream {
  explicit Stream(int number_of_peer) : number(number_of_peer) {}
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  virtual void start_read() = 0;
  virtual void start_write(const ByteBuffer& message) = 0;
  virtual void start_finish() = 0;
  virtual void cancel() = 0;

  void* tag(Step step) {
    ++pending;
    return &tags[static_cast<size_t>(step)];
  }
  void read() {
    if (is_reading || is_paused || has_failed || is_finishing) return;
    is_reading = true;
    start_read();
  }
  /// Gathers what is unsent into a message.
  void write() {
    if (is_writing || unsent.empty() || has_failed || is_finishing) return;
    std::vector<Slice> parts;
    size_t bytes = 0;
    while (!unsent.empty() && bytes < kMaxMessage) {
      Slice& first = unsent.front();
      const size_t left = first.size() - sent, taken = std::min(left, kMaxMessage - bytes);
      parts.push_back(first.sub(sent, sent + taken));
      bytes += taken;
      sent = taken == left ? 0 : sent + taken;
      if (taken == left) unsent.pop_front();
    }
    unsent_bytes -= bytes;
    written_bytes = bytes;
    is_writing = true;
    start_write(ByteBuffer(parts.data(), parts.size()));
  }
  void add(Slice bytes) {
    unsent_bytes += bytes.size();
    unsent.push_back(std::move(bytes));
    write();
  }
  size_t untaken() const { return unsent_bytes + (is_writing ? written_bytes : 0); }
  /// Ends the call when there is nothing left to write.
  void finish() {
    if (is_finishing || is_writing || (!has_failed && !unsent.empty())) return;
    is_finishing = true;
    start_finish();
  }

  const int number;
  Tag tags[4] = {
      {this, Step::kBegun}, {this, Step::kRead}, {this, Step::kWritten}, {this, Step::kFinished}};
  int pending = 0;  ///< tags that gRPC has
  bool is_open = false, is_reading = false, is_writing = false, is_paused = false;
  bool closes = false, has_failed = false, is_finishing = false, is_over = false;
  bool is_reported = false;  ///< that it has ended
  ByteBuffer received;
  std::deque<Slice> unsent;
  size_t sent = 0, unsent_bytes = 0, written_bytes = 0;
};

/// Events with the bytes that they point to.
class Events {
 public:
  void clear() {
    entries_.clear();
    bytes_ = 0;
  }
  bool empty() const { return entries_.empty(); }
  size_t bytes() const { return bytes_; }
  void add(PaddleGrpcKind kind, int peer) { entries_.push_back({kind, peer, Slice()}); }
  void add_received(int peer, ByteBuffer& message) {
    std::vector<Slice> parts;
    if (!message.Dump(&parts).ok()) return;
    for (Slice& part : parts) {
      if (part.size() == 0) continue;
      bytes_ += part.size();
      entries_.push_back({kPaddleGrpcReceived, peer, std::move(part)});
    }
    message.Clear();
  }
  void forget(int peer) {
    std::erase_if(entries_, [peer](const Entry& each) { return each.peer == peer; });
  }
  /// Nothing may be added from now on: small slices have their bytes in themselves.
  size_t finish(const PaddleGrpcEvent** events) {
    events_.clear();
    for (const Entry& each : entries_)
      events_.push_back({each.kind, each.peer, each.bytes.begin(), each.bytes.size()});
    *events = events_.data();
    return events_.size();
  }

 private:
  struct Entry {
    PaddleGrpcKind kind;
    int peer;
    Slice bytes;
  };
  std::vector<Entry> entries_;
  std::vector<PaddleGrpcEvent> events_;
  size_t bytes_ = 0;
};

// ---- listener -----------------------------------------------------------------------------------

struct ServedStream final : Stream {
  using Stream::Stream;
  void start_read() override { call.Read(&received, tag(Step::kRead)); }
  void start_write(const ByteBuffer& message) override { call.Write(message, tag(Step::kWritten)); }
  void start_finish() override { call.Finish(grpc::Status::OK, tag(Step::kFinished)); }
  void cancel() override { context.TryCancel(); }
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter call{&context};
};

class Listener {
 public:
  Listener(const std::string& address, const PaddleGrpcTls* tls, size_t max_unsent)
      : max_unsent_(max_unsent) {
    grpc::ServerBuilder builder;
    std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
    if (tls) {
      grpc::SslServerCredentialsOptions options(
          GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
      options.pem_root_certs = tls->authority;
      options.pem_key_cert_pairs.push_back({tls->key, tls->certificate});
      credentials = grpc::SslServerCredentials(options);
    }
    builder.AddListeningPort(address, credentials, &port_);
    builder.RegisterAsyncGenericService(&service_);
    completions_ = builder.AddCompletionQueue();
    builder.SetMaxReceiveMessageSize(kMaxReceived);
    builder.SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 2 * kHandshakeMs);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 8 << 10);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindow);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, static_cast<int>(kMaxMessage));
    server_ = builder.BuildAndStart();
    if (server_ && port_ > 0) accept();
  }
  ~Listener() {
    if (server_) server_->Shutdown(Clock::now());
    completions_->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (completions_->Next(&tag, &ok)) {  // what is left of the streams
    }
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// 0 if it does not listen.
  int port() const { return server_ ? port_ : 0; }

  size_t wait(int64_t timeout_ms, const PaddleGrpcEvent** events) {
    events_.clear();
    void* tag = nullptr;
    bool ok = false;
    auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
    // The events that are there, up to a bound, so that the answers to them are not late.
    constexpr int kAtOnce = 64;
    for (int i = 0; i < kAtOnce; ++i) {
      if (completions_->AsyncNext(&tag, &ok, deadline) != grpc::CompletionQueue::GOT_EVENT) break;
      const Tag& done = *static_cast<Tag*>(tag);
      advance(*static_cast<ServedStream*>(done.stream), done.step, ok);
      if (!events_.empty()) deadline = Clock::time_point();
    }
    return events_.finish(events);
  }

  void send(int peer, Slice bytes) {
    const auto at = streams_.find(peer);
    if (at == streams_.end() || at->second->closes || at->second->has_failed) return;
    at->second->add(std::move(bytes));
    at->second->is_paused = at->second->untaken() > max_unsent_;
  }

  void end(int peer, bool now) {
    const auto at = streams_.find(peer);
    if (at == streams_.end()) return;
    at->second->closes = true;
    if (now)
      at->second->cancel();
    else
      at->second->finish();
  }

 private:
  void accept() {
    accepted_ = std::make_unique<ServedStream>(next_++);
    service_.RequestCall(&accepted_->context, &accepted_->call, completions_.get(),
                         completions_.get(), accepted_->tag(Step::kBegun));
  }

  void advance(ServedStream& stream, Step step, bool ok) {
    --stream.pending;
    switch (step) {
      case Step::kBegun:
        if (!ok) return;
        streams_[stream.number] = std::move(accepted_);
        stream.is_open = true;
        accept();
        if (stream.context.method() != kMethod) {
          stream.is_reported = stream.closes = true;
          stream.finish();
          return;
        }
        events_.add(kPaddleGrpcConnected, stream.number);
        stream.read();
        return;
      case Step::kRead:
        stream.is_reading = false;
        stream.has_failed = stream.has_failed || !ok;
        if (ok && !stream.closes) {
          events_.add_received(stream.number, stream.received);
          stream.read();
        }
        break;
      case Step::kWritten:
        stream.is_writing = false;
        stream.has_failed = stream.has_failed || !ok;
        stream.is_paused = stream.untaken() > max_unsent_;
        stream.write();
        if (!stream.closes) stream.read();
        break;
      case Step::kFinished:
        stream.is_over = true;
        break;
    }
    if (stream.closes || stream.has_failed) stream.finish();
    if ((stream.is_over || stream.has_failed) && !stream.is_reported) {
      stream.is_reported = true;
      events_.add(kPaddleGrpcClosed, stream.number);
    }
    if (stream.is_over && stream.pending == 0) streams_.erase(stream.number);
  }

  const size_t max_unsent_;
  int port_ = 0, next_ = 1;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> completions_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ServedStream> accepted_;  ///< for the next caller
  std::map<int, std::unique_ptr<ServedStream>> streams_;
  Events events_;
};

// ---- caller -------------------------------------------------------------------------------------

struct CalledStream final : Stream {
  CalledStream(int peer, const std::string& target, const PaddleGrpcTls* tls) : Stream(peer) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMaxReceived);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindow);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, static_cast<int>(kMaxMessage));
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
    if (tls) {
      credentials = grpc::SslCredentials({tls->authority, tls->key, tls->certificate});
      arguments.SetSslTargetNameOverride(tls->name);
    }
    channel = grpc::CreateCustomChannel(target, credentials, arguments);
    stub = std::make_unique<grpc::GenericStub>(channel);
  }
  void begin(grpc::CompletionQueue* completions) {
    call = stub->PrepareCall(&context, kMethod, completions);
    call->StartCall(tag(Step::kBegun));
  }
  void start_read() override { call->Read(&received, tag(Step::kRead)); }
  void start_write(const ByteBuffer& message) override {
    call->Write(message, tag(Step::kWritten));
  }
  void start_finish() override { call->Finish(&status, tag(Step::kFinished)); }
  void cancel() override { context.TryCancel(); }

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<grpc::GenericStub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
  grpc::Status status;
  std::string cause;
};

/// A thread takes what arrives, so that streams advance while their owner computes.
class Caller {
 public:
  Caller() : thread_([this] { run(); }) {}
  ~Caller() {
    {
      const std::lock_guard lock(mutex_);
      for (auto& [number, stream] : streams_) stream->cancel();
      for (const auto& stream : ended_) stream->cancel();
    }
    // Streams end with tags of their own, after which nothing comes.
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      return std::all_of(streams_.begin(), streams_.end(),
                         [](const auto& each) { return each.second->pending == 0; }) &&
             std::all_of(ended_.begin(), ended_.end(),
                         [](const auto& each) { return each->pending == 0; });
    });
    lock.unlock();
    completions_.Shutdown();
    thread_.join();
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  /// The reason for which it failed; "".
  std::string connect(int peer, const std::string& target, const PaddleGrpcTls* tls,
                      std::chrono::milliseconds timeout) {
    end(peer);
    std::unique_lock lock(mutex_);
    CalledStream& made = *(streams_[peer] = std::make_unique<CalledStream>(peer, target, tls));
    made.begin(&completions_);
    const bool answered =
        changed_.wait_for(lock, timeout, [&] { return made.is_open || made.is_over; });
    if (made.is_open && !made.is_over) return "";
    const std::string cause = answered ? made.cause : "it does not answer";
    lock.unlock();
    end(peer);
    return cause.empty() ? "the connection has ended" : cause;
  }

  size_t wait(std::chrono::milliseconds timeout, const PaddleGrpcEvent** events) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [&] { return !arrived_.empty(); });
    taken_.clear();
    std::swap(taken_, arrived_);
    for (auto& [number, stream] : streams_)
      if (stream->is_paused) {
        stream->is_paused = false;
        stream->read();
      }
    return taken_.finish(events);
  }

  bool send(int peer, const void* bytes, size_t size, std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    const auto at = streams_.find(peer);
    if (at == streams_.end() || at->second->has_failed) return false;
    CalledStream& stream = *at->second;
    stream.add(Slice(bytes, size));
    return changed_.wait_for(lock, timeout, [&] {
      return stream.has_failed || stream.untaken() <= kMaxUnread;
    }) && !stream.has_failed;
  }

  std::string cause(int peer) {
    const std::lock_guard lock(mutex_);
    const auto at = streams_.find(peer);
    return at == streams_.end() ? "" : at->second->cause;
  }

  void end(int peer) {
    const std::lock_guard lock(mutex_);
    const auto at = streams_.find(peer);
    if (at == streams_.end()) return;
    at->second->is_reported = true;
    at->second->cancel();
    if (at->second->pending > 0) ended_.push_back(std::move(at->second));
    streams_.erase(at);
    arrived_.forget(peer);
  }

 private:
  void run() {
    void* tag = nullptr;
    bool ok = false;
    while (completions_.Next(&tag, &ok)) {
      const std::lock_guard lock(mutex_);
      const Tag& done = *static_cast<Tag*>(tag);
      advance(*static_cast<CalledStream*>(done.stream), done.step, ok);
      changed_.notify_all();
    }
  }

  void advance(CalledStream& stream, Step step, bool ok) {
    --stream.pending;
    switch (step) {
      case Step::kBegun:
        stream.has_failed = !ok;
        stream.is_open = ok;
        stream.read();
        stream.write();
        break;
      case Step::kRead:
        stream.is_reading = false;
        stream.has_failed = stream.has_failed || !ok;
        if (!ok) break;
        if (!stream.is_reported) arrived_.add_received(stream.number, stream.received);
        stream.is_paused = arrived_.bytes() > kMaxUnread;
        stream.read();
        break;
      case Step::kWritten:
        stream.is_writing = false;
        stream.has_failed = stream.has_failed || !ok;
        stream.write();
        break;
      case Step::kFinished:
        stream.is_over = true;
        stream.cause = stream.status.error_message();
        if (!stream.is_reported) {
          stream.is_reported = true;
          arrived_.add(kPaddleGrpcClosed, stream.number);
        }
        break;
    }
    if (stream.has_failed) stream.finish();
    if (stream.pending == 0)
      std::erase_if(ended_, [&](const auto& each) { return each.get() == &stream; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  grpc::CompletionQueue completions_;
  std::map<int, std::unique_ptr<CalledStream>> streams_;
  std::vector<std::unique_ptr<CalledStream>> ended_;  ///< whose tags have not come back
  Events arrived_, taken_;
  std::thread thread_;
};

}  // namespace

#define PADDLE_EXPORTED __attribute__((visibility("default")))

extern "C" {

PADDLE_EXPORTED int paddle_module_version() { return PADDLE_GRPC_VERSION; }

PADDLE_EXPORTED int paddle_grpc_listen(const char* address, const PaddleGrpcTls* tls,
                                       size_t max_unsent, void** listener, int* port, char* message,
                                       size_t message_size) {
  prepare_once();
  try {
    auto made = std::make_unique<Listener>(address, tls, max_unsent);
    *port = made->port();
    if (*port == 0) {
      const std::lock_guard lock(last_problem().mutex);
      put(message, message_size, last_problem().text);
      return 1;
    }
    *listener = made.release();
    return 0;
  } catch (const std::exception& e) {
    put(message, message_size, e.what());
  }
  return 1;
}

PADDLE_EXPORTED size_t paddle_grpc_wait(void* listener, int64_t timeout_ms,
                                        const PaddleGrpcEvent** events) {
  return static_cast<Listener*>(listener)->wait(timeout_ms, events);
}

PADDLE_EXPORTED void paddle_grpc_send(void* listener, int peer, const void* bytes, size_t size,
                                      void (*release)(void*), void* owner) {
  static_cast<Listener*>(listener)->send(peer,
                                         Slice(const_cast<void*>(bytes), size, release, owner));
}

PADDLE_EXPORTED void paddle_grpc_end(void* listener, int peer, bool now) {
  static_cast<Listener*>(listener)->end(peer, now);
}

PADDLE_EXPORTED void paddle_grpc_free_listener(void* listener) {
  delete static_cast<Listener*>(listener);
}

PADDLE_EXPORTED void* paddle_grpc_make_caller() {
  prepare_once();
  return new Caller;
}

PADDLE_EXPORTED int paddle_grpc_connect(void* caller, int peer, const char* addresses,
                                        const PaddleGrpcTls* tls, int64_t timeout_ms, char* message,
                                        size_t message_size) {
  try {
    const std::string problem = static_cast<Caller*>(caller)->connect(
        peer, std::string("ipv4:") + addresses, tls, std::chrono::milliseconds(timeout_ms));
    if (problem.empty()) return 0;
    put(message, message_size, problem);
  } catch (const std::exception& e) {
    put(message, message_size, e.what());
  }
  return 1;
}

PADDLE_EXPORTED size_t paddle_grpc_wait_call(void* caller, int64_t timeout_ms,
                                             const PaddleGrpcEvent** events) {
  return static_cast<Caller*>(caller)->wait(std::chrono::milliseconds(timeout_ms), events);
}

PADDLE_EXPORTED int paddle_grpc_send_call(void* caller, int peer, const void* bytes, size_t size,
                                          int64_t timeout_ms) {
  const bool sent =
      static_cast<Caller*>(caller)->send(peer, bytes, size, std::chrono::milliseconds(timeout_ms));
  return sent ? 0 : 1;
}

PADDLE_EXPORTED void paddle_grpc_cause(void* caller, int peer, char* message, size_t message_size) {
  put(message, message_size, static_cast<Caller*>(caller)->cause(peer));
}

PADDLE_EXPORTED void paddle_grpc_end_call(void* caller, int peer) {
  static_cast<Caller*>(caller)->end(peer);
}

PADDLE_EXPORTED void paddle_grpc_free_caller(void* caller) { delete static_cast<Caller*>(caller); }
}
