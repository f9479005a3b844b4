// Sorting tokens by expert, and their rows there and back.

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/parallel.h"
#include "kernels/common/convert.h"
#include "ops/core/kernel.h"
#include "ops/generated/transformer.h"

namespace paddle::cpu {
namespace {

int64_t pair_at(const int64_t* order, int64_t i, int64_t pairs, const char* name) {
  if (order[i] < 0 || order[i] >= pairs)
    fail(ErrorCode::kData, name, ": order has ", order[i], ", but there are ", pairs, " pairs");
  return order[i];
}

}  // namespace

// A stable counting sort: pairs of an expert stay in the order of tokens.
std::unique_ptr<Kernel> prepare_expert_order(const KernelRequest& request) {
  const int64_t count = ExpertOrderAttrs(request.attrs).count;
  const int64_t pairs = request.operands[0].size();
  const DType dtype = request.operands[0].dtype;
  const ConvertFn read = convert_fn(dtype, DType::kI64);
  const size_t scratch = static_cast<size_t>(pairs + count) * sizeof(int64_t);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        int64_t* const index = reinterpret_cast<int64_t*>(context.scratch);
        int64_t* const next = index + pairs;
        int64_t* const order = static_cast<int64_t*>(results[0]);
        int64_t* const counts = static_cast<int64_t*>(results[1]);
        read(operands[0], 1, index, pairs);
        std::fill_n(counts, count, 0);
        for (int64_t i = 0; i < pairs; ++i) {
          if (index[i] < 0 || index[i] >= count)
            fail(ErrorCode::kData, "expert_order: index has ", index[i], ", but there are ", count,
                 " experts");
          ++counts[index[i]];
        }
        int64_t first = 0;
        for (int64_t e = 0; e < count; ++e) {
          next[e] = first;
          first += counts[e];
        }
        for (int64_t i = 0; i < pairs; ++i) order[next[index[i]]++] = i;
      },
      scratch);
}

std::unique_ptr<Kernel> prepare_expert_rows(const KernelRequest& request) {
  const int64_t k = ExpertRowsAttrs(request.attrs).k;
  const Layout& x = request.operands[0];
  const int64_t pairs = request.operands[1].size();
  const size_t bytes = static_cast<size_t>(x.shape[1] * item_size(x.dtype));
  const int64_t grain = std::max<int64_t>(1, 65536 / static_cast<int64_t>(bytes + 1));
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    const std::byte* const rows = static_cast<const std::byte*>(operands[0]);
    const int64_t* const order = static_cast<const int64_t*>(operands[1]);
    std::byte* const out = static_cast<std::byte*>(results[0]);
    parallel_for(pairs, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t token = pair_at(order, i, pairs, "expert_rows") / k;
        std::memcpy(out + static_cast<size_t>(i) * bytes, rows + static_cast<size_t>(token) * bytes,
                    bytes);
      }
    });
  });
}

// A token's rows are added in the order of its choices, whatever the order of the experts.
std::unique_ptr<Kernel> prepare_expert_sum(const KernelRequest& request) {
  const Layout& y = request.operands[0];
  const int64_t pairs = y.shape[0], width = y.shape[1], tokens = request.results[0].shape[0];
  const bool weighted = request.operands.size() > 2 && request.operands[2].present;
  const int64_t k = tokens > 0 ? pairs / tokens : 1;
  return visit_float(y.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = typename Accumulator<T>::type;
    const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, k * width));
    return make_kernel(
        [=](const RunContext& context, void* const* operands, void* const* results) {
          const T* const rows = static_cast<const T*>(operands[0]);
          const int64_t* const order = static_cast<const int64_t*>(operands[1]);
          const T* const weights = weighted ? static_cast<const T*>(operands[2]) : nullptr;
          T* const out = static_cast<T*>(results[0]);
          int64_t* const place = reinterpret_cast<int64_t*>(context.scratch);
          std::fill_n(place, pairs, int64_t{-1});
          for (int64_t i = 0; i < pairs; ++i) {
            int64_t& at = place[pair_at(order, i, pairs, "expert_sum")];
            if (at >= 0) fail(ErrorCode::kData, "expert_sum: order has pair ", order[i], " twice");
            at = i;
          }
          parallel_for(tokens, grain, [&](int64_t begin, int64_t end) {
            constexpr int64_t kColumns = 512;
            C sum[kColumns];
            for (int64_t t = begin; t < end; ++t) {
              for (int64_t first = 0; first < width; first += kColumns) {
                const int64_t n = std::min(kColumns, width - first);
                std::fill_n(sum, n, C(0));
                for (int64_t j = 0; j < k; ++j) {
                  const T* const row = rows + place[t * k + j] * width + first;
                  const C weight = weights ? static_cast<C>(weights[t * k + j]) : C(1);
                  for (int64_t i = 0; i < n; ++i) sum[i] += weight * static_cast<C>(row[i]);
                }
                T* const target = out + t * width + first;
                for (int64_t i = 0; i < n; ++i) target[i] = static_cast<T>(sum[i]);
              }
            }
          });
        },
        static_cast<size_t>(pairs) * sizeof(int64_t));
  });
}

}  // namespace paddle::cpu
