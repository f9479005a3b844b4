#ifndef PADDLE_PLUGIN_DEVICE_H
#define PADDLE_PLUGIN_DEVICE_H
/* The functions that a kind of device provides, as a table of C functions. Built-in devices and
 * those of plug-ins fill in the same table.
 *
 * Functions that return int return 0 on success. Otherwise the result is a status of abi.h, and
 * `last_error` holds the message until the next call on the same thread.
 *
 * Work that is queued on a stream runs in the order of the stream. Streams of one device run
 * independently of each other; events order them. All functions may be called from any thread.
 *
 * `struct_size` follows the rules of abi.h: the host copies what the table has and takes the
 * functions after it as null. */

#include "paddle/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PADDLE_DEVICE_API_VERSION 1

typedef struct paddle_stream_s* paddle_stream;
typedef struct paddle_event_s* paddle_event;
/* Work that was recorded on a stream and can be queued again as a whole. */
typedef struct paddle_graph_s* paddle_graph;

enum paddle_copy_kind {
  PADDLE_COPY_TO_DEVICE = 0,
  PADDLE_COPY_TO_HOST = 1,
  PADDLE_COPY_ON_DEVICE = 2
};

enum {
  PADDLE_DEVICE_HOST_ACCESSIBLE = 1, /* the host may read and write memory of the device */
  /* Since 1.5: the same calls give the same bits each time. */
  PADDLE_DEVICE_REPEATABLE = 2
};

/* Facts about a device. The caller sets struct_size and zeros; the device fills in the fields that
 * the size covers. Zero and null mean unknown. */
typedef struct paddle_device_properties {
  uint32_t struct_size;
  uint32_t flags;
  const char* name;         /* such as that of the product; to the end of the process */
  const char* architecture; /* that kernels are compiled for, such as "sm_90a" */
  uint64_t memory;          /* bytes in all */
  uint64_t largest_allocation;
  uint32_t alignment;     /* of memory that `allocate` returns, in bytes */
  uint32_t compute_units; /* multiprocessors, cores */
  int32_t dlpack_type;    /* the DLDeviceType of its memory in DLPack's structs; 0: none */
  uint32_t reserved;
} paddle_device_properties;

/* Counts since the process began, of one device. Filled in as properties are. */
typedef struct paddle_device_statistics {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t copies_to_device; /* queued copies from the host */
  uint64_t copies_to_host;
  uint64_t copies_on_device;
  uint64_t bytes_to_device;
  uint64_t bytes_to_host;
  uint64_t launches;       /* kernels that were queued one by one */
  uint64_t graph_launches; /* graphs that were queued */
  uint64_t waits;          /* calls in which the host waited */
  uint64_t allocations;    /* calls of `allocate` and `allocate_queued` */
} paddle_device_statistics;

typedef struct paddle_device_api {
  uint32_t struct_size; /* sizeof(paddle_device_api); the table grows at its end */
  uint32_t version;     /* PADDLE_DEVICE_API_VERSION */
  const char* name;     /* as in --device, such as "mirror" */

  int (*device_count)(void);
  /* Bytes that are free and that there are in all. */
  int (*memory_info)(int device, size_t* available, size_t* total);

  /* Memory of the device, aligned to 256 bytes. `release` takes effect once the work that is
   * queued now is done, so callers need not wait. */
  int (*allocate)(int device, size_t bytes, void** memory);
  int (*release)(int device, void* memory);
  /* Host memory for queued copies. Both may be null: the host's own memory is used then. */
  int (*allocate_host)(size_t bytes, void** memory);
  int (*release_host)(void* memory);

  int (*create_stream)(int device, paddle_stream* stream);
  int (*destroy_stream)(paddle_stream stream);
  /* Waits for all work of the stream. Reports the first error of its kernels since the last call,
   * with `last_error_location`. */
  int (*synchronize_stream)(paddle_stream stream);

  int (*create_event)(int device, paddle_event* event);
  int (*destroy_event)(paddle_event event);
  int (*record_event)(paddle_event event, paddle_stream stream);
  /* Work that is queued on the stream from now on waits for the event's last record. */
  int (*wait_event)(paddle_stream stream, paddle_event event);
  int (*synchronize_event)(paddle_event event);

  /* Queued copies. Host memory must stay as it is until the copy is done. */
  int (*copy)(paddle_stream stream, void* to, const void* from, size_t bytes, int kind);
  int (*fill)(paddle_stream stream, void* to, int byte, size_t bytes);

  const char* (*last_error)(void);
  /* "file:line:column" of the operation whose kernel failed, or "". */
  const char* (*last_error_location)(void);

  /* From here on functions may be null, and the table may end before them. */

  /* Loads what the devices of this kind need, such as a driver. It is called when a program asks
   * for such a device, before the other functions. */
  int (*open)(void);
  /* A line about the device: its name, its capabilities and the version of its driver. */
  const char* (*describe)(int device);

#if PADDLE_PLUGIN_TARGET_MINOR >= 1
  /* Since 1.1. */
  int (*properties)(int device, paddle_device_properties* properties);
  int (*statistics)(int device, paddle_device_statistics* statistics);

  /* Copies between two devices of this kind, queued on a stream of either. `can_access_peer` tells
   * whether they need no detour over the host. */
  int (*can_access_peer)(int device, int peer, int* can_access);
  int (*copy_peer)(paddle_stream stream, void* to, int to_device, const void* from, int from_device,
                   size_t bytes);

  /* Memory from a pool, in the order of a stream: work that is queued on it after the first call
   * and before the second may use the memory. `trim_pool` gives unused memory back to the system,
   * but for `keep` bytes. */
  int (*allocate_queued)(paddle_stream stream, size_t bytes, void** memory);
  int (*release_queued)(paddle_stream stream, void* memory);
  int (*trim_pool)(int device, size_t keep);

  /* Makes memory of the caller as fast for queued copies as that of `allocate_host`. */
  int (*pin_host)(void* memory, size_t bytes);
  int (*unpin_host)(void* memory);

  /* Events with a clock. `query_event` sets `reached` without waiting; `elapsed` gives the seconds
   * between the last records of two reached events, and PADDLE_USAGE for others. */
  int (*create_timing_event)(int device, paddle_event* event);
  int (*query_event)(paddle_event event, int* reached);
  int (*elapsed)(paddle_event begin, paddle_event end, double* seconds);

  /* Between `begin_capture` and `end_capture` kernels, copies and fills on the stream are recorded
   * and not run; memory of `allocate_queued` is that of the graph and stays as long as it. These
   * calls are errors (PADDLE_USAGE) with the location of the operation that was recorded last, and
   * spoil the capture, so that `end_capture` reports the same error:
   *   - from any thread: to wait for the stream, to record or wait for an event on it;
   *   - from the capturing thread: `allocate`, to wait for any stream or event, and
   *     `begin_capture`.
   * Only the thread that began a capture ends it. All four are there, or none. */
  int (*begin_capture)(paddle_stream stream);
  int (*end_capture)(paddle_stream stream, paddle_graph* graph);
  /* Queues the recorded work on a stream of the same device. A kernel's error does not keep the
   * others from running. */
  int (*launch_graph)(paddle_graph graph, paddle_stream stream);
  /* Takes effect once the launches that are queued now are done. */
  int (*destroy_graph)(paddle_graph graph);
#endif
} paddle_device_api;

#ifdef __cplusplus
}
#endif

#endif
