#include "kernels/cuda/sort.h"

#include <algorithm>
#include <bit>

#include "kernels/common/rows.h"
#include "kernels/cuda/prepare.h"
#include "ops/generated/sorting.h"

namespace paddle::cuda {
namespace {

/// As in device/sort.cuh.
struct SortArguments {
  const void *x, *values;
  void *out, *indices;
  void* keys;
  void* places;
  int64_t rows, length, inner, limit;
  int64_t padded;
  int64_t width, distance;
  int64_t count, per_row;
  int descending, right;
};

std::shared_ptr<Program> sort_program(const KernelRequest& request, const std::string& kernels) {
  return start_program(request, program_text({"sort"}, kernels));
}

std::string sort_entry(std::string_view name, const std::string& call) {
  return entry_text(name, "SortArguments", call);
}

}  // namespace

std::unique_ptr<Kernel> prepare_sort_pairs(const KernelRequest& request) {
  constexpr int64_t kMaxRanked = 4096, kMaxLength = int64_t{1} << 31;
  const SortPairsAttrs attrs(request.attrs);
  const Layout& x = request.operands[0];
  const cpu::Rows rows = cpu::Rows::of(x.shape, attrs.axis);
  SortArguments base{};
  base.rows = rows.count();
  base.length = rows.length;
  base.inner = rows.inner;
  base.limit = x.shape.empty() || attrs.limit < 0 ? rows.length : attrs.limit;
  base.descending = attrs.descending ? 1 : 0;
  // An axis of symbolic size may turn out to be too short.
  if (base.limit > base.length)
    fail(ErrorCode::kUsage, "topk: k is ", base.limit, ", the axis has ", base.length, " elements");
  if (!is_plain(x) || base.length >= kMaxLength) return nullptr;
  if (base.rows * base.limit == 0) return nothing_to_do();
  const bool ranks = base.length <= kMaxRanked;
  base.padded =
      ranks ? base.length : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(base.length)));
  const char* const type = device_type(x.dtype);
  const auto program =
      sort_program(request, sort_entry("keys", str("make_keys<", type, ">")) +
                                (ranks ? sort_entry("rank", str("sort_by_rank<", type, ">"))
                                       : sort_entry("bitonic", "bitonic_step") +
                                             sort_entry("take", str("take_sorted<", type, ">"))));
  const Entry keys(program, "keys"), rank(program, "rank"), bitonic(program, "bitonic"),
      take(program, "take");
  const bool has_indices = request.results.size() > 1 && request.results[1].present;
  const auto size = static_cast<size_t>(base.rows * base.padded);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        SortArguments arguments = base;
        arguments.x = operands[0];
        arguments.out = results[0];
        arguments.indices = has_indices ? results[1] : nullptr;
        arguments.keys = context.scratch;
        arguments.places = ranks ? nullptr : context.scratch + size * sizeof(uint64_t);
        keys.launch(context.stream, element_blocks(base.rows * base.padded), &arguments);
        if (ranks) {
          const int64_t blocks = base.rows * cpu::ceil_div(base.length, kBlockThreads);
          rank.launch(context.stream, task_blocks(blocks), &arguments);
          return;
        }
        for (int64_t width = 2; width <= base.padded; width *= 2)
          for (int64_t distance = width / 2; distance > 0; distance /= 2) {
            arguments.width = width;
            arguments.distance = distance;
            bitonic.launch(context.stream, element_blocks(base.rows * base.padded / 2), &arguments);
          }
        take.launch(context.stream, element_blocks(base.rows * base.limit), &arguments);
      },
      size * (sizeof(uint64_t) + (ranks ? 0 : sizeof(uint32_t))), "cuda:sort");
}

std::unique_ptr<Kernel> prepare_searchsorted(const KernelRequest& request) {
  const SearchsortedAttrs attrs(request.attrs);
  const Layout &sequence = request.operands[0], &values = request.operands[1];
  if (!is_plain(sequence) || !is_plain(values) || sequence.shape.empty()) return nullptr;
  SortArguments base{};
  base.length = sequence.shape.back();
  base.count = values.size();
  base.right = attrs.right ? 1 : 0;
  const bool is_one_row = sequence.shape.size() == 1 || values.shape.empty();
  base.per_row = std::max<int64_t>(1, is_one_row ? base.count : values.shape.back());
  if (base.count == 0) return nothing_to_do();
  const Entry entry(
      sort_program(request,
                   sort_entry("search", str("search_rows<", device_type(sequence.dtype),
                                            attrs.out_int32 ? ", int32_t>" : ", int64_t>"))),
      "search");
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        SortArguments arguments = base;
        arguments.x = operands[0];
        arguments.values = operands[1];
        arguments.out = results[0];
        entry.launch(context.stream, element_blocks(base.count), &arguments);
      },
      0, "cuda:sort");
}

}  // namespace paddle::cuda
