#ifndef PADDLE_PLUGIN_OPERATION_H
#define PADDLE_PLUGIN_OPERATION_H
/* Operations: entries of the operation schema as text, as in the file NAME.plugin.yaml. Rules that
 * the text does not have may be functions in C. */

#include "paddle/plugin/abi.h"
#include "paddle/plugin/host.h"

#ifdef __cplusplus
extern "C" {
#endif

#if PADDLE_PLUGIN_TARGET_MINOR >= 5
/* Since 1.5. Rules of one operation; at least one is set, and the entry has no text for it
 * (`infer`, `body`, `vjp`). They are called from several threads at once. In the request unknown
 * sizes are -1, as are the strides that depend on them, and attributes that depend on them read as
 * 0. */
typedef struct paddle_rules {
  uint32_t struct_size;
  uint32_t reserved;
  const char* operation; /* its name in the schema */

  /* The types of the results, by paddle_types_functions. Without it they follow from the body. */
  paddle_status (*infer)(paddle_call* call, const paddle_request* request);
  /* The body, by paddle_build_functions: gives each result once. It is called for numbers, types
   * and traces alike, and gives the same each time. */
  paddle_status (*decompose)(paddle_call* call, const paddle_request* request);
  /* The gradients of the operands that need one, by paddle_build_functions. */
  paddle_status (*vjp)(paddle_call* call, const paddle_request* request);
  /* The floating-point operations of a call, of which all sizes are known. */
  double (*cost)(const paddle_request* request);
  /* For operations whose result can be a view of their first operand: its strides, as many as the
   * result has dims, and the place of its first element, in elements from the operand's first one.
   * The view must be inside the operand. PADDLE_DECLINED if the result is a copy, which a kernel or
   * the body makes. */
  paddle_status (*view)(const paddle_request* request, int64_t* strides, int64_t* offset);
} paddle_rules;

/* A size in a type, which may be known only later. Valid until the rule returns; 0 after an error,
 * which is set: later calls then do nothing, and the rule may return what they give. */
typedef uint64_t paddle_dim;

/* For `infer`: host->table(PADDLE_TYPES, 1). Operands are numbered as in the request. */
#define PADDLE_TYPES "paddle.types"
typedef struct paddle_types_functions {
  uint32_t struct_size;
  uint32_t reserved;
  paddle_dim (*operand_dim)(paddle_call* call, uint32_t operand, int32_t axis); /* -1: the last */
  paddle_dim (*attribute)(paddle_call* call,
                          int32_t index); /* an integer, as of host->attr_index */
  paddle_dim (*constant)(paddle_call* call, int64_t value);
  paddle_dim (*add)(paddle_call* call, paddle_dim a, paddle_dim b);
  paddle_dim (*subtract)(paddle_call* call, paddle_dim a, paddle_dim b);
  paddle_dim (*multiply)(paddle_call* call, paddle_dim a, paddle_dim b);
  paddle_dim (*floor_divide)(paddle_call* call, paddle_dim a, paddle_dim b);
  paddle_dim (*maximum)(paddle_call* call, paddle_dim a, paddle_dim b);
  /* 1, with the value, if it is known. */
  int32_t (*value)(paddle_call* call, paddle_dim dim, int64_t* value);
  /* An error if the two differ; one that is reported later if that is known only then. `what` is a
   * part of the message, such as "the widths". Gives the one of which more is known. */
  paddle_dim (*equal)(paddle_call* call, paddle_dim a, paddle_dim b, const char* what);
  /* The type of the next result. */
  paddle_status (*result)(paddle_call* call, paddle_dtype dtype, const paddle_dim* dims,
                          int32_t rank);
  paddle_status (*result_like)(paddle_call* call, uint32_t operand);
} paddle_types_functions;

/* A tensor while a rule runs: a number, or a value of a trace. 0: none. */
typedef uint64_t paddle_value;

/* For `decompose` and `vjp`: host->table(PADDLE_BUILD, 1). */
#define PADDLE_BUILD "paddle.build"
typedef struct paddle_build_functions {
  uint32_t struct_size;
  uint32_t reserved;
  paddle_value (*operand)(paddle_call* call, uint32_t operand); /* 0 for an absent one */
  /* In `vjp`: a result, and the gradient with respect to it. */
  paddle_value (*result)(paddle_call* call, uint32_t result);
  paddle_value (*cotangent)(paddle_call* call, uint32_t result);
  /* In `vjp`: whether the gradient with respect to an operand is wanted. */
  int32_t (*needed)(paddle_call* call, uint32_t operand);
  /* The value of an expression of the model language, with these names, and those of the operands
   * and attributes: "x * rsqrt(y + epsilon)". 0 after an error, which is set. */
  paddle_value (*expression)(paddle_call* call, const char* text, const char* const* names,
                             const paddle_value* values, uint32_t count);
  /* In `decompose`: the next result. */
  paddle_status (*give)(paddle_call* call, paddle_value value);
  /* In `vjp`: the gradient with respect to an operand, of its shape. */
  paddle_status (*gradient)(paddle_call* call, uint32_t operand, paddle_value value);
} paddle_build_functions;
#endif

typedef struct paddle_operation {
  uint32_t struct_size;
  const char* schema; /* YAML: one or more entries by name, such as "twice: {signature: …}" */
#if PADDLE_PLUGIN_TARGET_MINOR >= 5
  /* Since 1.5. */
  uint32_t rule_count;
  uint32_t reserved;
  const paddle_rules* const* rules;
#endif
} paddle_operation;

#ifdef __cplusplus
}
#endif
#endif
