#ifndef PADDLE_PLUGIN_GRAPH_H
#define PADDLE_PLUGIN_GRAPH_H

#include "paddle/plugin/abi.h"
#include "paddle/plugin/host.h"
#include "paddle/plugin/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct paddle_node {
  uint32_t struct_size;
  uint32_t operand_count;
  uint32_t result_count;
  uint32_t reserved;
  const char* operation;
  const int32_t* operands;
  const int32_t* results;
  const paddle_request* request;
  const char* location;
} paddle_node;

typedef struct paddle_region {
  uint32_t struct_size;
  uint32_t operand_count;
  uint32_t result_count;
  uint32_t value_count;
  uint32_t node_count;
  uint32_t thread_count;
  const paddle_view* const* values;
  const int32_t* results;
  const paddle_node* const* nodes;
  const char* text;
} paddle_region;

enum { PADDLE_COMPILER_KEEPS_BITS = 1, PADDLE_COMPILER_TRAINING = 2 };

typedef paddle_status (*paddle_write)(void* context, const void* bytes, size_t size);

typedef struct paddle_compiler {
  uint32_t struct_size;
  uint32_t flags;
  const char* name;
  const char* doc;
  const char* device;
  paddle_status (*supports)(paddle_call* call, const char* operation,
                            const paddle_request* request);
  paddle_status (*compile)(paddle_call* call, const paddle_region* region,
                           paddle_instance* instance);
  uint32_t least_operations;
  uint32_t reserved;
  double (*cost)(paddle_call* call, const char* operation, const paddle_request* request);
  paddle_status (*serialize)(paddle_call* call, const void* state, paddle_write write,
                             void* context);
  paddle_status (*deserialize)(paddle_call* call, const paddle_region* region, const void* bytes,
                               size_t size, paddle_instance* instance);
} paddle_compiler;

#ifdef __cplusplus
}
#endif
#endif
