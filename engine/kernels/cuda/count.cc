#include "kernels/cuda/count.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/common/unique_options.h"
#include "kernels/cuda/prepare.h"
#include "kernels/cuda/sorted.h"
#include "kernels/cuda/waiting.h"
#include "ops/generated/sorting.h"

namespace paddle::cuda {
namespace {

/// As in device/count.cuh.
struct CountArguments {
  const void *x, *weights;
  const void* sorted;
  const void* order;
  void* places;
  void *out, *indices, *inverse, *numbers;
  void* starts;
  void* range;
  void* counts;
  CUdeviceptr counters;
  int64_t size, chunk;
  int64_t outer, length, inner;
  int64_t runs, rows, bins;
  double low, high;
  int density;
};

std::string count_entry(std::string_view name, const std::string& call) {
  return entry_text(name, "CountArguments", call);
}

std::shared_ptr<Program> count_program(const KernelRequest& request, const std::string& kernels) {
  return start_program(request, program_text({"sort", "select", "count"}, kernels));
}

/// Sorts x and enters the results.
void run_sorted(const Sorted& sorted, const RunContext& context, const void* x,
                CountArguments& arguments) {
  const Sorted::Places places = sorted.run(context, x);
  arguments.sorted = places.values;
  arguments.order = places.order;
}

}  // namespace

std::unique_ptr<Kernel> prepare_mode(const KernelRequest& request) {
  const Layout& x = request.operands[0];
  const int64_t axis = ModeAttrs(request.attrs).axis;
  const cpu::Rows rows = cpu::Rows::of(x.shape, axis);
  if (rows.length == 0) fail(ErrorCode::kUsage, "mode: the axis is empty");
  if (!is_plain(x)) return nullptr;
  if (x.size() == 0) return nothing_to_do();
  Scratch scratch;
  const Sorted sorted(request, x.dtype, x.shape, x.shape.empty() ? 0 : axis, scratch);
  if (!sorted) return nullptr;
  CountArguments base{};
  base.rows = rows.count();
  base.length = rows.length;
  base.inner = rows.inner;
  const Entry modes(
      count_program(request, count_entry("modes", str("mode_rows<", device_type(x.dtype), ">"))),
      "modes");
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        CountArguments arguments = base;
        run_sorted(sorted, context, operands[0], arguments);
        arguments.x = operands[0];
        arguments.out = results[0];
        arguments.indices = results[1];
        modes.launch(context.stream, task_blocks(base.rows), &arguments);
      },
      scratch.bytes(), "cuda:count");
}

