#ifndef PADDLE_PLUGIN_HOST_H
#define PADDLE_PLUGIN_HOST_H
/* The functions of the host that a plug-in calls. The table lives to the end of the process. */

#include "paddle/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The operation that is prepared: operands and results as layouts, and attributes. Valid until the
 * function that received it returns. */
typedef struct paddle_request {
  uint32_t struct_size;
  uint32_t operand_count; /* flat: the elements of lists one by one */
  uint32_t result_count;
  uint32_t thread_count;
  const paddle_view* const* operands;
  const paddle_view* const* results;
  const void* operation; /* for the host */
} paddle_request;

typedef struct paddle_host {
  uint32_t struct_size;
  uint32_t abi_minor;
  const char* version; /* of the host, for messages */

  /* A further table of functions, or null. From any thread. */
  const void* (*table)(const char* name, uint32_t version);

  /* Sets the error of the call and returns `status`: `return host->fail(call, …);`. The text is
   * copied and should be one line. From the thread of the call. */
  paddle_status (*fail)(paddle_call* call, paddle_status status, const char* text);
  paddle_status (*fail_at)(paddle_call* call, const char* file, int32_t line, int32_t column,
                           paddle_status status, const char* text);
  /* A note (level 0) or a warning (1) to the user. From any thread. */
  void (*log)(int32_t level, const char* text);

  /* Host memory; null after an error, which is set. `alignment` is a power of two. */
  void* (*allocate)(paddle_call* call, size_t bytes, size_t alignment);
  void (*release)(void* memory);

  /* Calls body(context, begin, end) over disjoint ranges that cover 0 to count, on the threads of
   * the engine. Ranges have at least `grain` elements, and their bounds depend only on count, grain
   * and the number of threads. Not from threads of the plug-in's own. */
  void (*parallel_for)(paddle_call* call, int64_t count, int64_t grain,
                       void (*body)(void* context, int64_t begin, int64_t end), void* context);
  uint32_t (*thread_count)(void);
  /* Not 0 once the user has asked to stop. */
  int32_t (*cancelled)(paddle_call* call);
  /* Four random words of block `index` of a stream: the same on all devices and threads. */
  void (*random)(uint64_t seed, uint64_t stream, uint64_t index, uint32_t out[4]);

  /* Attributes of the operation by index, which attr_index gives by name (-1 if there is none).
   * Lists return their length and point `values` to memory of the request. An attribute of another
   * kind reads as 0, null or length 0. */
  int32_t (*attr_index)(const paddle_request* request, const char* name);
  int64_t (*attr_int)(const paddle_request* request, int32_t index);
  double (*attr_float)(const paddle_request* request, int32_t index);
  int32_t (*attr_bool)(const paddle_request* request, int32_t index);
  const char* (*attr_text)(const paddle_request* request, int32_t index);
  size_t (*attr_ints)(const paddle_request* request, int32_t index, const int64_t** values);
  size_t (*attr_floats)(const paddle_request* request, int32_t index, const double** values);
  paddle_dtype (*attr_dtype)(const paddle_request* request, int32_t index);

#if PADDLE_PLUGIN_TARGET_MINOR >= 2
  /* Since 1.2. */

  /* Appends to the text that the call gives back. From the thread of the call. */
  void (*write)(paddle_call* call, const char* text);
#endif
} paddle_host;

#ifdef __cplusplus
}
#endif
#endif
