// Rows of nodes along edges: graph_gather, graph_reduce and graph_dot. Edges of a target are
// combined in their order, whatever the threads.

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/parallel.h"
#include "kernels/elementwise/elementwise.h"
#include "ops/generated/graph.h"

namespace paddle::cpu {
namespace {

/// The sizes of [batch..., rows, width], the axes in front as one.
struct Rows {
  int64_t batch = 1, rows = 0, width = 0;
  explicit Rows(const Layout& layout) {
    const size_t rank = layout.shape.size();
    for (size_t d = 0; d + 2 < rank; ++d) batch *= layout.shape[d];
    rows = layout.shape[rank - 2];
    width = layout.shape[rank - 1];
  }
};

/// Calls `body` with a pointer to integers of the operand's type.
template <class Body>
void with_index(DType dtype, const void* data, Body&& body) {
  if (dtype == DType::kI32)
    body(static_cast<const int32_t*>(data));
  else
    body(static_cast<const int64_t*>(data));
}

template <class I>
void check_index(const char* op, const char* name, const I* index, int64_t edges, int64_t count) {
  for (int64_t e = 0; e < edges; ++e)
    if (index[e] < 0 || static_cast<int64_t>(index[e]) >= count)
      fail(ErrorCode::kData, op, ": ", name, " has ", static_cast<int64_t>(index[e]),
           ", but there are ", count, " nodes");
}

/// Edges by target: those of target t are order[begin[t]] to order[begin[t + 1] - 1], in rising
/// order; without `order` they are the places themselves.
struct ByTarget {
  std::vector<int64_t> begin, order;
  bool sorted = true;

  template <class I>
  ByTarget(const I* targets, int64_t edges, int64_t count) {
    begin.assign(static_cast<size_t>(count) + 1, 0);
    for (int64_t e = 0; e < edges; ++e) {
      ++begin[static_cast<size_t>(targets[e]) + 1];
      sorted = sorted && (e == 0 || targets[e - 1] <= targets[e]);
    }
    for (size_t t = 1; t < begin.size(); ++t) begin[t] += begin[t - 1];
    if (sorted) return;
    std::vector<int64_t> next(begin.begin(), begin.end() - 1);
    order.resize(static_cast<size_t>(edges));
    for (int64_t e = 0; e < edges; ++e)
      order[static_cast<size_t>(next[static_cast<size_t>(targets[e])]++)] = e;
  }
  int64_t edge(int64_t place) const { return sorted ? place : order[static_cast<size_t>(place)]; }
};

enum class Combine { kSum, kMean, kMax };

template <class T>
using Wide =
    std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;

/// Adds a row, or takes the larger elements. NaN is larger than all.
template <class C, class T>
void combine_row(Combine how, bool first, C* sum, const T* row, int64_t width) {
  if (how != Combine::kMax) {
    for (int64_t i = 0; i < width; ++i) sum[i] += static_cast<C>(row[i]);
    return;
  }
  for (int64_t i = 0; i < width; ++i) {
    const C value = static_cast<C>(row[i]);
    if (first || value > sum[i] || value != value) sum[i] = value;
  }
}

template <class C, class T>
void add_weighted(C* sum, const T* row, const T* weights, int64_t heads, int64_t width) {
  const int64_t part = width / heads;
  for (int64_t h = 0; h < heads; ++h) {
    const C w = static_cast<C>(weights[h]);
    for (int64_t i = h * part; i < (h + 1) * part; ++i) sum[i] += w * static_cast<C>(row[i]);
  }
}

/// One graph of the batch.
template <class T, class I, class J>
void reduce_graph(Combine how, const T* x, const I* targets, const J* sources, const T* weights,
                  int64_t heads, int64_t edges, int64_t count, int64_t width, T* out) {
  const ByTarget edges_of(targets, edges, count);
  const int64_t work = (edges / std::max<int64_t>(count, 1) + 1) * (width + 8);
  parallel_for(count, std::max<int64_t>(1, 32768 / work), [&](int64_t begin, int64_t end) {
    std::vector<Wide<T>> sum(static_cast<size_t>(width));
    for (int64_t t = begin; t < end; ++t) {
      std::fill(sum.begin(), sum.end(), Wide<T>(0));
      const int64_t from = edges_of.begin[static_cast<size_t>(t)],
                    to = edges_of.begin[static_cast<size_t>(t) + 1];
      for (int64_t place = from; place < to; ++place) {
        const int64_t e = edges_of.edge(place);
        const T* const row = x + (sources ? static_cast<int64_t>(sources[e]) : e) * width;
        if (weights)
          add_weighted(sum.data(), row, weights + e * heads, heads, width);
        else
          combine_row(how, place == from, sum.data(), row, width);
      }
      if (how == Combine::kMean && to - from > 1)
        for (Wide<T>& value : sum) value /= static_cast<Wide<T>>(to - from);
      for (int64_t i = 0; i < width; ++i)
        out[t * width + i] = static_cast<T>(sum[static_cast<size_t>(i)]);
    }
  });
}

/// The product of two rows in eight running sums.
template <class C, class T>
C dot(const T* a, const T* b, int64_t n) {
  C sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int64_t k = 0; k < 8; ++k) sums[k] += static_cast<C>(a[i + k]) * static_cast<C>(b[i + k]);
  C rest = 0;
  for (; i < n; ++i) rest += static_cast<C>(a[i]) * static_cast<C>(b[i]);
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])) +
         rest;
}

}  // namespace

