#ifndef PADDLE_PLUGIN_RANKS_H
#define PADDLE_PLUGIN_RANKS_H
/* Collective operations of a device of its own are kernels (kernel.h) of the operations `comm.*`.
 * Without them the engine copies to the host and uses its transport. These functions exchange bytes
 * of the host over that transport: the ids of a library's communicator, or the data. */

#include "paddle/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#if PADDLE_PLUGIN_TARGET_MINOR >= 5
/* Since 1.5. host->table(PADDLE_RANKS, 1). For `run` of a kernel, on its thread. All ranks of a
 * group make the same calls in the same order; a group is in ascending order and has the caller.
 * PADDLE_PEER once a rank is lost: `run` returns it. */
#define PADDLE_RANKS "paddle.ranks"
typedef struct paddle_ranks_functions {
  uint32_t struct_size;
  uint32_t reserved;
  int32_t (*rank)(paddle_call* call); /* -1 without a run of several ranks */
  int32_t (*size)(paddle_call* call);
  /* Joins `bytes[i]` bytes of the i-th rank of the group in `out`; `in` has those of this one. */
  paddle_status (*gather)(paddle_call* call, const int32_t* group, uint32_t count, const void* in,
                          const size_t* bytes, void* out);
  /* Sends `sent[i]` bytes of `in`, one after another, to the i-th rank, and puts the `received[i]`
   * bytes of it into `out`. */
  paddle_status (*exchange)(paddle_call* call, const int32_t* group, uint32_t count, const void* in,
                            const size_t* sent, void* out, const size_t* received);
  /* A message to a rank, which returns at once, and from one, in the order of sending. */
  paddle_status (*send)(paddle_call* call, int32_t peer, uint32_t tag, const void* in, size_t size);
  paddle_status (*receive)(paddle_call* call, int32_t peer, uint32_t tag, void* out, size_t size);
} paddle_ranks_functions;
#endif

#ifdef __cplusplus
}
#endif
#endif
