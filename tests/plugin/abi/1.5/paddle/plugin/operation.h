#ifndef PADDLE_PLUGIN_OPERATION_H
#define PADDLE_PLUGIN_OPERATION_H

#include "paddle/plugin/abi.h"
#include "paddle/plugin/host.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct paddle_rules {
  uint32_t struct_size;
  uint32_t reserved;
  const char* operation;
  paddle_status (*infer)(paddle_call* call, const paddle_request* request);
  paddle_status (*decompose)(paddle_call* call, const paddle_request* request);
  paddle_status (*vjp)(paddle_call* call, const paddle_request* request);
  double (*cost)(const paddle_request* request);
  paddle_status (*view)(const paddle_request* request, int64_t* strides, int64_t* offset);
} paddle_rules;

typedef uint64_t paddle_dim;

#define PADDLE_TYPES "paddle.types"
typedef struct paddle_types_functions {
  uint32_t struct_size;
  uint32_t reserved;
  paddle_dim (*operand_dim)(paddle_call* call, uint32_t operand, int32_t axis);
  paddle_dim (*attribute)(paddle_call* call, int32_t index);
  paddle_dim (*constant)(paddle_call* call, int64_t value);
  paddle_dim (*add)(paddle_call* call, paddle_dim a, paddle_dim b);
  paddle_dim (*subtract)(paddle_call* call, paddle_dim a, paddle_dim b);
  paddle_dim (*multiply)(paddle_call* call, paddle_dim a, paddle_dim b);
  paddle_dim (*floor_divide)(paddle_call* call, paddle_dim a, paddle_dim b);
  paddle_dim (*maximum)(paddle_call* call, paddle_dim a, paddle_dim b);
  int32_t (*value)(paddle_call* call, paddle_dim dim, int64_t* value);
  paddle_dim (*equal)(paddle_call* call, paddle_dim a, paddle_dim b, const char* what);
  paddle_status (*result)(paddle_call* call, paddle_dtype dtype, const paddle_dim* dims,
                          int32_t rank);
  paddle_status (*result_like)(paddle_call* call, uint32_t operand);
} paddle_types_functions;

typedef uint64_t paddle_value;

#define PADDLE_BUILD "paddle.build"
typedef struct paddle_build_functions {
  uint32_t struct_size;
  uint32_t reserved;
  paddle_value (*operand)(paddle_call* call, uint32_t operand);
  paddle_value (*result)(paddle_call* call, uint32_t result);
  paddle_value (*cotangent)(paddle_call* call, uint32_t result);
  int32_t (*needed)(paddle_call* call, uint32_t operand);
  paddle_value (*expression)(paddle_call* call, const char* text, const char* const* names,
                             const paddle_value* values, uint32_t count);
  paddle_status (*give)(paddle_call* call, paddle_value value);
  paddle_status (*gradient)(paddle_call* call, uint32_t operand, paddle_value value);
} paddle_build_functions;

typedef struct paddle_operation {
  uint32_t struct_size;
  const char* schema;
  uint32_t rule_count;
  uint32_t reserved;
  const paddle_rules* const* rules;
} paddle_operation;

#ifdef __cplusplus
}
#endif
#endif
