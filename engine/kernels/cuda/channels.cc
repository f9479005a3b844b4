#include "kernels/cuda/channels.h"

#include <algorithm>

#include "kernels/common/rows.h"
#include "kernels/cuda/divider.h"
#include "kernels/cuda/prepare.h"
#include "ops/generated/nn.h"

namespace paddle::cuda {
namespace {

/// As in device/channels.cuh.
struct ChannelArguments {
  const void *x, *grad;
  const void *running_mean, *running_var, *weight, *bias;
  void* out;
  void *new_mean, *new_var, *mean, *rstd;
  void *scale, *shift, *slope;
  void* partial;
  CUdeviceptr counters;
  int64_t outer, channels, inner, size, count, chunk, chunks;
  Divider inner_size, channel_count;
  double momentum, epsilon;
  int batch;
};

constexpr int64_t kLanes = 32;  // channels of a block with channels last

/// A tensor as [outer, channels, inner], and how its channels are divided among blocks.
struct Channels {
  ChannelArguments base{};
  bool last = false;
  int64_t blocks = 0;

  static std::optional<Channels> of(const Dims& shape, std::string_view data_format) {
    Channels out;
    ChannelArguments& base = out.base;
    const bool channels_last = shape.size() > 2 && data_format.ends_with('C');
    const size_t axis = channels_last ? shape.size() - 1 : 1;
    const cpu::Rows rows = cpu::Rows::of(shape, static_cast<int64_t>(axis));
    base.outer = rows.outer;
    base.channels = rows.length;
    base.inner = rows.inner;
    base.count = base.outer * base.inner;
    base.size = base.count * base.channels;
    if (base.size >= kMaxDividend || base.size == 0) return std::nullopt;
    base.inner_size = Divider(base.inner);
    base.channel_count = Divider(base.channels);
    out.last = base.inner == 1;
    out.blocks = out.last ? cpu::ceil_div(base.channels, kLanes) : base.channels;
    constexpr int64_t kWantedBlocks = 256, kMinChunk = 2048;
    const int64_t least = out.last ? kMinChunk / kLanes : kMinChunk;
    const int64_t wanted =
        std::clamp<int64_t>(std::min(kWantedBlocks / out.blocks, base.count / least), 1, 256);
    base.chunk = cpu::ceil_div(base.count, wanted);
    base.chunks = cpu::ceil_div(base.count, base.chunk);
    return out;
  }

  size_t partial_bytes() const {
    return static_cast<size_t>(base.channels * base.chunks) * 2 * sizeof(double);
  }
};

std::string channel_entry(std::string_view name, const std::string& call) {
  return entry_text(name, "ChannelArguments", call);
}

std::shared_ptr<Program> channel_program(const KernelRequest& request, const std::string& kernels) {
  return start_program(request, program_text({"channels"}, kernels));
}

/// The device's type of an optional vector; `otherwise` where there is none.
const char* type_or(const KernelRequest& request, size_t i, const char* otherwise) {
  return i < request.operands.size() && request.operands[i].present
             ? device_type(request.operands[i].dtype)
             : otherwise;
}

bool is_plain_float(const Layout& layout) {
  return is_plain(layout) && (!layout.present || is_float(layout.dtype));
}

/// Vectors of a channel that a kernel needs and that are not results are in scratch, after the
/// sums.
struct ScratchVectors {
  std::byte* at;
  size_t bytes;

