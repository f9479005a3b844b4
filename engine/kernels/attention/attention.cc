// Scaled dot-product attention and its gradient. Queries are processed in blocks of rows, whose
// scores for all keys fit in the L2 cache; the gradient recomputes the scores.
// Dao et al., "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", 2022.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/common/convert.h"
#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/linalg/gemm.h"
#include "kernels/reduce/reduce_simd.h"
#include "ops/core/kernel.h"
#include "ops/generated/sequence.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kQueryRows = 48;  // queries per block: a multiple of the GEMM tile

struct Sizes {
  int64_t batch, queries, keys, heads, width, value_width;
  bool causal;
  double scale;
  Sizes(const Dims& q, const Dims& k, const Dims& v, double factor, bool is_causal)
      : batch(q[0]),
        queries(q[1]),
        keys(k[1]),
        heads(q[2]),
        width(q[3]),
        value_width(v[3]),
        causal(is_causal),
        scale(factor) {}
  /// Keys that the queries before `end` can attend to.
  int64_t visible_keys(int64_t end) const { return causal ? std::min(keys, end) : keys; }
};

/// One operand: the rows of one head as a matrix in C, read in place or converted to a buffer.
template <class C>
struct HeadReader {
  explicit HeadReader(const Layout& l) : layout(l) {
    if (l.dtype != dtype_of<C>() || l.strides[3] != 1) convert = convert_fn(l.dtype, dtype_of<C>());
  }
  size_t buffer_bytes() const {
    return convert ? round_up_to_cache_line(static_cast<size_t>(layout.shape[1] * layout.shape[3]) *
                                            sizeof(C))
                   : 0;
  }
  /// [sequence, dim] of (batch, head).
  MatrixView<C> read(const void* base, int64_t b, int64_t h, void* buffer) const {
    const int64_t item = item_size(layout.dtype);
    const std::byte* const start = static_cast<const std::byte*>(base) +
                                   (b * layout.strides[0] + h * layout.strides[2]) * item;
    if (!convert) return {reinterpret_cast<const C*>(start), layout.strides[1], layout.strides[3]};
    const int64_t width = layout.shape[3];
    C* const out = static_cast<C*>(buffer);
    for (int64_t s = 0; s < layout.shape[1]; ++s)
      convert(start + s * layout.strides[1] * item, layout.strides[3], out + s * width, width);
    return {out, width, 1};
  }
  Layout layout;
  ConvertFn convert = nullptr;
};

template <class C>
MatrixView<C> rows_from(MatrixView<C> m, int64_t row) {
  m.data += row * m.row_stride;
  return m;
}
template <class C>
MatrixView<C> transposed(MatrixView<C> m) {
  return {m.data, m.column_stride, m.row_stride};
}

/// A mask broadcast to [batch, heads, queries, keys]: added to the scores, or for bool masks false
/// where excluded.
struct Mask {
  Mask() = default;
  Mask(const Layout& l, const Sizes& s) : present(true), is_bool(l.dtype == DType::kBool) {
    dtype = l.dtype;
    const int64_t full[4] = {s.batch, s.heads, s.queries, s.keys};
    const size_t missing = 4 - l.shape.size();
    for (size_t d = 0; d < 4; ++d)
      strides[d] =
          d < missing || (l.shape[d - missing] == 1 && full[d] != 1) ? 0 : l.strides[d - missing];
  }
  /// Applies row `query` to n scores.
  template <class C>
  void apply(const void* base, int64_t b, int64_t h, int64_t query, C* scores, int64_t n,
             C* buffer) const {
    const std::byte* const row =
        static_cast<const std::byte*>(base) +
        (b * strides[0] + h * strides[1] + query * strides[2]) * item_size(dtype);
    if (is_bool) {
      const bool* const keep = reinterpret_cast<const bool*>(row);
      for (int64_t j = 0; j < n; ++j)
        if (!keep[j * strides[3]]) scores[j] = -std::numeric_limits<C>::infinity();
      return;
    }
    convert_fn(dtype, dtype_of<C>())(row, strides[3], buffer, n);
    for (int64_t j = 0; j < n; ++j) scores[j] += buffer[j];
  }
  bool present = false, is_bool = false;
  DType dtype = DType::kF32;
  int64_t strides[4] = {};
};

