#ifndef PADDLE_PLUGIN_PLUGIN_H
#define PADDLE_PLUGIN_PLUGIN_H

#include "paddle/plugin/abi.h"
#include "paddle/plugin/comm.h"
#include "paddle/plugin/data.h"
#include "paddle/plugin/device.h"
#include "paddle/plugin/host.h"
#include "paddle/plugin/kernel.h"
#include "paddle/plugin/operation.h"
#include "paddle/plugin/pass.h"
#include "paddle/plugin/table.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct paddle_plugin {
  uint32_t struct_size;
  uint32_t needs_minor;
  const char* name;
  const char* version;
  const char* summary;
  const char* license;
  uint32_t operation_count;
  uint32_t kernel_count;
  const paddle_operation* const* operations;
  const paddle_kernel* const* kernels;
  paddle_status (*start)(const paddle_host* host, paddle_call* call);
  uint32_t device_count;
  uint32_t reserved;
  const paddle_device_api* const* devices;
  uint32_t transport_count;
  uint32_t table_count;
  const paddle_transport* const* transports;
  const paddle_table* const* tables;
  uint32_t pass_count;
  uint32_t reader_count;
  const paddle_pass* const* passes;
  const char* rewrite_rules;
  const char* sharding_rules;
  const paddle_reader* const* readers;
} paddle_plugin;

typedef paddle_status (*paddle_plugin_main_function)(const paddle_host* host,
                                                     paddle_plugin* plugin);

#ifdef __cplusplus
}
#endif
#endif
