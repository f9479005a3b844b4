#include "kernels/cuda/pool.h"

#include <algorithm>

#include "kernels/cuda/divider.h"
#include "kernels/cuda/prepare.h"
#include "kernels/pool/pool_shape.h"
#include "ops/generated/nn.h"
#include "ops/nn/window.h"

namespace paddle::cuda {
namespace {

/// As in device/pool.cuh.
struct PoolArguments {
  const void *x, *mask;
  void *out, *out1;
  int64_t size, planes;
  int64_t in_batch, in_channel, in_row, in_column;
  int64_t out_batch, out_channel, out_row, out_column;
  Divider channels, in_height, in_width, out_height, out_width, stride_height, stride_width;
  int height, width, windows_height, windows_width;
  int kernel_height, kernel_width, step_height, step_width;
  int top, bottom, left, right;
  int channels_last, exclusive;
  double divisor;
};

/// None where a size needs more than 31 bits.
std::optional<PoolArguments> arguments_of(const cpu::PoolShape& s) {
  constexpr int64_t kMaxExtent = int64_t{1} << 28;
  const int64_t planes = s.batch * s.channels;
  if (planes * s.height * s.width >= kMaxDividend ||
      planes * s.out_height * s.out_width >= kMaxDividend)
    return std::nullopt;
  for (const int64_t extent :
       {s.height + s.kernel_height + s.top + s.bottom, s.width + s.kernel_width + s.left + s.right,
        s.out_height * s.stride_height, s.out_width * s.stride_width})
    if (extent >= kMaxExtent) return std::nullopt;
  PoolArguments out{};
  const cpu::ImageStrides in = s.in(), to = s.out();
  out.planes = planes;
  out.in_batch = in.batch;
  out.in_channel = in.channel;
  out.in_row = in.row;
  out.in_column = in.column;
  out.out_batch = to.batch;
  out.out_channel = to.channel;
  out.out_row = to.row;
  out.out_column = to.column;
  out.channels = Divider(s.channels);
  out.in_height = Divider(s.height);
  out.in_width = Divider(s.width);
  out.out_height = Divider(s.out_height);
  out.out_width = Divider(s.out_width);
  out.stride_height = Divider(s.stride_height);
  out.stride_width = Divider(s.stride_width);
  out.height = static_cast<int>(s.height);
  out.width = static_cast<int>(s.width);
  out.windows_height = static_cast<int>(s.out_height);
  out.windows_width = static_cast<int>(s.out_width);
  out.kernel_height = static_cast<int>(s.kernel_height);
  out.kernel_width = static_cast<int>(s.kernel_width);
  out.step_height = static_cast<int>(s.stride_height);
  out.step_width = static_cast<int>(s.stride_width);
  out.top = static_cast<int>(s.top);
  out.bottom = static_cast<int>(s.bottom);
  out.left = static_cast<int>(s.left);
  out.right = static_cast<int>(s.right);
  out.channels_last = s.channels_last ? 1 : 0;
  return out;
}

Entry pool_entry(const KernelRequest& request, const std::string& call, const char* name = "pool") {
  return {start_program(request, program_text({"pool"}, entry_text(name, "PoolArguments", call))),
          name};
}

bool is_number(const Layout& layout) { return is_plain(layout) && layout.dtype != DType::kBool; }

bool is_16_bit_float(DType type) { return is_float(type) && item_size(type) == 2; }

/// A kernel of one launch over the elements of its result.
std::unique_ptr<Kernel> pool_kernel(const Entry& entry, PoolArguments base, int64_t size,
                                    bool has_mask, int64_t blocks, const char* name) {
  base.size = size;
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        PoolArguments arguments = base;
        arguments.x = operands[0];
        arguments.mask = has_mask ? operands[1] : nullptr;
        arguments.out = results[0];
        entry.launch(context.stream, blocks, &arguments);
      },
      0, name);
}

}  // namespace

std::unique_ptr<Kernel> prepare_max_pool(const KernelRequest& request) {
  const MaxPool2dAttrs attrs(request.attrs);
  const Layout &x = request.operands[0], &result = request.results[0];
  if (!is_number(x)) return nullptr;
  if (result.size() == 0) return nothing_to_do();
  cpu::PoolShape shape(x.shape, result.shape, attrs.data_format == "NHWC");
  shape.windows(attrs.kernel_size, attrs.stride, max_pool_padding(attrs.padding, attrs.return_mask),
                request.op.name());
  auto base = arguments_of(shape);
  if (!base) return nullptr;
  base->size = result.size();
  const Entry entry = pool_entry(request, str("max_pool<", device_type(x.dtype), ">"));
  const bool has_mask = request.results.size() > 1 && request.results[1].present;
  return make_kernel(
      [=, base = *base](const RunContext& context, void* const* operands, void* const* results) {
        PoolArguments arguments = base;
        arguments.x = operands[0];
        arguments.out = results[0];
        arguments.out1 = has_mask ? results[1] : nullptr;
        entry.launch(context.stream, element_blocks(base.size), &arguments);
      },
      0, "cuda:max_pool");
}

