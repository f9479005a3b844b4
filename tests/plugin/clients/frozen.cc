// A plug-in that is built with the headers of version 1.0.

#include <paddle/plugin/plugin.h>

static_assert(PADDLE_PLUGIN_ABI_MINOR == 0, "the headers of version 1.0");

PADDLE_PLUGIN_NOTE("frozen", "1.0.0");

static const paddle_host* the_host;

static paddle_status run(const void*, const paddle_run* run) {
  const float* x = static_cast<const float*>(run->operands[0]);
  float* out = static_cast<float*>(run->results[0]);
  for (int i = 0; i < 4; ++i) out[i] = 2 * x[i];
  return PADDLE_OK;
}

static paddle_status prepare(paddle_call*, const paddle_request* request,
                             paddle_instance* instance) {
  const paddle_view* x = request->operands[0];
  if (x->rank != 1 || x->shape[0] != 4) return PADDLE_DECLINED;
  instance->run = run;
  instance->implementation = "frozen:four";
  return PADDLE_OK;
}

static const paddle_operation operation = {
    sizeof operation,
    "twice: {signature: '(x:T) -> out', doc: twice x., body: x + x}",
};
static const paddle_operation* const operations[] = {&operation};
static const paddle_kernel kernel = {sizeof kernel, "frozen.twice", "cpu", "float32", prepare};
static const paddle_kernel* const kernels[] = {&kernel};

PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host* host,
                                                      paddle_plugin* plugin) {
  the_host = host;
  plugin->name = "frozen";
  plugin->version = "1.0.0";
  plugin->operation_count = 1;
  plugin->operations = operations;
  plugin->kernel_count = 1;
  plugin->kernels = kernels;
  return host->struct_size >= sizeof *host ? PADDLE_OK : PADDLE_INTERNAL;
}