  void* take() {
    void* const out = at;
    at += bytes;
    return out;
  }
};

}  // namespace

std::unique_ptr<Kernel> prepare_batch_norm(const KernelRequest& request) {
  const BatchNormAttrs attrs(request.attrs);
  const Layout& x = request.operands[0];
  const char* const compute = compute_name(x.dtype);
  if (!compute || !std::ranges::all_of(request.operands, is_plain_float)) return nullptr;
  if (x.size() == 0) return nullptr;
  auto channels = Channels::of(x.shape, attrs.data_format);
  if (!channels) return nullptr;
  const bool has_output = request.op.name() == "batch_norm";
  const size_t first = has_output ? 1 : 0;
  for (size_t i = first + 2; i < request.results.size(); ++i)
    if (request.results[i].present && request.results[i].dtype != computed_as(x.dtype))
      return nullptr;
  channels->base.batch = attrs.training && !attrs.use_global_stats.value_or(false) ? 1 : 0;
  channels->base.momentum = attrs.momentum;
  channels->base.epsilon = attrs.epsilon;
  const char *const type = device_type(x.dtype), *const last = channels->last ? "true" : "false";
  const std::string vectors =
      str(compute, ", ", type_or(request, 1, compute), ", ", type_or(request, 2, compute), ", ",
          type_or(request, 3, compute), ", ", type_or(request, 4, compute));
  const auto program = channel_program(
      request,
      channel_entry("statistics",
                    str("channel_statistics<", type, ", ", last, ", ", vectors, ">")) +
          channel_entry("normalize", str("normalize_channels<", compute, ", ", type, ">")));
  const Entry statistics(program, "statistics"), normalize(program, "normalize");
  const size_t partial = channels->base.batch ? channels->partial_bytes() : 0;
  const size_t vector = static_cast<size_t>(channels->base.channels) * sizeof(double);
  std::vector<bool> given;
  for (const Layout& result : request.results) given.push_back(result.present);
  return make_kernel(
      [=, channels = *channels](const RunContext& context, void* const* operands,
                                void* const* results) {
        ChannelArguments arguments = channels.base;
        ScratchVectors scratch{context.scratch + partial, vector};
        const auto result = [&](size_t i) {
          return first + i < given.size() && given[first + i] ? results[first + i] : nullptr;
        };
        arguments.x = operands[0];
        arguments.running_mean = operands[1];
        arguments.running_var = operands[2];
        arguments.weight = operands[3];
        arguments.bias = operands[4];
        arguments.partial = context.scratch;
        arguments.new_mean = result(0);
        arguments.new_var = result(1);
        arguments.mean = result(2);
        arguments.rstd = result(3);
        arguments.scale = has_output ? scratch.take() : result(4);
        arguments.shift = has_output ? scratch.take() : result(5);
        if (has_output && !arguments.mean) arguments.mean = scratch.take();
        arguments.counters = context.stream->counters;
        statistics.launch(context.stream, channels.blocks, arguments.batch ? arguments.chunks : 1,
                          &arguments);
        if (!has_output || !given[0]) return;
        arguments.out = results[0];
        normalize.launch(context.stream, element_blocks(channels.base.size), &arguments);
      },
      partial + (has_output ? 3 * vector : 0), "cuda:batch_norm");
}

std::unique_ptr<Kernel> prepare_batch_norm_grad(const KernelRequest& request) {
  const BatchNormGradAttrs attrs(request.attrs);
  const Layout &grad = request.operands[0], &x = request.operands[1];
  const char* const compute = compute_name(x.dtype);
  if (!compute || !std::ranges::all_of(request.operands, is_plain_float)) return nullptr;
  if (x.size() == 0) return nullptr;
  auto channels = Channels::of(x.shape, attrs.data_format);
  if (!channels) return nullptr;
  const bool has_output = request.op.name() == "batch_norm_grad";
  const size_t first = has_output ? 1 : 0;
  const DType wide = computed_as(x.dtype);
  for (const size_t i : {2, 3})
    if (request.operands[i].dtype != wide) return nullptr;
  for (size_t i = first; i < request.results.size(); ++i)
    if (request.results[i].present && request.results[i].dtype != wide) return nullptr;
  channels->base.batch = attrs.batch_statistics ? 1 : 0;
  const char *const type = device_type(x.dtype), *const grad_type = device_type(grad.dtype),
                    *const weight = type_or(request, 4, compute);
  const std::string of_sums =
      str(compute, ", ", grad_type, ", ", type, ", ", channels->last ? "true" : "false");
  const auto program = channel_program(
      request,
      channel_entry("statistics", str("channel_grad_statistics<", of_sums, ", ", weight, ">")) +
          channel_entry("combine",
                        str("combine_channels<", compute, ", ", grad_type, ", ", type, ">")));
  const Entry statistics(program, "statistics"), combine(program, "combine");
  const size_t partial = channels->partial_bytes();
  const size_t vector = static_cast<size_t>(channels->base.channels) * sizeof(double);
  std::vector<bool> given;
  for (const Layout& result : request.results) given.push_back(result.present);
  return make_kernel(
      [=, channels = *channels](const RunContext& context, void* const* operands,
                                void* const* results) {
        ChannelArguments arguments = channels.base;
        ScratchVectors scratch{context.scratch + partial, vector};
        const auto result = [&](size_t i) {
          return first + i < given.size() && given[first + i] ? results[first + i] : nullptr;
        };
        arguments.grad = operands[0];
        arguments.x = operands[1];
        arguments.running_mean = operands[2];
        arguments.running_var = operands[3];
        arguments.weight = operands[4];
        arguments.partial = context.scratch;
        arguments.new_mean = result(0);
        arguments.new_var = result(1);
        arguments.scale = has_output ? scratch.take() : result(2);
        arguments.slope = has_output ? scratch.take() : result(3);
        arguments.shift = has_output ? scratch.take() : result(4);
        arguments.counters = context.stream->counters;
        statistics.launch(context.stream, channels.blocks, arguments.chunks, &arguments);
        if (!has_output || !given[0]) return;
        arguments.out = results[0];
        combine.launch(context.stream, element_blocks(channels.base.size), &arguments);
      },
      partial + (has_output ? 3 * vector : 0), "cuda:batch_norm");
}

}  // namespace paddle::cuda
