// Products of groups of rows, each with a matrix of its own. Threads share the rows evenly, however
// they are spread over the groups; a row's sums do not depend on the rows next to it.

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "kernels/common/convert.h"
#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "kernels/linalg/gemm.h"
#include "ops/core/kernel.h"
#include "ops/generated/transformer.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kMaxWorkers = 16;

/// The first row of each group, and the end of the last one.
void group_starts(const int64_t* counts, int64_t groups, int64_t rows, std::string_view name,
                  int64_t* starts) {
  starts[0] = 0;
  for (int64_t g = 0; g < groups; ++g) {
    if (counts[g] < 0 || counts[g] > rows - starts[g])
      fail(ErrorCode::kData, name, ": counts[", g, "] is ", counts[g], ", but ", rows - starts[g],
           " of ", rows, " rows are left");
    starts[g + 1] = starts[g] + counts[g];
  }
}

size_t aligned(int64_t items, size_t item) {
  return round_up_to_cache_line(static_cast<size_t>(items) * item);
}

/// An operand in the type C of the computation: itself, or converted into `scratch`.
template <class C, class T>
const C* in_compute_type(const void* operand, int64_t n, std::byte* scratch) {
  if constexpr (std::is_same_v<C, T>) {
    return static_cast<const C*>(operand);
  } else {
    C* const out = reinterpret_cast<C*>(scratch);
    const T* const in = static_cast<const T*>(operand);
    const ConvertFn convert = convert_fn(dtype_of<T>(), dtype_of<C>());
    parallel_for(n, 32768, [&](int64_t begin, int64_t end) {
      convert(in + begin, 1, out + begin, end - begin);
    });
    return out;
  }
}

/// c[m, n] of a block = a b, through a tile of C where results are narrower.
template <class C, class T>
void product_block(int64_t m, int64_t n, int64_t k, MatrixView<C> a, MatrixView<C> b, T* c,
                   int64_t stride, std::byte* scratch, size_t workspace_bytes) {
  if constexpr (std::is_same_v<C, T>) {
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * stride, n, C(0));
    gemm_block(m, n, k, a, b, c, stride, scratch);
  } else {
    C* const tile = reinterpret_cast<C*>(scratch + workspace_bytes);
    std::fill_n(tile, m * kGemmColumns, C(0));
    gemm_block(m, n, k, a, b, tile, kGemmColumns, scratch);
    const ConvertFn narrow = convert_fn(dtype_of<C>(), dtype_of<T>());
    for (int64_t i = 0; i < m; ++i) narrow(tile + i * kGemmColumns, 1, c + i * stride, n);
  }
}

/// The scratch memory of both kernels: starts of the groups, operands in C, memory of the workers.
template <class C, class T>
class GroupedKernel : public Kernel {
 public:
  GroupedKernel(int64_t groups, int64_t first_items, int64_t second_items)
      : groups_(groups), first_items_(first_items), second_items_(second_items) {
    constexpr bool kDirect = std::is_same_v<C, T>;
    starts_bytes_ = aligned(groups + 1, sizeof(int64_t));
    first_bytes_ = kDirect ? 0 : aligned(first_items, sizeof(C));
    second_bytes_ = kDirect ? 0 : aligned(second_items, sizeof(C));
    workspace_bytes_ = round_up_to_cache_line(gemm_workspace_bytes(sizeof(C)));
    worker_bytes_ = workspace_bytes_ + (kDirect ? 0 : aligned(kGemmRows * kGemmColumns, sizeof(C)));
  }
  size_t scratch_bytes() const override {
    return starts_bytes_ + first_bytes_ + second_bytes_ +
           worker_bytes_ * static_cast<size_t>(kMaxWorkers);
  }
  std::string implementation() const override { return "cpu:grouped_gemm"; }

 protected:
  int64_t* starts(std::byte* scratch) const { return reinterpret_cast<int64_t*>(scratch); }
  const C* first(const void* operand, std::byte* scratch) const {
    return in_compute_type<C, T>(operand, first_items_, scratch + starts_bytes_);
  }
  const C* second(const void* operand, std::byte* scratch) const {
    return in_compute_type<C, T>(operand, second_items_, scratch + starts_bytes_ + first_bytes_);
  }
  std::byte* workers(std::byte* scratch) const {
    return scratch + starts_bytes_ + first_bytes_ + second_bytes_;
  }

  int64_t groups_, first_items_, second_items_;
  size_t starts_bytes_, first_bytes_, second_bytes_, workspace_bytes_, worker_bytes_;
};

