#ifndef PADDLE_PLUGIN_PLUGIN_H
#define PADDLE_PLUGIN_PLUGIN_H
/* What a plug-in offers. Everything that it points to lives to the end of the process. */

#include "paddle/plugin/abi.h"
#include "paddle/plugin/comm.h"
#include "paddle/plugin/data.h"
#include "paddle/plugin/device.h"
#include "paddle/plugin/graph.h"
#include "paddle/plugin/host.h"
#include "paddle/plugin/kernel.h"
#include "paddle/plugin/operation.h"
#include "paddle/plugin/pass.h"
#include "paddle/plugin/ranks.h"
#include "paddle/plugin/table.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct paddle_plugin {
  uint32_t struct_size; /* set by the host to what it knows; all other fields are zero */
  uint32_t needs_minor;
  const char* name;    /* as in the note */
  const char* version; /* as in the note */
  const char* summary;
  const char* license;

  uint32_t operation_count;
  uint32_t kernel_count;
  const paddle_operation* const* operations;
  const paddle_kernel* const* kernels;

  /* After everything was checked and registered; may be null. */
  paddle_status (*start)(const paddle_host* host, paddle_call* call);

#if PADDLE_PLUGIN_TARGET_MINOR >= 1
  /* Since 1.1. A kernel may name one of these devices as its backend. */
  uint32_t device_count;
  uint32_t reserved;
  const paddle_device_api* const* devices;
#endif
#if PADDLE_PLUGIN_TARGET_MINOR >= 2
  /* Since 1.2. */
  uint32_t transport_count;
  uint32_t table_count;
  const paddle_transport* const* transports;
  const paddle_table* const* tables;
  uint32_t pass_count;
  uint32_t reader_count;
  const paddle_pass* const* passes;
  const char* rewrite_rules;  /* as in a file of rules (docs/guide/rewrites.md); null: none */
  const char* sharding_rules; /* YAML: rules by operation, as `parallel.rules` of a config */
  const paddle_reader* const* readers;
#endif
#if PADDLE_PLUGIN_TARGET_MINOR >= 3
  /* Since 1.3. */
  uint32_t compiler_count;
  uint32_t reserved_too;
  const paddle_compiler* const* compilers;
#endif
#if PADDLE_PLUGIN_TARGET_MINOR >= 4
  /* Since 1.4. */
  const char* keys; /* of `plugins: [{path: …, options: {…}}]`, as paddle_options says; or null */
  /* In the place of `start`, with the options. May be null. */
  paddle_status (*start_with)(const paddle_host* host, const paddle_options* options,
                              paddle_call* call);
  /* Once before the program ends normally, if the plug-in was started; may be null. No other of its
   * functions is called later. */
  void (*stop)(void);
#endif
} paddle_plugin;

/* The entry. It fills in the struct and must not start threads, open devices or print.
 *
 *   PADDLE_PLUGIN_NOTE("acme", "1.0.0");
 *   PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host* host,
 *                                                         paddle_plugin* plugin) {…}
 */
typedef paddle_status (*paddle_plugin_main_function)(const paddle_host* host,
                                                     paddle_plugin* plugin);

#ifdef __cplusplus
}
#endif
#endif
