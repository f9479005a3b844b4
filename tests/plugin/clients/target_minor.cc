// A plug-in that is built with today's headers for version 1.0: its structs are those of that
// version, and it gives a host of that version no more than it knows.

#define PADDLE_PLUGIN_TARGET_MINOR 0
#include <paddle/plugin/plugin.hpp>

static void twice(const paddle::plugin::Run& run) {
  const float* const x = run.in<float>(0);
  float* const out = run.out<float>(0);
  for (int64_t i = 0; i < run.count(0); ++i) out[i] = 2 * x[i];
}

PADDLE_PLUGIN(target_minor, "1.0.0", plugin) {
  plugin.operations("twice: {signature: '(x:T) -> out', doc: twice x., body: x + x}");
  plugin.kernel("target_minor.twice", "cpu", "float32", twice);
}

/// The sizes of its structs; for the test.
extern "C" __attribute__((visibility("default"))) const size_t* target_sizes() {
  static const size_t sizes[] = {sizeof(paddle_view),     sizeof(paddle_request),
                                 sizeof(paddle_host),     sizeof(paddle_run),
                                 sizeof(paddle_instance), sizeof(paddle_kernel),
                                 sizeof(paddle_plugin),   sizeof(paddle_device_api)};
  return sizes;
}