std::unique_ptr<Kernel> prepare_unique(const KernelRequest& request) {
  constexpr int64_t kMaxRanked = 4096, kMaxChunks = 4096, kMinChunk = 1024;
  const cpu::UniqueOptions options = cpu::unique_options(request);
  const Layout& x = request.operands[0];
  if (!is_plain(x)) return nullptr;
  const cpu::Rows& rows = options.rows;
  const bool consecutive = options.consecutive;
  const bool single = rows.outer == 1 && rows.inner == 1, ranks = rows.length <= kMaxRanked;
  if (!consecutive && !single && !ranks) return nullptr;
  Scratch scratch;
  std::optional<Sorted> sorted;
  if (!consecutive && !ranks) {
    sorted.emplace(request, x.dtype, options.shape, 0, scratch);
    if (!*sorted) return nullptr;
  }
  CountArguments base{};
  base.size = base.length = rows.length;
  base.outer = rows.outer;
  base.inner = rows.inner;
  base.chunk = std::max(kMinChunk, (base.size + kMaxChunks - 1) / kMaxChunks);
  const int64_t chunks = std::max<int64_t>(1, (base.size + base.chunk - 1) / base.chunk);
  const size_t places = scratch.add(base.size * 8), starts = scratch.add(base.size * 8),
               counts = scratch.add((chunks + 1) * 8);
  const char* const type = device_type(x.dtype);
  const auto program = count_program(
      request, count_entry("rank", str("rank_slices<", type, ">")) +
                   count_entry("count", str("count_selected<Runs<", type, ">>")) +
                   count_entry("begin", str("store_selected<Runs<", type, ">>")) +
                   count_entry("slices", str("store_slices<", type, ">")) +
                   count_entry("numbers", str("store_run_numbers<",
                                              options.is_int64 ? "int64_t" : "int32_t", ">")));
  const Entry rank(program, "rank"), count(program, "count"), begin(program, "begin"),
      slices(program, "slices"), numbers(program, "numbers");
  const Device device = request.target.device;
  return waiting_kernel(
      [=](const RunContext& context, void* const* operands, void* const*) {
        CountArguments arguments = base;
        if (sorted) run_sorted(*sorted, context, operands[0], arguments);
        arguments.x = operands[0];
        arguments.places = context.scratch + places;
        arguments.starts = context.scratch + starts;
        arguments.counts = context.scratch + counts;
        arguments.counters = context.stream->counters;
        if (!consecutive && ranks && base.size > 0) {
          rank.launch(context.stream, task_blocks(base.size), &arguments);
          arguments.order = arguments.places;
        }
        count.launch(context.stream, chunks, &arguments);
        read_back(context, device, &arguments.runs,
                  context.scratch + counts + static_cast<size_t>(chunks) * 8, 8);
        Dims result = options.shape;
        result[options.axis] = arguments.runs;
        arguments.out = context.allocator->allocate(0, result);
        size_t next = 1;
        if (options.with_index)
          arguments.indices = context.allocator->allocate(next++, {arguments.runs});
        if (options.with_inverse)
          arguments.inverse = context.allocator->allocate(next++, {base.size});
        if (options.with_counts)
          arguments.numbers = context.allocator->allocate(next, {arguments.runs});
        if (arguments.runs == 0) return;
        begin.launch(context.stream, chunks, &arguments);
        slices.launch(context.stream, element_blocks(arguments.runs * base.outer * base.inner),
                      &arguments);
        if (options.with_index || options.with_inverse || options.with_counts)
          numbers.launch(context.stream, element_blocks(base.size), &arguments);
      },
      scratch.bytes(), "cuda:count");
}

std::unique_ptr<Kernel> prepare_bincount(const KernelRequest& request) {
  constexpr int64_t kMaxBins = int64_t{1} << 40;
  const int64_t minlength = BincountAttrs(request.attrs).minlength;
  const Layout& x = request.operands[0];
  const bool weighted = request.operands.size() > 1 && request.operands[1].present;
  const DType weight_type = weighted ? request.operands[1].dtype : DType::kF64;
  // Large values of uint64 are negative ones of int64 on the CPU.
  if (!is_plain(x) || x.dtype == DType::kU64 || x.dtype == DType::kBool ||
      (weighted && !is_plain(request.operands[1])))
    return nullptr;
  Scratch scratch;
  const Dims flat{x.size()};
  std::optional<Sorted> sorted;
  if (x.size() > 0) {
    sorted.emplace(request, x.dtype, flat, 0, scratch);
    if (!*sorted) return nullptr;
  }
  CountArguments base{};
  base.size = x.size();
  const char* const sum = !weighted ? "int64_t" : weight_type == DType::kF32 ? "float" : "double";
  const Entry count(
      count_program(request, count_entry("count", str("count_integers<", device_type(x.dtype), ", ",
                                                      device_type(weight_type), ", ", sum, ">"))),
      "count");
  const Device device = request.target.device;
  const auto load = cpu::convert_fn(x.dtype, DType::kI64);
  const auto item = static_cast<size_t>(item_size(x.dtype));
  return waiting_kernel(
      [=](const RunContext& context, void* const* operands, void* const*) {
        CountArguments arguments = base;
        int64_t most = -1;
        if (sorted) {
          run_sorted(*sorted, context, operands[0], arguments);
          const auto* const values = static_cast<const std::byte*>(arguments.sorted);
          const auto element = [&](int64_t i) {
            std::byte bytes[8] = {};
            read_back(context, device, bytes, values + static_cast<size_t>(i) * item, item);
            int64_t value = 0;
            load(bytes, 1, &value, 1);
            return value;
          };
          const int64_t least = element(0);
          if (least < 0) fail(ErrorCode::kData, "bincount: x must not be negative, found ", least);
          most = element(base.size - 1);
        }
        if (most >= kMaxBins)
          fail(ErrorCode::kData, "bincount: ", most, " would need too many bins");
        arguments.bins = std::max(minlength, most + 1);
        arguments.weights = weighted ? operands[1] : nullptr;
        arguments.out = context.allocator->allocate(0, {arguments.bins});
        if (arguments.bins > 0)
          count.launch(context.stream, element_blocks(arguments.bins), &arguments);
      },
      scratch.bytes(), "cuda:count");
}