template <class C, class T>
class GroupedMatmul final : public GroupedKernel<C, T> {
 public:
  GroupedMatmul(int64_t groups, int64_t rows, int64_t in, int64_t out, bool transpose)
      : GroupedKernel<C, T>(groups, rows * in, groups * in * out),
        rows_(rows),
        in_(in),
        out_(out),
        transpose_(transpose) {}

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    int64_t* const starts = this->starts(context.scratch);
    group_starts(static_cast<const int64_t*>(operands[2]), this->groups_, rows_, "grouped_matmul",
                 starts);
    const C* const x = this->first(operands[0], context.scratch);
    const C* const weight = this->second(operands[1], context.scratch);
    T* const out = static_cast<T*>(results[0]);
    const int64_t used = starts[this->groups_];
    std::fill_n(out + used * out_, (rows_ - used) * out_, T{});
    const int64_t workers = std::min(kMaxWorkers, threads_for(used * in_ * out_));
    const auto run_rows = [&](int64_t begin, int64_t end, int64_t worker) {
      std::byte* const memory =
          this->workers(context.scratch) + static_cast<size_t>(worker) * this->worker_bytes_;
      for (int64_t g = 0; g < this->groups_; ++g) {
        const int64_t from = std::max(begin, starts[g]), to = std::min(end, starts[g + 1]);
        if (from >= to) continue;
        const C* const w = weight + g * in_ * out_;
        for (int64_t j = 0; j < out_; j += kGemmColumns) {
          const MatrixView<C> b =
              transpose_ ? MatrixView<C>{w + j * in_, 1, in_} : MatrixView<C>{w + j, out_, 1};
          for (int64_t i = from; i < to; i += kGemmRows)
            product_block<C, T>(std::min(kGemmRows, to - i), std::min(kGemmColumns, out_ - j), in_,
                                {x + i * in_, in_, 1}, b, out + i * out_ + j, out_, memory,
                                this->workspace_bytes_);
        }
      }
    };
    for_each_worker(used, workers, run_rows);
  }

 private:
  int64_t rows_, in_, out_;
  bool transpose_;
};

template <class C, class T>
class GroupedWeightGradient final : public GroupedKernel<C, T> {
 public:
  GroupedWeightGradient(int64_t groups, int64_t rows, int64_t in, int64_t out)
      : GroupedKernel<C, T>(groups, rows * in, rows * out), rows_(rows), in_(in), out_(out) {}

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    int64_t* const starts = this->starts(context.scratch);
    group_starts(static_cast<const int64_t*>(operands[2]), this->groups_, rows_,
                 "grouped_weight_gradient", starts);
    const C* const x = this->first(operands[0], context.scratch);
    const C* const grad = this->second(operands[1], context.scratch);
    T* const out = static_cast<T*>(results[0]);
    // A tile of all groups after the other, so that the threads have rows of all groups.
    const int64_t row_blocks = (in_ + kGemmRows - 1) / kGemmRows;
    const int64_t column_blocks = (out_ + kGemmColumns - 1) / kGemmColumns;
    const int64_t tasks = row_blocks * column_blocks * this->groups_;
    const int64_t workers =
        std::min({kMaxWorkers, tasks, threads_for(starts[this->groups_] * in_ * out_)});
    const auto run_block = [&](int64_t task, std::byte* memory) {
      const int64_t g = task % this->groups_, tile = task / this->groups_;
      const int64_t i = tile / column_blocks * kGemmRows, j = tile % column_blocks * kGemmColumns;
      product_block<C, T>(std::min(kGemmRows, in_ - i), std::min(kGemmColumns, out_ - j),
                          starts[g + 1] - starts[g], {x + starts[g] * in_ + i, 1, in_},
                          {grad + starts[g] * out_ + j, out_, 1}, out + (g * in_ + i) * out_ + j,
                          out_, memory, this->workspace_bytes_);
    };
    for_each_task(tasks, workers, this->workers(context.scratch), this->worker_bytes_, run_block);
  }

 private:
  int64_t rows_, in_, out_;
};

template <class F>
std::unique_ptr<Kernel> visit_computed(DType dtype, F&& f) {
  return visit_float(dtype, [&](auto tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    return f(C{}, T{});
  });
}

}  // namespace

std::unique_ptr<Kernel> prepare_grouped_matmul(const KernelRequest& request) {
  const bool transpose = GroupedMatmulAttrs(request.attrs).transpose;
  const Dims& x = request.operands[0].shape;
  return visit_computed(request.operands[0].dtype, [&](auto c, auto t) {
    return std::make_unique<GroupedMatmul<decltype(c), decltype(t)>>(
        request.operands[1].shape[0], x[0], x[1], request.results[0].shape[1], transpose);
  });
}

std::unique_ptr<Kernel> prepare_grouped_weight_gradient(const KernelRequest& request) {
  const Dims& x = request.operands[0].shape;
  return visit_computed(request.operands[0].dtype, [&](auto c, auto t) {
    return std::make_unique<GroupedWeightGradient<decltype(c), decltype(t)>>(
        request.results[0].shape[0], x[0], x[1], request.operands[1].shape[1]);
  });
}

}  // namespace paddle::cpu
