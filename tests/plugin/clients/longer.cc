// A plug-in that is built with the headers of a later version: its structs have more fields than
// the host knows.

#include <paddle/plugin/plugin.h>

PADDLE_PLUGIN_NOTE("longer", "1.0.0");

/// A struct of today with fields that come later.
template <class Struct>
struct Longer {
  Struct known;
  void (*later)();
  const char* text;
};

static void never() { __builtin_trap(); }

static paddle_status run(const void*, const paddle_run* run) {
  const float* x = static_cast<const float*>(run->operands[0]);
  static_cast<float*>(run->results[0])[0] = 3 * x[0];
  return PADDLE_OK;
}

static paddle_status prepare(paddle_call*, const paddle_request* request,
                             paddle_instance* instance) {
  if (request->operands[0]->rank != 0) return PADDLE_DECLINED;
  // Fields that the host does not know are left out.
  if (instance->struct_size >= sizeof(Longer<paddle_instance>))
    reinterpret_cast<Longer<paddle_instance>*>(instance)->later = never;
  instance->run = run;
  instance->implementation = "longer:one";
  return PADDLE_OK;
}

static const Longer<paddle_operation> operation = {
    {sizeof operation, "thrice: {signature: '(x:T) -> out', doc: thrice x., body: x * 3}", 0, 0,
     nullptr},
    never,
    "later"};
static const paddle_operation* const operations[] = {&operation.known};
static const Longer<paddle_kernel> kernel = {
    {sizeof kernel, "longer.thrice", "cpu", "float32", prepare}, never, "later"};
static const paddle_kernel* const kernels[] = {&kernel.known};

PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host*, paddle_plugin* plugin) {
  plugin->name = "longer";
  plugin->version = "1.0.0";
  plugin->operation_count = 1;
  plugin->operations = operations;
  plugin->kernel_count = 1;
  plugin->kernels = kernels;
  return PADDLE_OK;
}
