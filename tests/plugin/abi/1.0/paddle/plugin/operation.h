#ifndef PADDLE_PLUGIN_OPERATION_H
#define PADDLE_PLUGIN_OPERATION_H
/* Operations: entries of the operation schema as text, as in the file NAME.plugin.yaml. */

#include "paddle/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct paddle_operation {
  uint32_t struct_size;
  const char* schema; /* YAML: one or more entries by name, such as "twice: {signature: …}" */
} paddle_operation;

#ifdef __cplusplus
}
#endif
#endif