std::unique_ptr<Kernel> prepare_graph_gather(const KernelRequest& request) {
  const Rows x(request.operands[0]), out(request.results[0]);
  const DType index_type = request.operands[1].dtype;
  const auto bytes = static_cast<size_t>(x.width * item_size(request.operands[0].dtype));
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    const auto* const rows = static_cast<const std::byte*>(operands[0]);
    auto* const to = static_cast<std::byte*>(results[0]);
    with_index(index_type, operands[1], [&](const auto* index) {
      for (int64_t b = 0; b < x.batch; ++b)
        check_index("graph_gather", "index", index + b * out.rows, out.rows, x.rows);
      if (bytes == 0) return;
      parallel_for(x.batch * out.rows, std::max<int64_t>(1, 65536 / static_cast<int64_t>(bytes)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t row = i / out.rows * x.rows + static_cast<int64_t>(index[i]);
                       std::memcpy(to + static_cast<size_t>(i) * bytes,
                                   rows + static_cast<size_t>(row) * bytes, bytes);
                     }
                   });
    });
  });
}

std::unique_ptr<Kernel> prepare_graph_reduce(const KernelRequest& request) {
  const GraphReduceAttrs attrs(request.attrs);
  const Combine how = attrs.reduce == "sum"    ? Combine::kSum
                      : attrs.reduce == "mean" ? Combine::kMean
                                               : Combine::kMax;
  const Rows x(request.operands[0]), out(request.results[0]);
  const Layout& target_layout = request.operands[1];
  const int64_t edges = target_layout.shape.back();
  const DType target_type = target_layout.dtype;
  const bool sends = request.operands.size() > 2 && request.operands[2].present;
  const bool weighted = request.operands.size() > 3 && request.operands[3].present;
  const DType source_type = sends ? request.operands[2].dtype : target_type;
  const int64_t heads = weighted ? request.operands[3].shape.back() : 1;
  return visit_float(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      with_index(target_type, operands[1], [&](const auto* targets) {
        with_index(source_type, sends ? operands[2] : nullptr, [&](const auto* sources) {
          for (int64_t b = 0; b < x.batch; ++b) {
            const auto* const own_targets = targets + b * edges;
            const auto* const own_sources = sends ? sources + b * edges : nullptr;
            check_index("graph_reduce", "targets", own_targets, edges, out.rows);
            if (own_sources) check_index("graph_reduce", "sources", own_sources, edges, x.rows);
            const T* const weights =
                weighted ? static_cast<const T*>(operands[3]) + b * edges * heads : nullptr;
            reduce_graph(how, static_cast<const T*>(operands[0]) + b * x.rows * x.width,
                         own_targets, own_sources, weights, heads, edges, out.rows, x.width,
                         static_cast<T*>(results[0]) + b * out.rows * x.width);
          }
        });
      });
    });
  });
}

std::unique_ptr<Kernel> prepare_graph_dot(const KernelRequest& request) {
  const Rows x(request.operands[0]), y(request.operands[1]), out(request.results[0]);
  const DType source_type = request.operands[2].dtype, target_type = request.operands[3].dtype;
  const int64_t heads = out.width, part = heads == 0 ? 0 : x.width / heads;
  return visit_float(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      const T* const left = static_cast<const T*>(operands[0]);
      const T* const right = static_cast<const T*>(operands[1]);
      T* const to = static_cast<T*>(results[0]);
      with_index(source_type, operands[2], [&](const auto* sources) {
        with_index(target_type, operands[3], [&](const auto* targets) {
          for (int64_t b = 0; b < x.batch; ++b) {
            check_index("graph_dot", "sources", sources + b * out.rows, out.rows, x.rows);
            check_index("graph_dot", "targets", targets + b * out.rows, out.rows, y.rows);
          }
          parallel_for(x.batch * out.rows, std::max<int64_t>(1, 32768 / (x.width + 8)),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i) {
                           const int64_t b = i / out.rows;
                           const T* const a =
                               left + (b * x.rows + static_cast<int64_t>(sources[i])) * x.width;
                           const T* const c =
                               right + (b * y.rows + static_cast<int64_t>(targets[i])) * y.width;
                           for (int64_t h = 0; h < heads; ++h)
                             to[i * heads + h] =
                                 static_cast<T>(dot<Wide<T>>(a + h * part, c + h * part, part));
                         }
                       });
        });
      });
    });
  });
}

}  // namespace paddle::cpu
