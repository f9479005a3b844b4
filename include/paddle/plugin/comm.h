#ifndef PADDLE_PLUGIN_COMM_H
#define PADDLE_PLUGIN_COMM_H
/* Transports: what moves messages between the ranks of a run. Collectives are computed by the
 * engine above any transport, so results do not depend on it.
 *
 * A rank opens one transport. `exchange` and `take` are called by one thread at a time; `post`,
 * `abort` and the optional functions may be called from others meanwhile. Functions that return a
 * status give PADDLE_PEER once a rank is gone, `abort` was called on any rank, or a wait took
 * longer than the rank's `timeout`. */

#include "paddle/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the ranks find each other: small values by key. Valid until `open` returns. */
typedef struct paddle_rendezvous {
  uint32_t struct_size;
  uint32_t reserved;
  void* context; /* for the host */
  /* Publishes a value of this rank, of at most 1024 bytes, once for each key, which is a
   * word of at most 64 letters, digits, `_`, `.` and `-`. A rank publishes at most 32 KiB. */
  paddle_status (*put)(void* context, paddle_call* call, const char* key, const void* value,
                       size_t size);
  /* Waits for the value that rank `peer` publishes, and copies it; `size` is set to its size, which
   * must not exceed `capacity`. PADDLE_PEER after the time in which ranks must have joined. */
  paddle_status (*get)(void* context, paddle_call* call, int32_t peer, const char* key, void* value,
                       size_t capacity, size_t* size);
} paddle_rendezvous;

/* The rank that opens a transport. Valid until `open` returns. */
typedef struct paddle_rank {
  uint32_t struct_size;
  int32_t rank; /* from 0 */
  int32_t size; /* ranks of the run */
  uint32_t reserved;
  double timeout;           /* seconds: the longest wait for another rank in a call */
  const char* const* hosts; /* `size` addresses: equal for ranks of one machine */
  const paddle_rendezvous* rendezvous;

#if PADDLE_PLUGIN_TARGET_MINOR >= 4
  /* Since 1.4. The keys of the transport in `parallel.transport`. */
  const paddle_options* options;
#endif
} paddle_rank;

/* A message in pieces, which follow each other. The pieces of both ends may be divided differently;
 * their sum is the same. The bytes of a message that is sent are only read. */
typedef struct paddle_message {
  uint32_t struct_size;
  int32_t peer;
  uint32_t piece_count;
  uint32_t reserved;
  void* const* pieces;
  const size_t* sizes; /* of the pieces, in bytes; may be 0 */
} paddle_message;

typedef struct paddle_transport {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name; /* a word; `parallel.transport: PLUGIN.NAME` selects it */
  const char* doc;  /* a line; may be null */

  /* Returns when all ranks are connected. */
  paddle_status (*open)(paddle_call* call, const paddle_rank* rank, void** state);
  /* Sends and receives these messages, at most one in each direction for each peer, and returns
   * when all have arrived and the memory of those sent may be reused. `kind` is a number that both
   * ends state: PADDLE_INTERNAL if that of a message that arrives, or its size, is another one. */
  paddle_status (*exchange)(void* state, paddle_call* call, uint32_t kind,
                            const paddle_message* const* sends, uint32_t send_count,
                            const paddle_message* const* receives, uint32_t receive_count);
  /* Sends a copy of the bytes to a peer and returns without waiting for it. */
  paddle_status (*post)(void* state, paddle_call* call, int32_t peer, uint32_t tag,
                        const void* bytes, size_t size);
  /* Waits for a posted message of a peer. Messages of different tags may be taken in any order, and
   * between exchanges; those of one tag come in the order of posting. PADDLE_INTERNAL for another
   * size. */
  paddle_status (*take)(void* state, paddle_call* call, int32_t peer, uint32_t tag, void* bytes,
                        size_t size);
  /* Ends the calls that wait, here and on the other ranks, with PADDLE_PEER; `reason` is a line for
   * their messages. */
  void (*abort)(void* state, const char* reason);
  /* Called once. Messages that were posted still arrive, unless the transport was aborted. */
  void (*close)(void* state);

  /* From here on functions may be null, and the struct may end before them. */

  /* Whether exchanges take little of the time of the cores that compute. Default:
   * where ranks are on several machines, or have cores to spare. */
  int32_t (*can_overlap)(void* state);
  /* Tells the update that this rank computes, from 1. */
  void (*at_step)(void* state, int64_t step);

#if PADDLE_PLUGIN_TARGET_MINOR >= 4
  /* Since 1.4. The keys of the config besides `kind`, as paddle_options says. */
  const char* keys;
#endif
} paddle_transport;

#ifdef __cplusplus
}
#endif
#endif
