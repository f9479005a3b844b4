#pragma once
// The C interface of the module that makes streams of bytes with gRPC (libpaddle_grpc.so). The
// engine loads the module on first use, and the module does not depend on the engine. Functions
// that can fail return 0, or 1 with the reason in `message`, truncated. A listener is used by one
// thread, and so is a caller.
//
// Each stream is one call of /paddle.Streams/Bytes with messages of raw bytes.

#include <cstddef>
#include <cstdint>

/// Grows with each change of this interface.
#define PADDLE_GRPC_VERSION 1

extern "C" {

/// PADDLE_GRPC_VERSION of the module (base/module.h).
int paddle_module_version();

/// TLS 1.3 with certificates of both ends, as PEM.
struct PaddleGrpcTls {
  const char* authority;    ///< that has signed the certificates of the other ends
  const char* certificate;  ///< of this end, and its private key
  const char* key;
  const char* name;  ///< of callers: the name that the certificate of the listener must have
};

enum PaddleGrpcKind { kPaddleGrpcConnected, kPaddleGrpcReceived, kPaddleGrpcClosed };

struct PaddleGrpcEvent {
  PaddleGrpcKind kind;
  int peer;
  const void* bytes;  ///< of kPaddleGrpcReceived; valid until the next wait
  size_t size;
};

/// Listens at an address "HOST:PORT", with port 0 at a free one, without encryption if `tls` is
/// null. From a peer that leaves more than `max_unsent` bytes untaken, nothing more is read.
int paddle_grpc_listen(const char* address, const PaddleGrpcTls* tls, size_t max_unsent,
                       void** listener, int* port, char* message, size_t message_size);
/// Waits up to the timeout; the events that there are, until the next wait.
size_t paddle_grpc_wait(void* listener, int64_t timeout_ms, const PaddleGrpcEvent** events);
/// Sends bytes, which `release` frees later, called with `owner`.
void paddle_grpc_send(void* listener, int peer, const void* bytes, size_t size,
                      void (*release)(void*), void* owner);
/// Ends a stream, now or after what was sent.
void paddle_grpc_end(void* listener, int peer, bool now);
void paddle_grpc_free_listener(void* listener);

void* paddle_grpc_make_caller();
/// Connects to addresses "HOST:PORT,HOST:PORT" of one listener, in place of the stream of this peer
/// before.
int paddle_grpc_connect(void* caller, int peer, const char* addresses, const PaddleGrpcTls* tls,
                        int64_t timeout_ms, char* message, size_t message_size);
/// As of a listener. Nothing more is read while 64 MiB wait to be taken.
size_t paddle_grpc_wait_call(void* caller, int64_t timeout_ms, const PaddleGrpcEvent** events);
/// Sends bytes; 1 if the stream has ended, or the peer takes nothing for so long.
int paddle_grpc_send_call(void* caller, int peer, const void* bytes, size_t size,
                          int64_t timeout_ms);
/// Why a stream has ended; an empty text if that is not known.
void paddle_grpc_cause(void* caller, int peer, char* message, size_t message_size);
void paddle_grpc_end_call(void* caller, int peer);
void paddle_grpc_free_caller(void* caller);
}
