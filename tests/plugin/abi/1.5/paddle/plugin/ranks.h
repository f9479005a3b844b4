#ifndef PADDLE_PLUGIN_RANKS_H
#define PADDLE_PLUGIN_RANKS_H

#include "paddle/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PADDLE_RANKS "paddle.ranks"
typedef struct paddle_ranks_functions {
  uint32_t struct_size;
  uint32_t reserved;
  int32_t (*rank)(paddle_call* call);
  int32_t (*size)(paddle_call* call);
  paddle_status (*gather)(paddle_call* call, const int32_t* group, uint32_t count, const void* in,
                          const size_t* bytes, void* out);
  paddle_status (*exchange)(paddle_call* call, const int32_t* group, uint32_t count, const void* in,
                            const size_t* sent, void* out, const size_t* received);
  paddle_status (*send)(paddle_call* call, int32_t peer, uint32_t tag, const void* in, size_t size);
  paddle_status (*receive)(paddle_call* call, int32_t peer, uint32_t tag, void* out, size_t size);
} paddle_ranks_functions;

#ifdef __cplusplus
}
#endif
#endif
