// Random tensors, with the bits of the CPU's.

#include <algorithm>

#include "kernels/cuda/device_types.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/prepare.h"
#include "kernels/cuda/tables.h"
#include "ops/generated/random.h"

namespace paddle::cuda {
namespace {

/// As in device/random.cuh.
struct RandomArguments {
  const void* state;
  const void* operand;
  void* out;
  int64_t size;
  uint64_t seed, stream_key;
  double a, b;
  uint64_t low, span;
  CUdeviceptr error;
  int64_t site;
};

}  // namespace

std::unique_ptr<Kernel> prepare_random(const KernelRequest& request) {
  const std::string_view name = request.op.name();
  const Layout& result = request.results[0];
  const char* const out = device_type(result.dtype);
  const auto window = request.op.attr_index("window");
  if (!out || (window >= 0 && !request.attrs[static_cast<size_t>(window)].is_none()))
    return nullptr;
  if (result.size() == 0) return nothing_to_do();
  const auto integer = [&](const char* attribute) {
    const int at = request.op.attr_index(attribute);
    return at < 0 ? int64_t{0} : request.attrs[static_cast<size_t>(at)].as_int();
  };
  RandomArguments base{};
  base.size = result.size();
  base.seed = static_cast<uint64_t>(integer("seed"));
  if (base.seed == 0) base.stream_key = static_cast<uint64_t>(integer("stream"));
  std::string call;
  if (name == "uniform") {
    const UniformAttrs attrs(request.attrs);
    base.a = attrs.min;
    base.b = attrs.max - attrs.min;
    call = str("uniform<", out, ">");
  } else if (name == "gaussian") {
    const GaussianAttrs attrs(request.attrs);
    base.a = attrs.mean;
    base.b = attrs.std;
    call = str("gaussian<", out, ">");
  } else if (name == "randint") {
    const RandintAttrs attrs(request.attrs);
    const int64_t low = attrs.high ? attrs.low : 0, high = attrs.high ? *attrs.high : attrs.low;
    base.low = static_cast<uint64_t>(low);
    base.span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
    call = str("random_integers<", out, ">");
  } else if (name == "dropout_mask") {
    base.a = DropoutMaskAttrs(request.attrs).p;
    call = str("dropout_mask<", out, ">");
  } else {
    return nullptr;
  }
  const auto program = start_program(
      request, program_text({"box_muller", "random"}, entry_text("fill", "RandomArguments", call)));
  const Entry entry(program, "fill");
  const size_t state = request.operands.size() - 1;
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        RandomArguments arguments = base;
        if (base.seed == 0) arguments.state = operands[state];
        arguments.out = results[0];
        entry.launch(
            context.stream,
            std::clamp<int64_t>((base.size + kBlockThreads - 1) / kBlockThreads, 1, 132 * 32),
            &arguments);
      },
      0, "cuda:random");
}

}  // namespace paddle::cuda
