#pragma once
// The C interface of the module that moves messages with MPI (libpaddle_mpi.so). The engine loads
// the module on first use, and the module does not depend on the engine. All calls come from one
// thread at a time. Functions that can fail return 0, or 1 with the reason in `message`, truncated.

#include <cstddef>
#include <cstdint>

/// Grows with each change of this interface.
#define PADDLE_MPI_VERSION 1

extern "C" {

/// PADDLE_MPI_VERSION of the module (base/module.h).
int paddle_module_version();

/// Initializes MPI, once in a process, and finds the place of this one among all.
int paddle_mpi_start(int* rank, int* size, char* message, size_t message_size);
/// Ends MPI; all ranks call it, and none has messages on their way.
void paddle_mpi_finish();

/// A part of a message.
struct paddle_mpi_piece {
  void* memory;
  size_t bytes;
};
/// Begins to send or to receive a message, whose memory must stay until it has arrived. Messages of
/// one channel between two ranks keep their order.
int paddle_mpi_begin(bool send, int peer, int channel, const paddle_mpi_piece* pieces, size_t count,
                     void** request, char* message, size_t message_size);
/// Whether the message of a request has arrived; the request is gone then. `truncated`: the message
/// was longer than the memory for it, whose contents are not defined.
int paddle_mpi_test(void** request, bool* arrived, bool* truncated, char* message,
                    size_t message_size);
/// Whether a message of a peer is there, and its bytes.
int paddle_mpi_probe(int peer, int channel, bool* found, uint64_t* bytes, char* message,
                     size_t message_size);
/// Gives up a request whose peer is gone.
void paddle_mpi_cancel(void** request);
}
