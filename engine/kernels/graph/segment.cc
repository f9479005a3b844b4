// segment_reduce and segment_pool: rows with equal ids combined.

#include <algorithm>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "kernels/common/convert.h"
#include "kernels/elementwise/elementwise.h"
#include "ops/generated/graph.h"

namespace paddle::cpu {
namespace {

enum class Reduce { kSum, kMean, kMax, kMin };

/// Combines columns [begin, end) of all rows.
template <class T>
void combine(Reduce how, const T* data, const int64_t* ids, int64_t rows, int64_t width,
             int64_t count, const std::vector<int32_t>& members, int64_t begin, int64_t end,
             T* out) {
  using C = std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;
  for (int64_t s = 0; s < count; ++s)
    std::fill(out + s * width + begin, out + s * width + end, T(0));
  std::vector<bool> seen(how == Reduce::kMax || how == Reduce::kMin ? static_cast<size_t>(count)
                                                                    : 0);
  for (int64_t r = 0; r < rows; ++r) {
    const T* const from = data + r * width;
    T* const to = out + ids[r] * width;
    if (how == Reduce::kSum || how == Reduce::kMean) {
      for (int64_t i = begin; i < end; ++i)
        to[i] = static_cast<T>(static_cast<C>(to[i]) + static_cast<C>(from[i]));
      continue;
    }
    const auto id = static_cast<size_t>(ids[r]);
    if (!seen[id]) {
      seen[id] = true;
      std::copy(from + begin, from + end, to + begin);
    } else if (how == Reduce::kMax) {
      for (int64_t i = begin; i < end; ++i)
        if (static_cast<C>(from[i]) > static_cast<C>(to[i]) || from[i] != from[i]) to[i] = from[i];
    } else {
      for (int64_t i = begin; i < end; ++i)
        if (static_cast<C>(from[i]) < static_cast<C>(to[i]) || from[i] != from[i]) to[i] = from[i];
    }
  }
  if (how != Reduce::kMean) return;
  for (int64_t s = 0; s < count; ++s)
    if (members[static_cast<size_t>(s)] > 1)
      for (int64_t i = begin; i < end; ++i) {
        T& value = out[s * width + i];
        value =
            static_cast<T>(static_cast<C>(value) / static_cast<C>(members[static_cast<size_t>(s)]));
      }
}

}  // namespace

std::unique_ptr<Kernel> prepare_segment_reduce(const KernelRequest& request) {
  const std::string word =
      request.attrs[static_cast<size_t>(request.op.attr_index("reduce"))].as_string();
  const Reduce how = word == "sum"    ? Reduce::kSum
                     : word == "mean" ? Reduce::kMean
                     : word == "max"  ? Reduce::kMax
                                      : Reduce::kMin;
  const Layout& data = request.operands[0];
  const int64_t rows = data.shape[0], width = rows == 0 ? 0 : data.size() / rows;
  const bool fixed = request.op.name() == "segment_reduce";
  const int64_t given = fixed ? request.results[0].shape[0] : 0;
  return visit_dtype(data.dtype, [&](auto tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    return make_kernel([=, shape = data.shape, op = std::string(request.op.name())](
                           const RunContext& context, void* const* operands, void* const* results) {
      const int64_t* const ids = static_cast<const int64_t*>(operands[1]);
      int64_t count = given;
      for (int64_t r = 0; r < rows; ++r) {
        if (ids[r] < 0 || (fixed && ids[r] >= given) || ids[r] >= int64_t{1} << 31)
          fail(ErrorCode::kData, op, ": the id ", ids[r], " is out of range",
               fixed ? str(" for ", given, " rows") : "");
        if (!fixed) count = std::max(count, ids[r] + 1);
      }
      T* out = static_cast<T*>(results[0]);
      if (!fixed) {
        Dims result = shape;
        result[0] = count;
        out = static_cast<T*>(context.allocator->allocate(0, result));
      }
      std::vector<int32_t> members(how == Reduce::kMean ? static_cast<size_t>(count) : 0);
      if (how == Reduce::kMean)
        for (int64_t r = 0; r < rows; ++r) ++members[static_cast<size_t>(ids[r])];
      if (rows == 0) {
        std::fill_n(out, element_count(std::span<const int64_t>(shape).subspan(1)) * count, T(0));
        return;
      }
      const T* const values = static_cast<const T*>(operands[0]);
      parallel_for(width, std::max<int64_t>(16, 65536 / (rows + 1)),
                   [&](int64_t begin, int64_t end) {
                     combine(how, values, ids, rows, width, count, members, begin, end, out);
                   });
    });
  });
}

}  // namespace paddle::cpu
