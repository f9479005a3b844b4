#ifndef PADDLE_PLUGIN_ABI_H
#define PADDLE_PLUGIN_ABI_H
/* The types that all interfaces of plug-ins share, and the rules by which they change.
 *
 * 1. Every struct starts with `uint32_t struct_size`, which its maker sets to sizeof. A struct only
 *    grows at its end, and the meaning of a field never changes.
 * 2. A reader accepts any size that covers the mandatory fields, which PADDLE_PLUGIN_COVERS tells,
 *    and takes fields beyond the given size as zero. It never compares sizes for equality. Arrays
 *    of structs are arrays of pointers, so that the sizes of elements may differ.
 * 3. Functions that are added later may be null. An unknown value of an enumeration is answered
 *    with PADDLE_USAGE.
 * 4. The major version is in the note of the file (PADDLE_PLUGIN_NOTE) and grows only if rule 1 is
 *    broken. A plug-in that needs a later minor version of the host states it in `needs_minor`;
 *    PADDLE_PLUGIN_TARGET_MINOR hides what later versions than it have added.
 * 5. New areas are new tables, by name: `host->table("paddle.graph", 1)`.
 *
 * The interface has not been released yet: until 1.0 it may change. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PADDLE_PLUGIN_ABI_MAJOR 1
#define PADDLE_PLUGIN_ABI_MINOR 5

/* The minor version that a plug-in is built for. Define it before the first of these headers to
 * leave out what came later: the plug-in then also loads in programs of that version. */
#ifndef PADDLE_PLUGIN_TARGET_MINOR
#define PADDLE_PLUGIN_TARGET_MINOR PADDLE_PLUGIN_ABI_MINOR
#endif
#if PADDLE_PLUGIN_TARGET_MINOR < 0 || PADDLE_PLUGIN_TARGET_MINOR > PADDLE_PLUGIN_ABI_MINOR
#error \
    "PADDLE_PLUGIN_TARGET_MINOR: these headers have the minor versions 0 to PADDLE_PLUGIN_ABI_MINOR"
#endif

/* Whether a struct of `size` bytes holds the field. */
#define PADDLE_PLUGIN_COVERS(type, field, size) \
  ((size) >= offsetof(type, field) + sizeof(((type*)0)->field))

/* Statuses and dtypes are those of paddle_c.h, and more. */
#ifndef PADDLE_STATUS_DEFINED
#define PADDLE_STATUS_DEFINED
typedef int32_t paddle_status;
enum {
  PADDLE_OK = 0,
  PADDLE_USAGE = 2,    /* a call with invalid arguments */
  PADDLE_CONFIG = 3,   /* a YAML or JSON file */
  PADDLE_DATA = 4,     /* an input */
  PADDLE_MODEL = 5,    /* weights or a model file */
  PADDLE_DEVICE = 6,   /* memory, disk or device */
  PADDLE_PEER = 7,     /* another rank of the run was lost */
  PADDLE_INTERNAL = 70 /* a bug */
};
typedef int32_t paddle_dtype;
enum {
  PADDLE_BOOL = 0, /* one byte, 0 or 1 */
  PADDLE_INT8 = 1,
  PADDLE_INT16 = 2,
  PADDLE_INT32 = 3,
  PADDLE_INT64 = 4,
  PADDLE_UINT8 = 5,
  PADDLE_UINT16 = 6,
  PADDLE_UINT32 = 7,
  PADDLE_UINT64 = 8,
  PADDLE_FLOAT16 = 9,
  PADDLE_BFLOAT16 = 10,
  PADDLE_FLOAT32 = 11,
  PADDLE_FLOAT64 = 12
};
#endif
enum {
  PADDLE_DECLINED = -1, /* "ask another one": not an error, and never an exit status */
  PADDLE_CANCELLED = -2 /* the work was cancelled, as host->cancelled told */
};
#ifndef PADDLE_COMPLEX_DEFINED
#define PADDLE_COMPLEX_DEFINED
enum { PADDLE_COMPLEX64 = 13, PADDLE_COMPLEX128 = 14 };
#endif
enum { PADDLE_FLOAT8_E4M3 = 15, PADDLE_FLOAT8_E5M2 = 16 };

enum {
  PADDLE_VIEW_ABSENT = 1,   /* an optional operand that is not there, or an unused result */
  PADDLE_VIEW_CONSTANT = 2, /* `data` never changes and may be read in `prepare` */
  PADDLE_VIEW_READ_ONLY = 4
};

/* An array, or the layout of one: `data` is null where only the layout is known. */
typedef struct paddle_view {
  uint32_t struct_size;
  paddle_dtype dtype;
  int32_t rank;
  uint32_t flags;
  int32_t device_kind; /* 0: the CPU */
  int32_t device_index;
  void* data;
  const int64_t* shape;
  const int64_t* strides; /* in elements */
} paddle_view;

/* One call from the host to the plug-in: it holds the error and carries cancellation. Valid until
 * the function returns. */
typedef struct paddle_call paddle_call;

/* The keys that a plug-in, reader, transport or table declares, with their values in the config,
 * which were checked, as text: integers and numbers in decimal, "true" or "false", paths as
 * absolute ones. Keys without a value are left out. Valid until the function that received it
 * returns. The declaration, `keys`, is YAML:
 *   path: {type: path, required: true, doc: the file}
 *   limit: {type: integer, default: 0, doc: samples; 0 for all}
 * `type` is path, text, integer, real or boolean. */
typedef struct paddle_options {
  uint32_t struct_size;
  uint32_t count;
  const char* const* names;
  const char* const* values;
} paddle_options;

/* Puts the note into the file that the host reads before it opens it. Write it once, in one source
 * file. `plugin_name` and `plugin_version` are string literals of less than 64 and 32 bytes. */
typedef struct paddle_plugin_note {
  uint32_t owner_size, size, type;
  char owner[8];
  uint32_t abi_major, abi_minor;
  char name[64];
  char version[32];
} paddle_plugin_note;
#define PADDLE_PLUGIN_NOTE(plugin_name, plugin_version)                           \
  __attribute__((used, aligned(4),                                                \
                 section(".note.paddle"))) static const struct paddle_plugin_note \
      paddle_note_of_this_plugin = {7,                                            \
                                    104,                                          \
                                    1,                                            \
                                    "paddle",                                     \
                                    PADDLE_PLUGIN_ABI_MAJOR,                      \
                                    PADDLE_PLUGIN_TARGET_MINOR,                   \
                                    plugin_name,                                  \
                                    plugin_version}

/* Stands before `paddle_plugin_main`, the only symbol that a plug-in exports. */
#ifdef __cplusplus
#define PADDLE_PLUGIN_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define PADDLE_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
}
#endif
#endif
