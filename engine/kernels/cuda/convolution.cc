#include "kernels/cuda/convolution.h"

#include <algorithm>

#include "kernels/conv/conv_shape.h"
#include "kernels/cuda/divider.h"
#include "kernels/cuda/prepare.h"

namespace paddle::cuda {
namespace {

/// As in device/convolution.cuh.
struct ConvArguments {
  const void *a, *b, *bias;
  void *out, *partial;
  CUdeviceptr counters;
  int64_t rows, columns, depth;
  int64_t groups, chunk, chunks;
  int64_t group_in, group_out;
  int64_t x_batch, x_channel, x_axis[3];
  int64_t y_batch, y_channel, y_axis[3];
  int64_t taps;
  Divider x_size[3], y_size[3], kernel[3], stride[3], tap_count;
  int size[3], out_size[3], step[3], dilation[3], padding[3];
};

constexpr int64_t kTile = 64, kMaxGridRows = 65535;
constexpr int64_t kFewColumns = 16;

/// Sizes and strides; the product's sizes are the caller's.
ConvArguments geometry_of(const cpu::ConvShape& s) {
  ConvArguments out{};
  out.groups = s.groups;
  out.chunks = 1;
  out.group_in = s.group_in_channels();
  out.group_out = s.group_out_channels();
  const auto x = cpu::ImageStrides::of(s.in_channels, s.height, s.width, s.channels_last, s.depth);
  const auto y = cpu::ImageStrides::of(s.out_channels, s.out_height, s.out_width, s.channels_last,
                                       s.out_depth);
  out.x_batch = x.batch;
  out.x_channel = x.channel;
  out.y_batch = y.batch;
  out.y_channel = y.channel;
  const int64_t x_axis[] = {x.plane, x.row, x.column}, y_axis[] = {y.plane, y.row, y.column};
  const int64_t size[] = {s.depth, s.height, s.width};
  const int64_t out_size[] = {s.out_depth, s.out_height, s.out_width};
  const int64_t kernel[] = {s.kernel_depth, s.kernel_height, s.kernel_width};
  const int64_t step[] = {s.stride_depth, s.stride_height, s.stride_width};
  const int64_t dilation[] = {s.dilation_depth, s.dilation_height, s.dilation_width};
  const int64_t padding[] = {s.front, s.top, s.left};
  for (int i = 0; i < 3; ++i) {
    out.x_axis[i] = x_axis[i];
    out.y_axis[i] = y_axis[i];
    out.x_size[i] = Divider(size[i]);
    out.y_size[i] = Divider(out_size[i]);
    out.kernel[i] = Divider(kernel[i]);
    out.stride[i] = Divider(step[i]);
    out.size[i] = static_cast<int>(size[i]);
    out.out_size[i] = static_cast<int>(out_size[i]);
    out.step[i] = static_cast<int>(step[i]);
    out.dilation[i] = static_cast<int>(dilation[i]);
    out.padding[i] = static_cast<int>(padding[i]);
  }
  out.taps = s.kernel_depth * s.kernel_height * s.kernel_width;
  out.tap_count = Divider(out.taps);
  return out;
}

/// Whether the kernels' 32-bit places hold the sizes; coordinates of windows stay far below.
bool fits(const cpu::ConvShape& s) {
  constexpr int64_t kMaxExtent = int64_t{1} << 28;
  const int64_t pixels = s.batch * s.depth * s.height * s.width;
  const int64_t window = std::max(
      s.window_size(), s.group_out_channels() * s.kernel_depth * s.kernel_height * s.kernel_width);
  for (const int64_t extent :
       {s.kernel_depth * s.dilation_depth, s.kernel_height * s.dilation_height,
        s.kernel_width * s.dilation_width, s.out_depth * s.stride_depth,
        s.out_height * s.stride_height, s.out_width * s.stride_width})
    if (extent >= kMaxExtent) return false;
  return pixels < kMaxDividend && s.batch * s.positions() < kMaxDividend && window < kMaxDividend &&
         s.groups * std::min(kFewColumns, std::max(s.group_out_channels(), s.group_in_channels())) <
             kMaxGridRows;
}

/// The names of a kernel's types; `bias` is the result's where there is none.
struct ConvTypes {
  const char *sum, *a, *b, *out, *bias;

  static std::optional<ConvTypes> of(const KernelRequest& request) {
    ConvTypes types{};
    types.sum = compute_name(request.operands[0].dtype);
    types.a = device_type(request.operands[0].dtype);
    types.b = device_type(request.operands[1].dtype);
    types.out = device_type(request.results[0].dtype);
    types.bias = types.out;
    if (request.operands.size() > 2 && request.operands[2].present)
      types.bias = device_type(request.operands[2].dtype);
    for (const Layout& operand : request.operands)
      if (!is_plain(operand) || (operand.present && !is_float(operand.dtype))) return std::nullopt;
    if (!types.sum || !types.a || !types.b || !types.out || !types.bias) return std::nullopt;
    return types;
  }
};

std::shared_ptr<Program> conv_program(const KernelRequest& request, const std::string& kernels) {
  return start_program(request, program_text({"convolution"}, kernels));
}

std::string conv_entry(std::string_view name, const std::string& call) {
  return entry_text(name, "ConvArguments", call);
}

/// A product by tiles, or by a thread per result where groups have few columns.
std::unique_ptr<Kernel> tiled_kernel(const KernelRequest& request, ConvArguments base, size_t a,
                                     size_t b, const std::string& operands_text,
                                     const ConvTypes& types) {
  const bool direct = base.columns < kFewColumns;
  base.chunk = base.depth;
  const std::string call = str(direct ? "conv_direct<" : "conv_tile<", types.sum, ", ",
                               operands_text, ", ", types.out, ", ", types.bias, ">");
  const Entry entry(conv_program(request, conv_entry("convolve", call)), "convolve");
  const bool biased = request.operands.size() > 2 && request.operands[2].present;
  const int64_t blocks = direct
                             ? std::min<int64_t>(cpu::ceil_div(base.rows, kBlockThreads), 65536)
                             : cpu::ceil_div(base.rows, kTile) * cpu::ceil_div(base.columns, kTile);
  const int64_t grid_rows = direct ? base.groups * base.columns : base.groups;
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        ConvArguments arguments = base;
        arguments.a = operands[a];
        arguments.b = operands[b];
        arguments.bias = biased ? operands[2] : nullptr;
        arguments.out = results[0];
        entry.launch(context.stream, blocks, grid_rows, &arguments);
      },
      0, direct ? "cuda:conv_direct" : "cuda:conv_tiles");
}

}  // namespace

