#ifndef PADDLE_PLUGIN_KERNEL_H
#define PADDLE_PLUGIN_KERNEL_H

#include "paddle/plugin/abi.h"
#include "paddle/plugin/host.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct paddle_run {
  uint32_t struct_size;
  uint32_t operand_count;
  uint32_t result_count;
  uint32_t reserved;
  paddle_call* call;
  void* stream;
  void* scratch;
  const void* const* operands;
  void* const* results;
  const char* location;
  void* (*allocate_result)(paddle_call* call, uint32_t result, const int64_t* shape, int32_t rank);
} paddle_run;

enum { PADDLE_INSTANCE_NOT_CAPTURABLE = 1 };

typedef struct paddle_instance {
  uint32_t struct_size;
  uint32_t reserved;
  void* state;
  paddle_status (*run)(const void* state, const paddle_run* run);
  void (*destroy)(void* state);
  size_t scratch_bytes;
  const char* implementation;
  uint64_t unread;
  uint32_t flags;
} paddle_instance;

typedef struct paddle_kernel {
  uint32_t struct_size;
  const char* operation;
  const char* backend;
  const char* dtypes;
  paddle_status (*prepare)(paddle_call* call, const paddle_request* request,
                           paddle_instance* instance);
} paddle_kernel;

#ifdef __cplusplus
}
#endif
#endif
