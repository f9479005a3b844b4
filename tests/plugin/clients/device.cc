// A plug-in with a device, `shadow`, and one kernel for it.

#include <paddle/plugin/plugin.h>

#include "host_device-inl.h"

PADDLE_PLUGIN_NOTE("shadows", "1.0.0");

static const paddle_host* the_host;

struct Sum {
  int64_t count;
};

static paddle_status run(const void* state, const paddle_run* run) {
  if (!run->stream) return the_host->fail(run->call, PADDLE_INTERNAL, "a kernel without a stream");
  const float* a = static_cast<const float*>(run->operands[0]);
  const float* b = static_cast<const float*>(run->operands[1]);
  float* out = static_cast<float*>(run->results[0]);
  for (int64_t i = 0; i < static_cast<const Sum*>(state)->count; ++i) out[i] = a[i] + b[i];
  return PADDLE_OK;
}

static bool is_dense(const paddle_view* view, int64_t* count) {
  *count = 1;
  for (int32_t d = view->rank - 1; d >= 0; --d) {
    if (view->strides[d] != *count) return false;
    *count *= view->shape[d];
  }
  return true;
}

static paddle_status prepare(paddle_call*, const paddle_request* request,
                             paddle_instance* instance) {
  int64_t a = 0, b = 0, out = 0;
  if (!is_dense(request->operands[0], &a) || !is_dense(request->operands[1], &b) ||
      !is_dense(request->results[0], &out) || a != out || b != out)
    return PADDLE_DECLINED;
  instance->state = new Sum{out};
  instance->destroy = [](void* state) { delete static_cast<Sum*>(state); };
  instance->run = run;
  instance->implementation = "shadow:sum";
  return PADDLE_OK;
}

static const paddle_kernel kernel = {sizeof kernel, "add", "shadow", "float32", prepare};
static const paddle_kernel* const kernels[] = {&kernel};

PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host* host,
                                                      paddle_plugin* plugin) {
  static const paddle_device_api device = host_device("shadow");
  static const paddle_device_api* const devices[] = {&device};
  if (!PADDLE_PLUGIN_COVERS(paddle_plugin, devices, plugin->struct_size)) return PADDLE_USAGE;
  the_host = host;
  plugin->name = "shadows";
  plugin->version = "1.0.0";
  plugin->needs_minor = 1;
  plugin->kernel_count = 1;
  plugin->kernels = kernels;
  plugin->device_count = 1;
  plugin->devices = devices;
  return PADDLE_OK;
}
