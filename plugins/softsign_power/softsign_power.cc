// An operation with a kernel: x / (1 + |x|)^power. The schema is text, as in a .plugin.yaml file;
// the kernel computes what its body says, in one pass over the memory.

#include <cmath>

#include "paddle/plugin/plugin.h"

namespace {

const paddle_host* host = nullptr;

struct State {
  int64_t count;
  double power;
};

template <class T>
struct Range {
  const T* x;
  T* out;
  T power;
  static void compute(void* context, int64_t begin, int64_t end) {
    const auto& r = *static_cast<const Range*>(context);
    for (int64_t i = begin; i < end; ++i)
      r.out[i] = r.x[i] * std::pow(1 + std::abs(r.x[i]), -r.power);
  }
};

template <class T>
paddle_status run(const void* state, const paddle_run* r) {
  const auto& s = *static_cast<const State*>(state);
  Range<T> range{static_cast<const T*>(r->operands[0]), static_cast<T*>(r->results[0]),
                 static_cast<T>(s.power)};
  host->parallel_for(r->call, s.count, 4096, Range<T>::compute, &range);
  return PADDLE_OK;
}

paddle_status prepare(paddle_call*, const paddle_request* request, paddle_instance* instance) {
  const paddle_view& x = *request->operands[0];
  int64_t count = 1;
  for (int32_t i = 0; i < x.rank; ++i) count *= x.shape[i];
  instance->state = new State{count, host->attr_float(request, host->attr_index(request, "power"))};
  instance->run = x.dtype == PADDLE_FLOAT32 ? run<float> : run<double>;
  instance->destroy = [](void* state) { delete static_cast<State*>(state); };
  instance->implementation = "softsign_power";
  return PADDLE_OK;
}

constexpr paddle_operation kOperation = {sizeof(paddle_operation), R"(
softsign_power:
  signature: (x:T, power:float=1.0) -> out
  doc: x over a power of one plus its absolute value.
  dtypes: {x: float}
  traits: [elementwise]
  body: x * (1.0 + abs(x)) ** (-power)
  vjp: g * (1.0 + abs(x)) ** (-power - 1.0) * (1.0 + (1.0 - power) * abs(x))
  samples:
    - x=f64[3,7]
    - x=f64[5] power=2.5
)"};
constexpr paddle_kernel kKernel = {sizeof(paddle_kernel), "softsign_power.softsign_power", "cpu",
                                   "float32|float64", prepare};
constexpr const paddle_operation* kOperations[] = {&kOperation};
constexpr const paddle_kernel* kKernels[] = {&kKernel};

}  // namespace

PADDLE_PLUGIN_NOTE("softsign_power", "1.0.0");

PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host* given,
                                                      paddle_plugin* plugin) {
  host = given;
  plugin->name = "softsign_power";
  plugin->version = "1.0.0";
  plugin->summary = "x / (1 + |x|)^power with a kernel";
  plugin->operation_count = 1;
  plugin->operations = kOperations;
  plugin->kernel_count = 1;
  plugin->kernels = kKernels;
  return PADDLE_OK;
}
