#ifndef PADDLE_PLUGIN_COMM_H
#define PADDLE_PLUGIN_COMM_H

#include "paddle/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct paddle_rendezvous {
  uint32_t struct_size;
  uint32_t reserved;
  void* context;
  paddle_status (*put)(void* context, paddle_call* call, const char* key, const void* value,
                       size_t size);
  paddle_status (*get)(void* context, paddle_call* call, int32_t peer, const char* key, void* value,
                       size_t capacity, size_t* size);
} paddle_rendezvous;

typedef struct paddle_rank {
  uint32_t struct_size;
  int32_t rank;
  int32_t size;
  uint32_t reserved;
  double timeout;
  const char* const* hosts;
  const paddle_rendezvous* rendezvous;
} paddle_rank;

typedef struct paddle_message {
  uint32_t struct_size;
  int32_t peer;
  uint32_t piece_count;
  uint32_t reserved;
  void* const* pieces;
  const size_t* sizes;
} paddle_message;

typedef struct paddle_transport {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name;
  const char* doc;
  paddle_status (*open)(paddle_call* call, const paddle_rank* rank, void** state);
  paddle_status (*exchange)(void* state, paddle_call* call, uint32_t kind,
                            const paddle_message* const* sends, uint32_t send_count,
                            const paddle_message* const* receives, uint32_t receive_count);
  paddle_status (*post)(void* state, paddle_call* call, int32_t peer, uint32_t tag,
                        const void* bytes, size_t size);
  paddle_status (*take)(void* state, paddle_call* call, int32_t peer, uint32_t tag, void* bytes,
                        size_t size);
  void (*abort)(void* state, const char* reason);
  void (*close)(void* state);
  int32_t (*can_overlap)(void* state);
  void (*at_step)(void* state, int64_t step);
} paddle_transport;

#ifdef __cplusplus
}
#endif
#endif
