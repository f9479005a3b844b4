#ifndef PADDLE_PLUGIN_DATA_H
#define PADDLE_PLUGIN_DATA_H

#include "paddle/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct paddle_sample {
  uint32_t struct_size;
  uint32_t field_count;
  void* context;
  void* (*field)(void* context, uint32_t field, const int64_t* shape, int32_t rank);
} paddle_sample;

typedef struct paddle_reader {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name;
  const char* doc;
  const char* keys;
  paddle_status (*open)(paddle_call* call, const paddle_options* options, void** state);
  const char* (*describe)(void* state);
  int64_t (*size)(void* state);
  paddle_status (*read)(void* state, paddle_call* call, int64_t index, uint64_t seed,
                        uint64_t epoch, const paddle_sample* sample);
  void (*close)(void* state);
  void (*location)(void* state, int64_t index, char* text, size_t capacity);
  uint64_t (*fingerprint)(void* state);
  paddle_status (*next)(void* state, paddle_call* call, const paddle_sample* sample);
  paddle_status (*position)(void* state, paddle_call* call);
  paddle_status (*seek)(void* state, paddle_call* call, const char* position);
} paddle_reader;

#ifdef __cplusplus
}
#endif
#endif
