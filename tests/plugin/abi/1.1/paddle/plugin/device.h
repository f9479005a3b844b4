#ifndef PADDLE_PLUGIN_DEVICE_H
#define PADDLE_PLUGIN_DEVICE_H

#include "paddle/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PADDLE_DEVICE_API_VERSION 1

typedef struct paddle_stream_s* paddle_stream;
typedef struct paddle_event_s* paddle_event;

typedef struct paddle_graph_s* paddle_graph;

enum paddle_copy_kind {
  PADDLE_COPY_TO_DEVICE = 0,
  PADDLE_COPY_TO_HOST = 1,
  PADDLE_COPY_ON_DEVICE = 2
};

enum { PADDLE_DEVICE_HOST_ACCESSIBLE = 1 };

typedef struct paddle_device_properties {
  uint32_t struct_size;
  uint32_t flags;
  const char* name;
  const char* architecture;
  uint64_t memory;
  uint64_t largest_allocation;
  uint32_t alignment;
  uint32_t compute_units;
  int32_t dlpack_type;
  uint32_t reserved;
} paddle_device_properties;

typedef struct paddle_device_statistics {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t copies_to_device;
  uint64_t copies_to_host;
  uint64_t copies_on_device;
  uint64_t bytes_to_device;
  uint64_t bytes_to_host;
  uint64_t launches;
  uint64_t graph_launches;
  uint64_t waits;
  uint64_t allocations;
} paddle_device_statistics;

typedef struct paddle_device_api {
  uint32_t struct_size;
  uint32_t version;
  const char* name;
  int (*device_count)(void);
  int (*memory_info)(int device, size_t* available, size_t* total);
  int (*allocate)(int device, size_t bytes, void** memory);
  int (*release)(int device, void* memory);
  int (*allocate_host)(size_t bytes, void** memory);
  int (*release_host)(void* memory);
  int (*create_stream)(int device, paddle_stream* stream);
  int (*destroy_stream)(paddle_stream stream);
  int (*synchronize_stream)(paddle_stream stream);
  int (*create_event)(int device, paddle_event* event);
  int (*destroy_event)(paddle_event event);
  int (*record_event)(paddle_event event, paddle_stream stream);
  int (*wait_event)(paddle_stream stream, paddle_event event);
  int (*synchronize_event)(paddle_event event);
  int (*copy)(paddle_stream stream, void* to, const void* from, size_t bytes, int kind);
  int (*fill)(paddle_stream stream, void* to, int byte, size_t bytes);
  const char* (*last_error)(void);
  const char* (*last_error_location)(void);
  int (*open)(void);
  const char* (*describe)(int device);
  int (*properties)(int device, paddle_device_properties* properties);
  int (*statistics)(int device, paddle_device_statistics* statistics);
  int (*can_access_peer)(int device, int peer, int* can_access);
  int (*copy_peer)(paddle_stream stream, void* to, int to_device, const void* from, int from_device,
                   size_t bytes);
  int (*allocate_queued)(paddle_stream stream, size_t bytes, void** memory);
  int (*release_queued)(paddle_stream stream, void* memory);
  int (*trim_pool)(int device, size_t keep);
  int (*pin_host)(void* memory, size_t bytes);
  int (*unpin_host)(void* memory);
  int (*create_timing_event)(int device, paddle_event* event);
  int (*query_event)(paddle_event event, int* reached);
  int (*elapsed)(paddle_event begin, paddle_event end, double* seconds);
  int (*begin_capture)(paddle_stream stream);
  int (*end_capture)(paddle_stream stream, paddle_graph* graph);
  int (*launch_graph)(paddle_graph graph, paddle_stream stream);
  int (*destroy_graph)(paddle_graph graph);
} paddle_device_api;

#ifdef __cplusplus
}
#endif

#endif
