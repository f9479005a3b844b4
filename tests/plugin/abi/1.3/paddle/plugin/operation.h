#ifndef PADDLE_PLUGIN_OPERATION_H
#define PADDLE_PLUGIN_OPERATION_H

#include "paddle/plugin/abi.h"
#include "paddle/plugin/host.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct paddle_operation {
  uint32_t struct_size;
  const char* schema;
} paddle_operation;

#ifdef __cplusplus
}
#endif
#endif
