#ifndef PADDLE_PLUGIN_PASS_H
#define PADDLE_PLUGIN_PASS_H
/* Passes of the compiled mode: functions from the text of a module to that of one that computes the
 * same. A module has one function here; `paddle train --dump-ir FOLDER` and `paddle infer` write
 * such texts, and `paddle ir show` explains them by example.
 *
 * The host parses what a pass wrote, and checks types, the order of definitions, the function's
 * inputs and results, and that operations with effects are as before. */

#include "paddle/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The stages of compilation, in the order in which they run. */
enum {
  PADDLE_STAGE_IMPORT = 0,       /* operations that the target knows */
  PADDLE_STAGE_CANONICALIZE = 1, /* one form for what means the same */
  PADDLE_STAGE_QUANTIZE = 2,     /* integer operations */
  PADDLE_STAGE_LAYOUT = 3,       /* rewrite rules, and the order of axes in memory */
  PADDLE_STAGE_LOWER = 4,        /* parts that fuse */
  PADDLE_STAGE_FUSE = 5,         /* operations that one kernel computes */
  PADDLE_STAGE_SCHEDULE = 6      /* the order of operations */
};

enum {
  PADDLE_PASS_KEEPS_BITS = 1, /* results keep their bits, so it runs with compile.exact, too */
  PADDLE_PASS_TRAINING = 2    /* also for functions that update parameters */
};

typedef struct paddle_pass {
  uint32_t struct_size;
  int32_t stage;
  const char* name;  /* lower case; programs call the pass PLUGIN.NAME */
  const char* after; /* the pass of this stage that it follows; null: the end of the stage */
  uint32_t flags;
  uint32_t reserved;
  /* `module` is the text. The pass gives another one with host->write; if it writes nothing, the
   * function stays as it is. Constants of more than 1024 elements are references (`at 'NAME'`),
   * which the new text may use. Compilations in several threads run it at once. */
  paddle_status (*run)(paddle_call* call, const char* module);
} paddle_pass;

#ifdef __cplusplus
}
#endif
#endif