std::unique_ptr<Kernel> prepare_max_pool_grad(const KernelRequest& request) {
  const Layout &grad = request.operands[0], &result = request.results[0];
  if (!is_number(grad) || !request.operands[1].is_contiguous() || result.dtype != grad.dtype)
    return nullptr;
  if (result.size() == 0) return nothing_to_do();
  const cpu::PoolShape shape(result.shape, grad.shape,
                             MaxPool2dGradAttrs(request.attrs).data_format == "NHWC");
  auto base = arguments_of(shape);
  if (!base) return nullptr;
  base->size = result.size();
  const bool narrows = is_16_bit_float(grad.dtype);
  const char* const type = device_type(grad.dtype);
  const Entry entry =
      pool_entry(request, str("max_pool_grad<", narrows ? "float" : type, ", ", type, ">"));
  const Entry narrow = narrows ? pool_entry(request, str("narrow<", type, ">"), "narrow") : Entry();
  return make_kernel(
      [=, base = *base](const RunContext& context, void* const* operands, void* const* results) {
        PoolArguments arguments = base;
        arguments.x = operands[0];
        arguments.mask = operands[1];
        arguments.out = narrows ? context.scratch : results[0];
        arguments.out1 = results[0];
        entry.launch(context.stream, task_blocks(base.planes), &arguments);
        if (narrows) narrow.launch(context.stream, element_blocks(base.size), &arguments);
      },
      narrows ? static_cast<size_t>(base->size) * sizeof(float) : 0, "cuda:max_pool");
}

std::unique_ptr<Kernel> prepare_max_pool_take(const KernelRequest& request) {
  const Layout &x = request.operands[0], &result = request.results[0];
  if (!is_number(x) || !request.operands[1].is_contiguous()) return nullptr;
  if (result.size() == 0) return nothing_to_do();
  const auto base = arguments_of(cpu::PoolShape(
      x.shape, result.shape, MaxPool2dTakeAttrs(request.attrs).data_format == "NHWC"));
  if (!base) return nullptr;
  return pool_kernel(pool_entry(request, str("max_pool_take<", device_type(x.dtype), ">")), *base,
                     result.size(), true, element_blocks(result.size()), "cuda:max_pool");
}

std::unique_ptr<Kernel> prepare_average_pool(const KernelRequest& request) {
  const AvgPool2dAttrs attrs(request.attrs);
  const Layout &x = request.operands[0], &result = request.results[0];
  const char* const compute = compute_name(x.dtype);
  if (!compute || !x.is_contiguous() || result.dtype != x.dtype) return nullptr;
  if (result.size() == 0) return nothing_to_do();
  cpu::PoolShape shape(x.shape, result.shape, attrs.data_format == "NHWC");
  shape.windows(attrs.kernel_size, attrs.stride, attrs.padding, request.op.name());
  auto base = arguments_of(shape);
  if (!base) return nullptr;
  base->exclusive = attrs.exclusive ? 1 : 0;
  base->divisor = attrs.divisor_override.value_or(0);
  constexpr int64_t kLargeWindow = 256;
  const bool is_large = !shape.channels_last && std::min(shape.kernel_height, shape.height) *
                                                        std::min(shape.kernel_width, shape.width) >=
                                                    kLargeWindow;
  const Entry entry = pool_entry(request, str(is_large ? "average_pool_large<" : "average_pool<",
                                              compute, ", ", device_type(x.dtype), ">"));
  return pool_kernel(entry, *base, result.size(), false,
                     is_large ? task_blocks(result.size()) : element_blocks(result.size()),
                     "cuda:average_pool");
}

std::unique_ptr<Kernel> prepare_average_pool_grad(const KernelRequest& request) {
  const AvgPool2dGradAttrs attrs(request.attrs);
  const Layout &grad = request.operands[0], &result = request.results[0];
  const char* const compute = compute_name(grad.dtype);
  if (!compute || !grad.is_contiguous() || result.dtype != grad.dtype) return nullptr;
  if (result.size() == 0) return nothing_to_do();
  cpu::PoolShape shape(result.shape, grad.shape, attrs.data_format == "NHWC");
  shape.windows(attrs.kernel_size, attrs.stride, attrs.padding, request.op.name());
  auto base = arguments_of(shape);
  if (!base) return nullptr;
  base->exclusive = attrs.exclusive ? 1 : 0;
  base->divisor = attrs.divisor_override.value_or(0);
  return pool_kernel(
      pool_entry(request, str("average_pool_grad<", compute, ", ", device_type(grad.dtype), ">")),
      *base, result.size(), false, element_blocks(result.size()), "cuda:average_pool");
}

}  // namespace paddle::cuda
