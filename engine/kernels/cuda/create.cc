#include "kernels/cuda/create.h"

#include <algorithm>

#include "kernels/cuda/prepare.h"
#include "kernels/reduce/reduce.h"
#include "ops/generated/creation.h"
#include "ops/generated/shape.h"

namespace paddle::cuda {
namespace {

constexpr size_t kCreateAxes = 8;

/// As in device/create.cuh.
struct RangeArguments {
  void* out;
  int64_t size, last;
  int64_t first, step;
  double start, stop, each;
};
struct BorderArguments {
  const void* from;
  void* to;
  int64_t size;
  int axes;
  int64_t shape[kCreateAxes], from_shape[kCreateAxes], from_strides[kCreateAxes],
      before[kCreateAxes];
};
struct LogSumArguments {
  const void* x;
  void* out;
  int64_t results, count;
  int kept, reduced;
  int64_t kept_shape[kCreateAxes], kept_strides[kCreateAxes];
  int64_t reduced_shape[kCreateAxes], reduced_strides[kCreateAxes];
};

Entry create_entry(const KernelRequest& request, std::string_view arguments,
                   const std::string& call) {
  return {start_program(request, program_text({"math", "scalar", "create"},
                                              entry_text("create", arguments, call))),
          "create"};
}

std::unique_ptr<Kernel> range_kernel(const KernelRequest& request, RangeArguments base,
                                     std::string_view function) {
  const Layout& result = request.results[0];
  if (!device_type(result.dtype)) return nullptr;
  base.size = result.size();
  if (base.size == 0) return nothing_to_do();
  const Entry entry =
      create_entry(request, "RangeArguments", str(function, "<", device_type(result.dtype), ">"));
  return make_kernel(
      [=](const RunContext& context, void* const*, void* const* results) {
        RangeArguments arguments = base;
        arguments.out = results[0];
        entry.launch(context.stream, element_blocks(base.size), &arguments);
      },
      0, "cuda:range");
}

}  // namespace

std::unique_ptr<Kernel> prepare_arange(const KernelRequest& request) {
  const ArangeAttrs attrs(request.attrs);
  const AttrValue start = attrs.end.is_none() ? AttrValue(0) : attrs.start;
  RangeArguments base{};
  if (start.is_int() && attrs.step.is_int()) {
    base.first = start.as_int();
    base.step = attrs.step.as_int();
    return range_kernel(request, base, "integer_range");
  }
  base.start = start.as_double();
  base.each = attrs.step.as_double();
  return range_kernel(request, base, "number_range");
}

std::unique_ptr<Kernel> prepare_linspace(const KernelRequest& request) {
  const LinspaceAttrs attrs(request.attrs);
  RangeArguments base{};
  base.start = attrs.start.as_double();
  base.stop = attrs.stop.as_double();
  base.last = attrs.num - 1;
  base.each = base.last > 0 ? (base.stop - base.start) / static_cast<double>(base.last) : 0;
  return range_kernel(request, base, "line_space");
}

std::unique_ptr<Kernel> prepare_pad_border(const KernelRequest& request) {
  const PadAttrs attrs(request.attrs);
  const Layout &x = request.operands[0], &result = request.results[0];
  const size_t rank = x.shape.size();
  const char* const item = unsigned_type(result.dtype);
  if (rank > kCreateAxes || !item || x.dtype != result.dtype) return nullptr;
  if (result.size() == 0) return nothing_to_do();
  BorderArguments base{};
  base.size = result.size();
  base.axes = static_cast<int>(rank);
  const bool channels_last = attrs.data_format && attrs.data_format->ends_with('C');
  const size_t last = rank - (channels_last && rank > 2 ? 1 : 0);
  for (size_t i = 0; i < attrs.pad.size() / 2; ++i) base.before[last - 1 - i] = attrs.pad[2 * i];
  for (size_t axis = 0; axis < rank; ++axis) {
    base.shape[axis] = result.shape[axis];
    base.from_shape[axis] = x.shape[axis];
    base.from_strides[axis] = x.strides[axis];
    // A single element has no reflection: the border is the value then.
    if (x.shape[axis] < (attrs.mode == "reflect" ? 2 : 1) &&
        (base.before[axis] != 0 || x.shape[axis] != result.shape[axis]))
      return nullptr;
  }
  const char* const border = attrs.mode == "reflect"     ? "Reflect"
                             : attrs.mode == "replicate" ? "Replicate"
                                                         : "Circular";
  const Entry entry =
      create_entry(request, "BorderArguments", str("pad_borders<", item, ", ", border, ">"));
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        BorderArguments arguments = base;
        arguments.from = operands[0];
        arguments.to = results[0];
        entry.launch(context.stream, element_blocks(base.size), &arguments);
      },
      0, "cuda:pad");
}

std::unique_ptr<Kernel> prepare_view_dtype(const KernelRequest& request) {
  if (!request.operands[0].is_contiguous()) return nullptr;
  const auto bytes =
      static_cast<size_t>(request.results[0].size() * item_size(request.results[0].dtype));
  return make_kernel(
      [=, device = request.target.device](const RunContext& context, void* const* operands,
                                          void* const* results) {
        copy_on_device(device, context.stream, results[0], operands[0], bytes);
      },
      0, "cuda:copy");
}

std::unique_ptr<Kernel> prepare_logsumexp(const KernelRequest& request) {
  const Layout &x = request.operands[0], &result = request.results[0];
  auto call = cpu::reduce_call(request.op, request.attrs, x.shape.size());
  if (!call || !device_type(x.dtype) || !compute_name(result.dtype) || x.shape.size() > kCreateAxes)
    return nullptr;
  if (result.size() == 0) return nothing_to_do();
  LogSumArguments base{};
  base.results = base.count = 1;
  for (size_t axis = 0; axis < x.shape.size(); ++axis) {
    const bool reduces =
        call->axes.empty() || std::ranges::count(call->axes, static_cast<int64_t>(axis)) > 0;
    const auto at = static_cast<size_t>(reduces ? base.reduced++ : base.kept++);
    (reduces ? base.reduced_shape : base.kept_shape)[at] = x.shape[axis];
    (reduces ? base.reduced_strides : base.kept_strides)[at] = x.strides[axis];
    (reduces ? base.count : base.results) *= x.shape[axis];
  }
  constexpr int64_t kManyElements = 64;
  const bool by_block = base.count >= kManyElements;
  const char* const compute =
      is_float(x.dtype) && computed_as(x.dtype) == DType::kF32 ? "float" : "double";
  const Entry entry =
      create_entry(request, "LogSumArguments",
                   str("log_sums<", compute, ", ", device_type(x.dtype), ", ",
                       device_type(result.dtype), ", ", by_block ? "true>" : "false>"));
  const int64_t blocks = by_block ? task_blocks(base.results) : element_blocks(base.results);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        LogSumArguments arguments = base;
        arguments.x = operands[0];
        arguments.out = results[0];
        entry.launch(context.stream, blocks, &arguments);
      },
      0, "cuda:logsumexp");
}

}  // namespace paddle::cuda
