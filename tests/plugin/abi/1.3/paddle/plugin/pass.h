#ifndef PADDLE_PLUGIN_PASS_H
#define PADDLE_PLUGIN_PASS_H

#include "paddle/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  PADDLE_STAGE_IMPORT = 0,
  PADDLE_STAGE_CANONICALIZE = 1,
  PADDLE_STAGE_QUANTIZE = 2,
  PADDLE_STAGE_LAYOUT = 3,
  PADDLE_STAGE_LOWER = 4,
  PADDLE_STAGE_FUSE = 5,
  PADDLE_STAGE_SCHEDULE = 6
};

enum { PADDLE_PASS_KEEPS_BITS = 1, PADDLE_PASS_TRAINING = 2 };

typedef struct paddle_pass {
  uint32_t struct_size;
  int32_t stage;
  const char* name;
  const char* after;
  uint32_t flags;
  uint32_t reserved;
  paddle_status (*run)(paddle_call* call, const char* module);
} paddle_pass;

#ifdef __cplusplus
}
#endif
#endif
