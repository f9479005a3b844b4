// libpaddle_gloo.so: see interface.h.

#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "comm/gloo/interface.h"

namespace {

struct Request;

struct Group {
  std::shared_ptr<gloo::transport::Device> device;
  std::shared_ptr<gloo::transport::Context> context;
  std::mutex mutex;  ///< of what follows
  std::set<Request*> requests;
  bool aborted = false;
};

struct Request {
  Group& group;
  bool send;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
};

/// Calls `f`; an exception becomes its text in `message`, without the place in Gloo's sources.
template <class F>
int guarded(char* message, size_t message_size, F&& f) {
  try {
    f();
    return 0;
  } catch (const std::exception& e) {
    const std::string_view text = e.what();
    const size_t place = text.starts_with('[') ? text.find("] ") : text.npos;
    std::snprintf(message, message_size, "%s", e.what() + (place == text.npos ? 0 : place + 2));
  } catch (...) {
    std::snprintf(message, message_size, "unknown error");
  }
  return 1;
}

void abort_waits(Request& request) {
  if (request.send)
    request.buffer->abortWaitSend();
  else
    request.buffer->abortWaitRecv();
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int paddle_module_version() { return PADDLE_GLOO_VERSION; }

__attribute__((visibility("default"))) int paddle_gloo_open(const char* host, int rank, int size,
                                                            int64_t timeout_ms, void** group,
                                                            char* message, size_t message_size) {
  return guarded(message, message_size, [&] {
    // Gloo writes to sockets without MSG_NOSIGNAL: a lost peer must be an error, not the end of the
    // process. A handler of the application stays.
    struct sigaction current {};
    if (sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL)
      std::signal(SIGPIPE, SIG_IGN);
    auto made = std::make_unique<Group>();
    gloo::transport::tcp::attr options;
    options.hostname = host;
    made->device = gloo::transport::tcp::CreateDevice(options);
    made->context = made->device->createContext(rank, size);
    made->context->setTimeout(std::chrono::milliseconds(timeout_ms));
    for (int peer = 0; peer < size; ++peer)
      if (peer != rank) made->context->createPair(peer);
    *group = made.release();
  });
}

__attribute__((visibility("default"))) int paddle_gloo_address(void* group, int peer, char* address,
                                                               size_t capacity, size_t* size,
                                                               char* message, size_t message_size) {
  return guarded(message, message_size, [&] {
    const std::vector<char> bytes =
        static_cast<Group*>(group)->context->getPair(peer)->address().bytes();
    if (bytes.size() > capacity) throw std::length_error("the address is too long");
    std::copy(bytes.begin(), bytes.end(), address);
    *size = bytes.size();
  });
}

__attribute__((visibility("default"))) int paddle_gloo_connect(void* group, int peer,
                                                               const char* address, size_t size,
                                                               char* message, size_t message_size) {
  return guarded(message, message_size, [&] {
    static_cast<Group*>(group)->context->getPair(peer)->connect({address, address + size});
  });
}

__attribute__((visibility("default"))) void paddle_gloo_close(void* group) {
  delete static_cast<Group*>(group);
}

__attribute__((visibility("default"))) void paddle_gloo_abort(void* group) {
  auto& aborted = *static_cast<Group*>(group);
  {
    const std::lock_guard lock(aborted.mutex);
    aborted.aborted = true;
    for (Request* const request : aborted.requests) abort_waits(*request);
  }
  char ignored[64];
  for (int peer = 0; peer < aborted.context->size; ++peer)
    if (peer != aborted.context->rank)
      guarded(ignored, sizeof ignored, [&] { aborted.context->getPair(peer)->close(); });
}

__attribute__((visibility("default"))) int paddle_gloo_begin(void* group, bool send, int peer,
                                                             uint64_t slot, void* memory,
                                                             size_t bytes, void** request,
                                                             char* message, size_t message_size) {
  return guarded(message, message_size, [&] {
    auto& owner = *static_cast<Group*>(group);
    auto made = std::make_unique<Request>(
        Request{owner, send, owner.context->createUnboundBuffer(memory, bytes)});
    {
      const std::lock_guard lock(owner.mutex);
      if (owner.aborted) throw std::runtime_error("the connections are closed");
    }
    if (send)
      made->buffer->send(peer, slot);
    else
      made->buffer->recv(peer, slot);
    const std::lock_guard lock(owner.mutex);
    owner.requests.insert(made.get());
    if (owner.aborted) abort_waits(*made);
    *request = made.release();
  });
}

__attribute__((visibility("default"))) int paddle_gloo_wait(void* request, int64_t timeout_ms,
                                                            bool* arrived, char* message,
                                                            size_t message_size) {
  using Clock = std::chrono::steady_clock;
  auto& waiting = *static_cast<Request*>(request);
  const auto timeout = std::chrono::milliseconds(timeout_ms);
  const auto begun = Clock::now();
  *arrived = false;
  const int failed = guarded(message, message_size, [&] {
    *arrived = waiting.send ? waiting.buffer->waitSend(timeout) : waiting.buffer->waitRecv(timeout);
  });
  if (!failed || Clock::now() - begun < timeout) return failed;
  message[0] = 0;  // the time-out is one of its exceptions
  return 0;
}

__attribute__((visibility("default"))) void paddle_gloo_free(void* request) {
  const std::unique_ptr<Request> freed(static_cast<Request*>(request));
  const std::lock_guard lock(freed->group.mutex);
  freed->group.requests.erase(freed.get());
}
}
