#ifndef PADDLE_PLUGIN_TABLE_H
#define PADDLE_PLUGIN_TABLE_H

#include "paddle/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct paddle_table_spec {
  uint32_t struct_size;
  paddle_dtype dtype;
  paddle_dtype key_dtype;
  uint32_t state_count;
  int64_t width;
  size_t row_bytes;
  size_t record_bytes;
  const char* name;
  const void* rules;
  const paddle_options* options;
} paddle_table_spec;

enum { PADDLE_MISSING_ZERO = 0, PADDLE_MISSING_INITIAL = 1 };

#define PADDLE_RECORDS "paddle.records"
typedef struct paddle_records {
  uint32_t struct_size;
  uint32_t reserved;
  void (*initial_row)(const paddle_table_spec* spec, uint64_t key, void* row);
  paddle_status (*apply_update)(const paddle_table_spec* spec, paddle_call* call,
                                void* const* records, const void* gradients, size_t count,
                                const void* inputs);
} paddle_records;

typedef paddle_status (*paddle_record_visitor)(void* context, const uint64_t* keys,
                                               const void* const* records, size_t count);

typedef struct paddle_table {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name;
  const char* doc;
  paddle_status (*open)(paddle_call* call, const paddle_table_spec* spec, void** state);
  int64_t (*count)(void* state);
  paddle_status (*read)(void* state, paddle_call* call, const uint64_t* keys, size_t count,
                        int32_t missing, void* rows);
  paddle_status (*update)(void* state, paddle_call* call, const uint64_t* keys, size_t count,
                          const void* gradients, const void* inputs);
  paddle_status (*content)(void* state, paddle_call* call, paddle_record_visitor visitor,
                           void* context);
  paddle_status (*restore)(void* state, paddle_call* call, const uint64_t* keys,
                           const void* records, size_t count);
  void (*close)(void* state);
  paddle_status (*flush)(void* state, paddle_call* call);
  const char* keys;
} paddle_table;

#ifdef __cplusplus
}
#endif
#endif