/// Shared by both kernels: operands, sizes, and the scores of a block of queries.
template <class C>
struct AttentionProblem {
  AttentionProblem(const KernelRequest& request, size_t first, double scale, bool causal)
      : query(request.operands[first]),
        key(request.operands[first + 1]),
        value(request.operands[first + 2]),
        sizes(query.layout.shape, key.layout.shape, value.layout.shape, scale, causal) {
    if (request.operands[first + 3].present) mask = Mask(request.operands[first + 3], sizes);
  }

  /// Fills scores[rows, visible keys] of the queries [begin, end), scaled and masked, and returns
  /// the number of visible keys. `keys` holds the transposed keys, packed.
  int64_t fill_scores(MatrixView<C> q, const C* keys, const void* mask_data, int64_t b, int64_t h,
                      int64_t begin, int64_t end, C* scores, C* mask_row, void* workspace) const {
    const int64_t visible = sizes.visible_keys(end), rows = end - begin;
    multiply(PackedProduct<C>{rows, visible, sizes.width, rows_from(q, begin), keys, sizes.width,
                              static_cast<C>(sizes.scale), false, scores, pitch()},
             workspace);
    for (int64_t r = 0; r < rows; ++r) {
      C* const row = scores + r * pitch();
      if (mask.present) mask.apply(mask_data, b, h, begin + r, row, visible, mask_row);
      if (sizes.causal)
        std::fill(row + std::min(visible, begin + r + 1), row + visible,
                  -std::numeric_limits<C>::infinity());
    }
    return visible;
  }

  /// Row stride of the scores; not a power of two, whose rows would map to few cache sets.
  int64_t pitch() const { return round_up(sizes.keys, 16) + 16; }
  size_t scores_bytes() const {
    return round_up_to_cache_line(static_cast<size_t>(kQueryRows * pitch()) * sizeof(C));
  }
  size_t row_bytes() const {
    return round_up_to_cache_line(static_cast<size_t>(sizes.keys) * sizeof(C));
  }
  size_t workspace_bytes() const {
    const int64_t depth =
        std::max({sizes.keys, sizes.width, sizes.value_width, int64_t{kQueryRows}});
    return round_up_to_cache_line(packed_product_workspace_bytes(depth, sizeof(C)));
  }

  HeadReader<C> query, key, value;
  Sizes sizes;
  Mask mask;
};

template <class C>
size_t packed_size(int64_t depth, int64_t columns) {
  return round_up_to_cache_line(packed_bytes(depth, columns, sizeof(C)));
}

/// Heads that are computed at a time, each with its own scratch.
int64_t workers_for(int64_t tasks) { return std::min<int64_t>(tasks, thread_count()); }

template <class T>
std::unique_ptr<Kernel> attention(const KernelRequest& request) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const AttentionAttrs attrs(request.attrs);
  const AttentionProblem<C> problem(request, 0, attrs.scale, attrs.is_causal);
  const Sizes s = problem.sizes;
  const int64_t tasks = s.batch * s.heads;
  const size_t gemm = problem.workspace_bytes();
  const size_t readers =
      problem.query.buffer_bytes() + problem.key.buffer_bytes() + problem.value.buffer_bytes();
  const size_t keys_bytes = packed_size<C>(s.width, s.keys);
  const size_t values_bytes = packed_size<C>(s.keys, s.value_width);
  const size_t out_bytes =
      round_up_to_cache_line(static_cast<size_t>(kQueryRows * s.value_width) * sizeof(C));
  const size_t worker_bytes = gemm + readers + keys_bytes + values_bytes + problem.scores_bytes() +
                              problem.row_bytes() + out_bytes;
  const int64_t workers = workers_for(tasks);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const RowLoops<C>& loops = row_loops<C>();
        const auto head = [&](int64_t task, std::byte* scratch) {
          const int64_t b = task / s.heads, h = task % s.heads;
          std::byte* at = scratch + gemm;
          const auto allocate = [&](size_t bytes) {
            return reinterpret_cast<C*>(std::exchange(at, at + bytes));
          };
          const auto q =
              problem.query.read(operands[0], b, h, allocate(problem.query.buffer_bytes()));
          const auto k = problem.key.read(operands[1], b, h, allocate(problem.key.buffer_bytes()));
          const auto v =
              problem.value.read(operands[2], b, h, allocate(problem.value.buffer_bytes()));
          C* const keys = allocate(keys_bytes);
          C* const values = allocate(values_bytes);
          C* const scores = allocate(problem.scores_bytes());
          C* const mask_row = allocate(problem.row_bytes());
          C* const out = allocate(out_bytes);
          C* const log_sum = static_cast<C*>(results[1]) + task * s.queries;
          const int64_t pitch = problem.pitch();
          pack(s.width, s.keys, transposed(k), keys);
          pack(s.keys, s.value_width, v, values);
          for (int64_t begin = 0; begin < s.queries; begin += kQueryRows) {
            const int64_t end = std::min(s.queries, begin + kQueryRows), rows = end - begin;
            const int64_t visible = problem.fill_scores(q, keys, operands[3], b, h, begin, end,
                                                        scores, mask_row, scratch);
            C sums[kQueryRows];
            for (int64_t r = 0; r < rows; ++r) {
              C* const row = scores + r * pitch;
              const C top = loops.max(row, visible);
              const double sum = loops.exp_and_sum(row, row, visible, top);
              // Without visible keys the result is 0.
              sums[r] = visible == 0 ? C(0) : static_cast<C>(1 / sum);
              log_sum[begin + r] = static_cast<C>(static_cast<double>(top) + std::log(sum));
            }
            multiply(PackedProduct<C>{rows, s.value_width, visible, MatrixView<C>{scores, pitch, 1},
                                      values, s.keys, C(1), false, out, s.value_width},
                     scratch);
            for (int64_t r = 0; r < rows; ++r) {
              C* const row = out + r * s.value_width;
              T* const target = static_cast<T*>(results[0]) +
                                ((b * s.queries + begin + r) * s.heads + h) * s.value_width;
              if constexpr (std::is_same_v<T, C>) {
                loops.scale(row, target, s.value_width, sums[r]);
              } else {
                loops.scale(row, row, s.value_width, sums[r]);
                convert_fn(dtype_of<C>(), dtype_of<T>())(row, 1, target, s.value_width);
              }
            }
          }
        };
        for_each_task(tasks, workers, context.scratch, worker_bytes, head);
      },
      worker_bytes * static_cast<size_t>(workers));
}