std::unique_ptr<Kernel> prepare_histogram(const KernelRequest& request) {
  constexpr int64_t kMaxBlocks = 1024;
  const HistogramAttrs attrs(request.attrs);
  const Layout &x = request.operands[0], &result = request.results[0];
  const bool weighted = request.operands.size() > 1 && request.operands[1].present;
  const DType weight_type = weighted ? request.operands[1].dtype : DType::kF64;
  if (!is_plain(x) || !device_type(result.dtype) || (weighted && !is_plain(request.operands[1])))
    return nullptr;
  Scratch scratch;
  const Sorted sorted(request, DType::kI64, {x.size()}, 0, scratch);
  if (!sorted) return nullptr;
  const int64_t blocks = std::min(kMaxBlocks, element_blocks(x.size()));
  const size_t range = scratch.add((blocks + 1) * 16), places = scratch.add(x.size() * 8),
               sums = scratch.add(attrs.bins * 8);
  CountArguments base{};
  base.size = x.size();
  base.bins = attrs.bins;
  base.density = attrs.density ? 1 : 0;
  const char* const type = device_type(x.dtype);
  const auto program = count_program(
      request, count_entry("range", str("find_range<", type, ">")) +
                   count_entry("bins", str("find_bins<", type, ">")) +
                   count_entry("count", str("count_integers<int64_t, ", device_type(weight_type),
                                            ", double>")) +
                   count_entry("store", str("store_histogram<", device_type(result.dtype), ">")));
  const Entry find_range(program, "range"), find_bins(program, "bins"), count(program, "count"),
      store(program, "store");
  const Device device = request.target.device;
  const bool searches = attrs.min == 0 && attrs.max == 0 && x.size() > 0;
  const auto run = [=, min = attrs.min, max = attrs.max](
                       const RunContext& context, void* const* operands, void* const* results) {
    CountArguments arguments = base;
    arguments.x = operands[0];
    arguments.range = context.scratch + range;
    arguments.places = context.scratch + places;
    arguments.counters = context.stream->counters;
    double limits[2] = {min, max};
    if (searches) {
      find_range.launch(context.stream, blocks, &arguments);
      read_back(context, device, limits, arguments.range, sizeof limits);
    }
    if (limits[0] == limits[1]) {
      limits[0] -= 1;
      limits[1] += 1;
    }
    if (!std::isfinite(limits[0]) || !std::isfinite(limits[1]))
      fail(ErrorCode::kData, "histogram: the range [", limits[0], ", ", limits[1],
           "] is not finite");
    arguments.low = limits[0];
    arguments.high = limits[1];
    if (base.size > 0) {
      find_bins.launch(context.stream, element_blocks(base.size), &arguments);
      run_sorted(sorted, context, arguments.places, arguments);
    }
    arguments.weights = weighted ? operands[1] : nullptr;
    arguments.out = arguments.numbers = context.scratch + sums;
    count.launch(context.stream, element_blocks(base.bins), &arguments);
    arguments.out = results[0];
    store.launch(context.stream, 1, &arguments);
  };
  return waiting_kernel(run, scratch.bytes(), "cuda:count");
}

}  // namespace paddle::cuda
