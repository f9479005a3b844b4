#ifndef PADDLE_PLUGIN_ABI_H
#define PADDLE_PLUGIN_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PADDLE_PLUGIN_ABI_MAJOR 1
#define PADDLE_PLUGIN_ABI_MINOR 4

#ifndef PADDLE_PLUGIN_TARGET_MINOR
#define PADDLE_PLUGIN_TARGET_MINOR PADDLE_PLUGIN_ABI_MINOR
#endif
#if PADDLE_PLUGIN_TARGET_MINOR < 0 || PADDLE_PLUGIN_TARGET_MINOR > PADDLE_PLUGIN_ABI_MINOR
#error \
    "PADDLE_PLUGIN_TARGET_MINOR: these headers have the minor versions 0 to PADDLE_PLUGIN_ABI_MINOR"
#endif

#define PADDLE_PLUGIN_COVERS(type, field, size) \
  ((size) >= offsetof(type, field) + sizeof(((type*)0)->field))

#ifndef PADDLE_STATUS_DEFINED
#define PADDLE_STATUS_DEFINED
typedef int32_t paddle_status;
enum {
  PADDLE_OK = 0,
  PADDLE_USAGE = 2,
  PADDLE_CONFIG = 3,
  PADDLE_DATA = 4,
  PADDLE_MODEL = 5,
  PADDLE_DEVICE = 6,
  PADDLE_PEER = 7,
  PADDLE_INTERNAL = 70
};
typedef int32_t paddle_dtype;
enum {
  PADDLE_BOOL = 0,
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
enum { PADDLE_DECLINED = -1, PADDLE_CANCELLED = -2 };
#ifndef PADDLE_COMPLEX_DEFINED
#define PADDLE_COMPLEX_DEFINED
enum { PADDLE_COMPLEX64 = 13, PADDLE_COMPLEX128 = 14 };
#endif
enum { PADDLE_FLOAT8_E4M3 = 15, PADDLE_FLOAT8_E5M2 = 16 };

enum { PADDLE_VIEW_ABSENT = 1, PADDLE_VIEW_CONSTANT = 2, PADDLE_VIEW_READ_ONLY = 4 };

typedef struct paddle_view {
  uint32_t struct_size;
  paddle_dtype dtype;
  int32_t rank;
  uint32_t flags;
  int32_t device_kind;
  int32_t device_index;
  void* data;
  const int64_t* shape;
  const int64_t* strides;
} paddle_view;

typedef struct paddle_call paddle_call;

typedef struct paddle_options {
  uint32_t struct_size;
  uint32_t count;
  const char* const* names;
  const char* const* values;
} paddle_options;

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

#ifdef __cplusplus
#define PADDLE_PLUGIN_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define PADDLE_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
}
#endif
#endif
