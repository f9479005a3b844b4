#ifndef PADDLE_PLUGIN_TABLE_H
#define PADDLE_PLUGIN_TABLE_H
/* Tables: where the rows of `sparse_embedding` are kept. A table stores a record for each key,
 * which the engine fills in and updates, so results do not depend on where rows are kept.
 *
 * A record is the row, `width` elements, followed by its states of the same size. A key is 64 bits.
 * A table is used by one thread at a time, except that `read` and `count` may be called by several
 * while no other function runs. */

#include "paddle/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table that is opened. It lives as long as the table. */
typedef struct paddle_table_spec {
  uint32_t struct_size;
  paddle_dtype dtype;     /* of rows and states: PADDLE_FLOAT32 or PADDLE_FLOAT64 */
  paddle_dtype key_dtype; /* PADDLE_INT64 or PADDLE_UINT64: the order of keys */
  uint32_t state_count;
  int64_t width;
  size_t row_bytes;
  size_t record_bytes; /* row_bytes * (1 + state_count) */
  const char* name;    /* the path of the table in the model, such as "user" */
  const void* rules;   /* for the host */

#if PADDLE_PLUGIN_TARGET_MINOR >= 4
  /* Since 1.4. The keys of the table, until `open` returns. */
  const paddle_options* options;
#endif
} paddle_table_spec;

enum {
  PADDLE_MISSING_ZERO = 0,   /* a row that is absent reads as zeros */
  PADDLE_MISSING_INITIAL = 1 /* as `initial_row` gives it */
};

/* What the engine does with records; `host->table(PADDLE_RECORDS, 1)`. */
#define PADDLE_RECORDS "paddle.records"
typedef struct paddle_records {
  uint32_t struct_size;
  uint32_t reserved;
  /* Writes the row that a key begins with. From any thread. */
  void (*initial_row)(const paddle_table_spec* spec, uint64_t key, void* row);
  /* Updates `count` records, which are aligned to 8 bytes. `gradients` has a row for each; `inputs`
   * is that of `update`. */
  paddle_status (*apply_update)(const paddle_table_spec* spec, paddle_call* call,
                                void* const* records, const void* gradients, size_t count,
                                const void* inputs);
} paddle_records;

/* Receives records in the order of `content`; the arrays are read before it returns. A status other
 * than PADDLE_OK ends the visit and is what `content` returns. */
typedef paddle_status (*paddle_record_visitor)(void* context, const uint64_t* keys,
                                               const void* const* records, size_t count);

typedef struct paddle_table {
  uint32_t struct_size;
  uint32_t reserved;
  const char*
      name; /* a word; `train.tables: PLUGIN.NAME` or `tables: {TABLE: {store: …}}` select it */
  const char* doc; /* a line; may be null */

  /* Opens an empty table. */
  paddle_status (*open)(paddle_call* call, const paddle_table_spec* spec, void** state);
  int64_t (*count)(void* state);
  /* Copies the rows of `count` keys, which may repeat, one after another. Reading adds nothing. */
  paddle_status (*read)(void* state, paddle_call* call, const uint64_t* keys, size_t count,
                        int32_t missing, void* rows);
  /* Lets `apply_update` change the records of distinct keys, all of which the table has. */
  paddle_status (*update)(void* state, paddle_call* call, const uint64_t* keys, size_t count,
                          const void* gradients, const void* inputs);
  /* Visits all records by rising keys (see key_dtype), in blocks of any size. */
  paddle_status (*content)(void* state, paddle_call* call, paddle_record_visitor visitor,
                           void* context);
  /* Adds `count` records, one after another, for the keys that the table lacks; those that it has
   * keep theirs. Keys may repeat: the first counts. */
  paddle_status (*restore)(void* state, paddle_call* call, const uint64_t* keys,
                           const void* records, size_t count);
  /* Called once; the rows are then gone. */
  void (*close)(void* state);

  /* From here on functions may be null, and the struct may end before them. */

  /* Writes what it holds in memory to where it keeps rows; before a checkpoint. */
  paddle_status (*flush)(void* state, paddle_call* call);

#if PADDLE_PLUGIN_TARGET_MINOR >= 4
  /* Since 1.4. The keys of the config besides `kind` and those of all tables, as paddle_options
   * says. */
  const char* keys;
#endif
} paddle_table;

#ifdef __cplusplus
}
#endif
#endif
