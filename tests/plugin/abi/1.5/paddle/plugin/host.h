#ifndef PADDLE_PLUGIN_HOST_H
#define PADDLE_PLUGIN_HOST_H

#include "paddle/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct paddle_request {
  uint32_t struct_size;
  uint32_t operand_count;
  uint32_t result_count;
  uint32_t thread_count;
  const paddle_view* const* operands;
  const paddle_view* const* results;
  const void* operation;
} paddle_request;

typedef struct paddle_host {
  uint32_t struct_size;
  uint32_t abi_minor;
  const char* version;
  const void* (*table)(const char* name, uint32_t version);
  paddle_status (*fail)(paddle_call* call, paddle_status status, const char* text);
  paddle_status (*fail_at)(paddle_call* call, const char* file, int32_t line, int32_t column,
                           paddle_status status, const char* text);
  void (*log)(int32_t level, const char* text);
  void* (*allocate)(paddle_call* call, size_t bytes, size_t alignment);
  void (*release)(void* memory);
  void (*parallel_for)(paddle_call* call, int64_t count, int64_t grain,
                       void (*body)(void* context, int64_t begin, int64_t end), void* context);
  uint32_t (*thread_count)(void);
  int32_t (*cancelled)(paddle_call* call);
  void (*random)(uint64_t seed, uint64_t stream, uint64_t index, uint32_t out[4]);
  int32_t (*attr_index)(const paddle_request* request, const char* name);
  int64_t (*attr_int)(const paddle_request* request, int32_t index);
  double (*attr_float)(const paddle_request* request, int32_t index);
  int32_t (*attr_bool)(const paddle_request* request, int32_t index);
  const char* (*attr_text)(const paddle_request* request, int32_t index);
  size_t (*attr_ints)(const paddle_request* request, int32_t index, const int64_t** values);
  size_t (*attr_floats)(const paddle_request* request, int32_t index, const double** values);
  paddle_dtype (*attr_dtype)(const paddle_request* request, int32_t index);
  void (*write)(paddle_call* call, const char* text);
} paddle_host;

#ifdef __cplusplus
}
#endif
#endif
