// Embedding lookup, its gradient, and one-hot vectors.

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "kernels/common/convert.h"
#include "ops/core/kernel.h"
#include "ops/generated/nn.h"

namespace paddle::cpu {
namespace {

/// Indices of any integer type.
class Indices {
 public:
  explicit Indices(DType dtype) : read_(convert_fn(dtype, DType::kI64)), item_(item_size(dtype)) {}
  int64_t at(const void* indices, int64_t i) const {
    int64_t value;
    read_(static_cast<const std::byte*>(indices) + i * item_, 1, &value, 1);
    return value;
  }

 private:
  ConvertFn read_;
  int64_t item_;
};

void check_row(int64_t row, int64_t rows) {
  if (row < 0 || row >= rows)
    fail(ErrorCode::kData, "embedding: index ", row, " is outside of the table's ", rows, " rows");
}

}  // namespace

std::unique_ptr<Kernel> prepare_embedding(const KernelRequest& request) {
  const EmbeddingAttrs attrs(request.attrs);
  const Indices indices(request.operands[0].dtype);
  const Layout& weight = request.operands[1];
  const int64_t rows = weight.shape[0], count = request.operands[0].size();
  const size_t bytes = static_cast<size_t>(weight.shape[1] * item_size(weight.dtype));
  int64_t padding = attrs.padding_idx.value_or(INT64_MIN);
  if (padding < 0 && attrs.padding_idx) padding += rows;
  const int64_t grain = std::max<int64_t>(1, 65536 / static_cast<int64_t>(bytes + 1));
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    const std::byte* const table = static_cast<const std::byte*>(operands[1]);
    std::byte* const out = static_cast<std::byte*>(results[0]);
    parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = indices.at(operands[0], i);
        check_row(row, rows);
        std::byte* const target = out + static_cast<size_t>(i) * bytes;
        if (row == padding)
          std::memset(target, 0, bytes);
        else
          std::memcpy(target, table + static_cast<size_t>(row) * bytes, bytes);
      }
    });
  });
}

namespace {

/// The gradient in a 16-bit type: occurrences are sorted by row, and each row is summed in C and
/// rounded once.
template <class T, class C>
std::unique_ptr<Kernel> rounded_embedding_grad(const Indices& indices, int64_t count, int64_t rows,
                                               int64_t width, int64_t padding) {
  struct Occurrence {
    int64_t row, at;
  };
  constexpr int64_t kColumns = 1024;
  const ConvertFn round = convert_fn(dtype_of<C>(), dtype_of<T>());
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const T* const grad = static_cast<const T*>(operands[1]);
        T* const out = static_cast<T*>(results[0]);
        Occurrence* const occurrences = reinterpret_cast<Occurrence*>(context.scratch);
        int64_t count_kept = 0;
        for (int64_t i = 0; i < count; ++i) {
          const int64_t row = indices.at(operands[0], i);
          if (row == padding) continue;
          check_row(row, rows);
          occurrences[count_kept++] = {row, i};
        }
        std::sort(occurrences, occurrences + count_kept,
                  [](const Occurrence& a, const Occurrence& b) {
                    return a.row != b.row ? a.row < b.row : a.at < b.at;
                  });
        parallel_for(rows * width, 65536,
                     [&](int64_t begin, int64_t end) { std::fill(out + begin, out + end, T{}); });
        // Parallel over columns, not rows: the load is balanced however often an index occurs.
        const int64_t grain = std::max<int64_t>(16, 32768 / std::max<int64_t>(1, count));
        parallel_for(width, grain, [&](int64_t first, int64_t last) {
          C sum[kColumns];
          for (int64_t begin = first; begin < last; begin += kColumns) {
            const int64_t n = std::min(kColumns, last - begin);
            for (int64_t i = 0; i < count_kept;) {
              const int64_t row = occurrences[i].row;
              std::fill_n(sum, n, C(0));
              for (; i < count_kept && occurrences[i].row == row; ++i) {
                const T* const g = grad + occurrences[i].at * width + begin;
                for (int64_t j = 0; j < n; ++j) sum[j] += static_cast<C>(g[j]);
              }
              round(sum, 1, out + row * width + begin, n);
            }
          }
        });
      },
      static_cast<size_t>(count) * sizeof(Occurrence));
}

}  // namespace

// Each thread sums its own columns, so that the order of additions is that of the indices whatever
// the number of threads.
std::unique_ptr<Kernel> prepare_embedding_grad(const KernelRequest& request) {
  const EmbeddingGradAttrs attrs(request.attrs);
  const Indices indices(request.operands[0].dtype);
  const int64_t count = request.operands[0].size(), width = request.results[0].shape[1];
  const int64_t rows = request.results[0].shape[0];
  int64_t padding = attrs.padding_idx.value_or(INT64_MIN);
  if (padding < 0 && attrs.padding_idx) padding += rows;
  return visit_float(request.operands[1].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = typename Accumulator<T>::type;
    if constexpr (!std::is_same_v<C, T>) {
      return rounded_embedding_grad<T, C>(indices, count, rows, width, padding);
    } else {
      return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
        const T* const grad = static_cast<const T*>(operands[1]);
        T* const sums = static_cast<T*>(results[0]);
        // Parallel over columns, not rows: the load is balanced however often an index occurs.
        const int64_t grain = std::max<int64_t>(16, 32768 / std::max<int64_t>(1, count));
        parallel_for(rows * width, 65536, [&](int64_t begin, int64_t end) {
          std::fill(sums + begin, sums + end, T(0));
        });
        parallel_for(width, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = 0; i < count; ++i) {
            const int64_t row = indices.at(operands[0], i);
            if (row == padding) continue;
            check_row(row, rows);
            T* const sum = sums + row * width;
            const T* const g = grad + i * width;
            for (int64_t j = begin; j < end; ++j) sum[j] += g[j];
          }
        });
      });
    }
  });
}

std::unique_ptr<Kernel> prepare_one_hot(const KernelRequest& request) {
  const Indices indices(request.operands[0].dtype);
  const int64_t count = request.operands[0].size(), classes = request.results[0].shape.back();
  if (request.results[0].dtype != DType::kF32) return nullptr;
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    float* const out = static_cast<float*>(results[0]);
    std::fill_n(out, count * classes, 0.0f);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = indices.at(operands[0], i);
      if (at < 0 || at >= classes)
        fail(ErrorCode::kData, "one_hot: index ", at, " is outside of [0, ", classes, ")");
      out[i * classes + at] = 1;
    }
  });
}

}  // namespace paddle::cpu
