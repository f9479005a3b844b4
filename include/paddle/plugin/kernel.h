#ifndef PADDLE_PLUGIN_KERNEL_H
#define PADDLE_PLUGIN_KERNEL_H
/* Kernels of operations, in two phases. `prepare` sees the layouts once and chooses what to do;
 * `run` only computes: it must not allocate, look anything up, take a lock or wait, and it is
 * called from several threads at a time.
 *
 * Operands and results are contiguous, except that operands of an operation with the trait
 * `strided` may have any strides. A result never overlaps an operand, unless the operation declares
 * `in_place` for it. */

#include "paddle/plugin/abi.h"
#include "paddle/plugin/host.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The arguments of one run. */
typedef struct paddle_run {
  uint32_t struct_size;
  uint32_t operand_count;
  uint32_t result_count;
  uint32_t reserved;
  paddle_call* call;
  void* stream;                /* a paddle_stream, on which the work is queued; null on the CPU */
  void* scratch;               /* scratch_bytes bytes on the device, aligned to 64 */
  const void* const* operands; /* null where absent */
  void* const* results;        /* null where unused */
  const char* location;        /* "file:line:column" of the operation in the model, or "" */

#if PADDLE_PLUGIN_TARGET_MINOR >= 2
  /* Since 1.2. Memory for a result whose shape only `run` knows, as that of an operation with the
   * trait `run_time_shape`; once for each result, instead of `results`. Null after an error, which
   * is set. Null itself for other operations. */
  void* (*allocate_result)(paddle_call* call, uint32_t result, const int64_t* shape, int32_t rank);
#endif
} paddle_run;

enum {
  /* On a device: `run` waits for it, or reads something of the host, so that its work cannot be
   * recorded and queued again. */
  PADDLE_INSTANCE_NOT_CAPTURABLE = 1
};

/* What `prepare` gives. The host has set struct_size and all other fields to zero. */
typedef struct paddle_instance {
  uint32_t struct_size;
  uint32_t reserved;
  void* state; /* of the plug-in */
  paddle_status (*run)(const void* state, const paddle_run* run);
  void (*destroy)(void* state); /* called once, maybe on another thread; may be null */
  size_t scratch_bytes;
  const char* implementation; /* the name of the algorithm, for profiles; may be null */

#if PADDLE_PLUGIN_TARGET_MINOR >= 1
  /* Since 1.1. */
  uint64_t unread; /* bit i: `run` does not read operand i */
  uint32_t flags;
#endif
} paddle_instance;

typedef struct paddle_kernel {
  uint32_t struct_size;
  const char* operation; /* "PLUGIN.OPERATION", or an operation of the engine */
  const char* backend;   /* "cpu", or the name of a device of the plug-in */
  const char* dtypes;    /* of the first operand: "float32|float64"; null for any */
  /* PADDLE_OK with a filled instance; PADDLE_DECLINED if another kernel, or the body, shall compute
   * this. */
  paddle_status (*prepare)(paddle_call* call, const paddle_request* request,
                           paddle_instance* instance);
} paddle_kernel;

#ifdef __cplusplus
}
#endif
#endif