/// Stores the rows of a head in a contiguous [batch, sequence, heads, dim].
template <class C, class T>
void store_head(const C* from, T* to, int64_t b, int64_t h, int64_t length, int64_t heads,
                int64_t width) {
  for (int64_t i = 0; i < length; ++i) {
    T* const row = to + ((b * length + i) * heads + h) * width;
    if constexpr (std::is_same_v<T, C>)
      std::memcpy(row, from + i * width, static_cast<size_t>(width) * sizeof(C));
    else
      convert_fn(dtype_of<C>(), dtype_of<T>())(from + i * width, 1, row, width);
  }
}

template <class T>
std::unique_ptr<Kernel> attention_grad(const KernelRequest& request) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const AttentionGradAttrs attrs(request.attrs);
  const AttentionProblem<C> problem(request, 1, attrs.scale, attrs.is_causal);
  const HeadReader<C> grad(request.operands[0]), out(request.operands[5]);
  const Layout log_sums = request.operands[6];
  const Sizes s = problem.sizes;
  const int64_t tasks = s.batch * s.heads;
  const size_t gemm = problem.workspace_bytes();
  const auto bytes = [](int64_t count) {
    return round_up_to_cache_line(static_cast<size_t>(count) * sizeof(C));
  };
  const size_t dq_bytes = bytes(s.queries * s.width), dk_bytes = bytes(s.keys * s.width),
               dv_bytes = bytes(s.keys * s.value_width);
  const size_t columns_bytes = packed_size<C>(s.width, s.keys);  // of the transposed keys
  const size_t keys_bytes = packed_size<C>(s.keys, s.width);
  const size_t values_bytes = packed_size<C>(s.value_width, s.keys);
  const size_t block_bytes = packed_size<C>(kQueryRows, std::max(s.width, s.value_width));
  const size_t worker_bytes = gemm + problem.query.buffer_bytes() + problem.key.buffer_bytes() +
                              problem.value.buffer_bytes() + grad.buffer_bytes() +
                              out.buffer_bytes() + columns_bytes + keys_bytes + values_bytes +
                              block_bytes + 2 * problem.scores_bytes() + problem.row_bytes() +
                              dq_bytes + dk_bytes + dv_bytes;
  const int64_t workers = workers_for(tasks);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const RowLoops<C>& loops = row_loops<C>();
        const auto head = [&](int64_t task, std::byte* scratch) {
          const int64_t b = task / s.heads, h = task % s.heads;
          std::byte* at = scratch + gemm;
          const auto allocate = [&](size_t size) {
            return reinterpret_cast<C*>(std::exchange(at, at + size));
          };
          const auto g = grad.read(operands[0], b, h, allocate(grad.buffer_bytes()));
          const auto q =
              problem.query.read(operands[1], b, h, allocate(problem.query.buffer_bytes()));
          const auto k = problem.key.read(operands[2], b, h, allocate(problem.key.buffer_bytes()));
          const auto v =
              problem.value.read(operands[3], b, h, allocate(problem.value.buffer_bytes()));
          const auto o = out.read(operands[5], b, h, allocate(out.buffer_bytes()));
          C* const columns = allocate(columns_bytes);
          C* const keys = allocate(keys_bytes);
          C* const values = allocate(values_bytes);
          C* const block = allocate(block_bytes);
          C* const weights = allocate(problem.scores_bytes());
          C* const score_grads = allocate(problem.scores_bytes());
          C* const mask_row = allocate(problem.row_bytes());
          C* const dq = allocate(dq_bytes);
          C* const dk = allocate(dk_bytes);
          C* const dv = allocate(dv_bytes);
          const C scale = static_cast<C>(s.scale);
          const int64_t pitch = problem.pitch();
          const MatrixView<C> p{weights, pitch, 1}, ds{score_grads, pitch, 1};
          pack(s.width, s.keys, transposed(k), columns);
          pack(s.keys, s.width, k, keys);
          pack(s.value_width, s.keys, transposed(v), values);
          std::fill_n(dk, s.keys * s.width, C(0));
          std::fill_n(dv, s.keys * s.value_width, C(0));
          const C* const log_sum = static_cast<const C*>(operands[6]) + b * log_sums.strides[0] +
                                   h * log_sums.strides[1];
          for (int64_t begin = 0; begin < s.queries; begin += kQueryRows) {
            const int64_t end = std::min(s.queries, begin + kQueryRows), rows = end - begin;
            const int64_t visible = problem.fill_scores(q, columns, operands[4], b, h, begin, end,
                                                        weights, mask_row, scratch);
            for (int64_t r = 0; r < rows; ++r) {
              C* const row = weights + r * pitch;
              loops.exp_and_sum(row, row, visible, log_sum[(begin + r) * log_sums.strides[2]]);
            }
            const auto g_rows = rows_from(g, begin);
            pack(rows, s.value_width, g_rows, block);
            multiply(PackedProduct<C>{visible, s.value_width, rows, transposed(p), block, rows,
                                      C(1), true, dv, s.value_width},
                     scratch);
            multiply(PackedProduct<C>{rows, visible, s.value_width, g_rows, values, s.value_width,
                                      C(1), false, score_grads, pitch},
                     scratch);
            for (int64_t r = 0; r < rows; ++r) {
              // Σ weight · dweight over the keys equals grad · out.
              const double delta = loops.dot(rows_from(g, begin + r).data,
                                             rows_from(o, begin + r).data, s.value_width);
              C* const row = score_grads + r * pitch;
              loops.multiply_centered(row, weights + r * pitch, row, visible,
                                      static_cast<C>(delta));
            }
            multiply(PackedProduct<C>{rows, s.width, visible, ds, keys, s.keys, scale, false,
                                      dq + begin * s.width, s.width},
                     scratch);
            pack(rows, s.width, rows_from(q, begin), block);
            multiply(PackedProduct<C>{visible, s.width, rows, transposed(ds), block, rows, scale,
                                      true, dk, s.width},
                     scratch);
          }
          store_head(dq, static_cast<T*>(results[0]), b, h, s.queries, s.heads, s.width);
          store_head(dk, static_cast<T*>(results[1]), b, h, s.keys, s.heads, s.width);
          store_head(dv, static_cast<T*>(results[2]), b, h, s.keys, s.heads, s.value_width);
        };
        for_each_task(tasks, workers, context.scratch, worker_bytes, head);
      },
      worker_bytes * static_cast<size_t>(workers));
}

}  // namespace

std::unique_ptr<Kernel> prepare_attention(const KernelRequest& request) {
  return visit_float(request.operands[0].dtype,
                     [&](auto tag) { return attention<typename decltype(tag)::type>(request); });
}

std::unique_ptr<Kernel> prepare_attention_grad(const KernelRequest& request) {
  return visit_float(request.operands[0].dtype, [&](auto tag) {
    return attention_grad<typename decltype(tag)::type>(request);
  });
}

}  // namespace paddle::cpu
