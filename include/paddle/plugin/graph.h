#ifndef PADDLE_PLUGIN_GRAPH_H
#define PADDLE_PLUGIN_GRAPH_H
/* Compilers of graphs. In compiled functions the engine asks a compiler which operations it
 * computes, forms regions of those that belong together, and hands each region over to be compiled
 * to one kernel (kernel.h).
 *
 * A region has no effects, no random operations, no control flow and no sizes that are known only
 * at run time. Regions that a compiler declines, or fails to compile, are computed by the engine.
 */

#include "paddle/plugin/abi.h"
#include "paddle/plugin/host.h"
#include "paddle/plugin/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An operation of a region. Values have numbers: see paddle_region. */
typedef struct paddle_node {
  uint32_t struct_size;
  uint32_t operand_count; /* flat: the elements of lists one by one */
  uint32_t result_count;
  uint32_t reserved;
  const char* operation;         /* "add", or "PLUGIN.OPERATION" */
  const int32_t* operands;       /* numbers of values; -1 where absent */
  const int32_t* results;        /* numbers of values */
  const paddle_request* request; /* their layouts, and the attributes: host->attr_int, … */
  const char* location;          /* "file:line:column" in the model, or "" */
} paddle_node;

/* What is compiled; valid until `compile` returns. All sizes are known, and all values are
 * contiguous. */
typedef struct paddle_region {
  uint32_t struct_size;
  uint32_t operand_count; /* of the region: the values 0, 1, … */
  uint32_t result_count;
  uint32_t value_count;
  uint32_t node_count;
  uint32_t thread_count;
  /* Layouts by number: the operands of the region, then the results of its operations. Operands
   * that never change have `data`, which need not be aligned. */
  const paddle_view* const* values;
  const int32_t* results;          /* the numbers of the values that the region gives */
  const paddle_node* const* nodes; /* in an order in which they can be computed */
  /* The same as the text of a module, as passes get it (pass.h). Its function has the operands as
   * inputs. */
  const char* text;
} paddle_region;

enum {
  PADDLE_COMPILER_KEEPS_BITS = 1, /* results have the bits of the engine's own kernels, so it runs
                                     with compile.exact, too */
  PADDLE_COMPILER_TRAINING = 2    /* also for functions that update parameters */
};

/* Takes a piece of a serialized region. */
typedef paddle_status (*paddle_write)(void* context, const void* bytes, size_t size);

typedef struct paddle_compiler {
  uint32_t struct_size;
  uint32_t flags;
  const char* name;   /* a word; programs call the compiler PLUGIN.NAME */
  const char* doc;    /* a line; may be null */
  const char* device; /* "cpu", or the name of a device of the plug-in */

  /* PADDLE_OK if the compiler computes such an operation, PADDLE_DECLINED if not. Sizes that are
   * not known yet are -1, as are the strides that depend on them, and attributes that depend on
   * them read as 0. From several threads at once. */
  paddle_status (*supports)(paddle_call* call, const char* operation,
                            const paddle_request* request);
  /* Compiles a region for its sizes: PADDLE_OK with a filled instance, whose `run` gets the
   * operands and results of the region; or PADDLE_DECLINED. From several threads at once. */
  paddle_status (*compile)(paddle_call* call, const paddle_region* region,
                           paddle_instance* instance);

  /* From here on fields may be zero, and the struct may end before them. */

  /* Regions of fewer operations are left to the engine. */
  uint32_t least_operations;

#if PADDLE_PLUGIN_TARGET_MINOR >= 4
  /* Since 1.4. */
  uint32_t reserved;
  /* An estimate of the seconds that such an operation takes in a region. Of several compilers that
   * support an operation, the one with the least gets it; without this the one that was loaded
   * first. From several threads at once. */
  double (*cost)(paddle_call* call, const char* operation, const paddle_request* request);
  /* Gives the compiled form of a region, `state` of the instance, by `write` in one or more pieces;
   * PADDLE_DECLINED for a region that has none. The engine keeps it in files. */
  paddle_status (*serialize)(paddle_call* call, const void* state, paddle_write write,
                             void* context);
  /* As `compile`, from a form that `serialize` of this file has given for the same region, with the
   * same constants, number of threads and processor. PADDLE_DECLINED: `compile` is called. Both are
   * set, or none. */
  paddle_status (*deserialize)(paddle_call* call, const paddle_region* region, const void* bytes,
                               size_t size, paddle_instance* instance);
#endif
} paddle_compiler;

#ifdef __cplusplus
}
#endif
#endif
