#ifndef PADDLE_TENSOR_DEVICE_API_H
#define PADDLE_TENSOR_DEVICE_API_H
/* The functions that a kind of device provides, as a table of C functions. Built-in devices and
 * those of plug-ins fill in the same table.
 *
 * Functions that return int return 0 on success. Otherwise the result is an exit status as in
 * base/error.h, and `last_error` holds the message until the next call on the same thread.
 *
 * Work that is queued on a stream runs in the order of the stream. Streams of one device run
 * independently of each other; events order them. All functions may be called from any thread. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PADDLE_DEVICE_API_VERSION 1

typedef struct paddle_stream_s* paddle_stream;
typedef struct paddle_event_s* paddle_event;

enum paddle_copy_kind {
  PADDLE_COPY_TO_DEVICE = 0,
  PADDLE_COPY_TO_HOST = 1,
  PADDLE_COPY_ON_DEVICE = 2
};

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
  /* Host memory for queued copies. */
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
} paddle_device_api;

#ifdef __cplusplus
}
#endif

#endif
