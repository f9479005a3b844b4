#pragma once
// The C interface of the module that moves messages with Gloo (libpaddle_gloo.so). The engine loads
// the module on first use, and the module does not depend on the engine. Functions that can fail
// return 0, or 1 with the reason in `message`, truncated. A group is used by one thread at a time,
// requests each by one thread, and `paddle_gloo_abort` by any.

#include <cstddef>
#include <cstdint>

/// Grows with each change of this interface.
#define PADDLE_GLOO_VERSION 1

extern "C" {

/// PADDLE_GLOO_VERSION of the module (base/module.h).
int paddle_module_version();

/// Makes a group of `size` ranks that listens on the interface with the address `host`.
int paddle_gloo_open(const char* host, int rank, int size, int64_t timeout_ms, void** group,
                     char* message, size_t message_size);
/// Copies the address under which rank `peer` reaches this one, and gives its size.
int paddle_gloo_address(void* group, int peer, char* address, size_t capacity, size_t* size,
                        char* message, size_t message_size);
/// Connects with a peer by the address that it has for this rank; all ranks do so in the order of
/// their peers.
int paddle_gloo_connect(void* group, int peer, const char* address, size_t size, char* message,
                        size_t message_size);
/// Closes the connections. No request of the group is left.
void paddle_gloo_close(void* group);
/// Ends all waits of the group, now and later, and closes its connections.
void paddle_gloo_abort(void* group);

/// Begins to send or to receive a message of exactly these bytes, whose memory must stay until the
/// request is freed. Messages of one slot between two ranks keep their order.
int paddle_gloo_begin(void* group, bool send, int peer, uint64_t slot, void* memory, size_t bytes,
                      void** request, char* message, size_t message_size);
/// Waits for a message. `arrived` is false after the time-out and after `paddle_gloo_abort`.
int paddle_gloo_wait(void* request, int64_t timeout_ms, bool* arrived, char* message,
                     size_t message_size);
void paddle_gloo_free(void* request);
}