std::unique_ptr<Kernel> prepare_conv(const KernelRequest& request) {
  const auto types = ConvTypes::of(request);
  if (!types) return nullptr;
  const auto shape = cpu::ConvShape::of(request.op, request.attrs, request.operands[0].shape,
                                        request.operands[1].shape, request.results[0].shape);
  if (request.results[0].size() == 0) return nothing_to_do();
  if (!fits(shape)) return nullptr;
  ConvArguments base = geometry_of(shape);
  base.rows = shape.batch * shape.positions();
  base.columns = shape.group_out_channels();
  base.depth = shape.window_size();
  return tiled_kernel(request, base, 0, 1,
                      str("ForwardInput<", types->sum, ", ", types->a, ">, ForwardWeight<",
                          types->sum, ", ", types->b, ">, ForwardOutput"),
                      *types);
}

std::unique_ptr<Kernel> prepare_conv_input_grad(const KernelRequest& request) {
  const auto types = ConvTypes::of(request);
  if (!types) return nullptr;
  const auto shape = cpu::ConvShape::of(request.op, request.attrs, request.results[0].shape,
                                        request.operands[0].shape, request.operands[1].shape);
  if (request.results[0].size() == 0) return nothing_to_do();
  if (!fits(shape)) return nullptr;
  ConvArguments base = geometry_of(shape);
  base.rows = shape.batch * shape.depth * shape.height * shape.width;
  base.columns = shape.group_in_channels();
  base.depth = shape.group_out_channels() * base.taps;
  return tiled_kernel(request, base, 1, 0,
                      str("WindowGrad<", types->sum, ", ", types->b, ">, GradWeight<", types->sum,
                          ", ", types->a, ">, InputGradOutput"),
                      *types);
}

std::unique_ptr<Kernel> prepare_conv_weight_grad(const KernelRequest& request) {
  const auto types = ConvTypes::of(request);
  if (!types) return nullptr;
  const auto shape = cpu::ConvShape::of(request.op, request.attrs, request.operands[0].shape,
                                        request.results[0].shape, request.operands[1].shape);
  const int64_t size = request.results[0].size();
  if (size == 0) return nothing_to_do();
  if (!fits(shape)) return nullptr;
  ConvArguments base = geometry_of(shape);
  base.rows = shape.group_out_channels();
  base.columns = shape.window_size();
  base.depth = shape.batch * shape.positions();
  base.chunk = std::max<int64_t>(1, base.depth);
  const std::string operands_text = str("PositionGrad<", types->sum, ", ", types->b,
                                        ">, PositionInput<", types->sum, ", ", types->a, ">");
  const auto arguments_of = [](const ConvArguments& base, void* const* operands,
                               void* const* results) {
    ConvArguments arguments = base;
    arguments.a = operands[0];
    arguments.b = operands[1];
    arguments.out = results[0];
    return arguments;
  };
  if (base.rows < kFewColumns) {
    const Entry entry(
        conv_program(request, conv_entry("convolve", str("conv_weight<", types->sum, ", ",
                                                         operands_text, ", ", types->out, ">"))),
        "convolve");
    return make_kernel(
        [=](const RunContext& context, void* const* operands, void* const* results) {
          const ConvArguments arguments = arguments_of(base, operands, results);
          entry.launch(context.stream, task_blocks(size), &arguments);
        },
        0, "cuda:conv_direct");
  }
  // There are few results and long sums, which are divided.
  constexpr int64_t kWantedBlocks = 256, kMinChunk = 256;
  static_assert(kWantedBlocks <= kStreamCounters);
  const int64_t tiles = cpu::ceil_div(base.rows, kTile) * cpu::ceil_div(base.columns, kTile);
  const int64_t wanted = std::min(kWantedBlocks / (tiles * base.groups), base.depth / kMinChunk);
  if (wanted > 1 && wanted * base.groups < kMaxGridRows) {
    base.chunk = cpu::ceil_div(base.depth, wanted);
    base.chunks = cpu::ceil_div(base.depth, base.chunk);
  }
  const Entry entry(
      conv_program(request, conv_entry("convolve", str("conv_tile<", types->sum, ", ",
                                                       operands_text, ", WeightGradOutput, ",
                                                       types->out, ", ", types->bias, ">"))),
      "convolve");
  const size_t item = request.operands[0].dtype == DType::kF64 ? 8 : 4;
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        ConvArguments arguments = arguments_of(base, operands, results);
        arguments.partial = context.scratch;
        arguments.counters = context.stream->counters;
        entry.launch(context.stream, tiles, base.groups * base.chunks, &arguments);
      },
      base.chunks > 1 ? static_cast<size_t>(base.chunks * size) * item : 0, "cuda:conv_tiles");
}

}  // namespace paddle::cuda
