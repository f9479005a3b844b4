// sort_pairs: values along an axis in order, with their indices. Sorts are stable: equal values are
// ordered by index. Values of up to 32 bits become unsigned keys above their index in one number;
// for a few of many, a heap keeps the best so far, and blocks without a better one are passed over.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "kernels/common/algorithm_table.h"
#include "kernels/common/rows.h"
#include "kernels/indexing/ordering.h"
#include "ops/generated/sorting.h"

namespace paddle::cpu {
namespace {

/// An unsigned number with the order of the values.
template <class T>
uint32_t key_of(T value) {
  if constexpr (std::is_integral_v<T>) {
    const auto bits = static_cast<uint32_t>(value);
    return std::is_signed_v<T> ? bits ^ 0x80000000u : bits;
  } else {
    const auto number = static_cast<float>(value);
    const uint32_t bits = number == 0 ? 0 : std::bit_cast<uint32_t>(number);
    const uint32_t key = bits >> 31 ? ~bits : bits | 0x80000000u;
    return number != number ? 0xffffffffu : key;
  }
}

/// Sorts by the upper 32 bits, byte by byte from the lowest; the result may be in either array.
uint64_t* radix_sort(uint64_t* items, uint64_t* other, int64_t n) {
  std::array<std::array<uint32_t, 256>, 4> counts{};
  for (int64_t i = 0; i < n; ++i)
    for (size_t byte = 0; byte < 4; ++byte) ++counts[byte][items[i] >> (32 + 8 * byte) & 255];
  for (size_t byte = 0; byte < 4; ++byte) {
    const size_t shift = 32 + 8 * byte;
    std::array<uint32_t, 256>& count = counts[byte];
    if (count[items[0] >> shift & 255] == n) continue;
    uint32_t place = 0;
    for (uint32_t& c : count) place += std::exchange(c, place);
    for (int64_t i = 0; i < n; ++i) other[count[items[i] >> shift & 255]++] = items[i];
    std::swap(items, other);
  }
  return items;
}

/// The first `limit` values of a row and their indices, through keys.
template <class T>
void sort_keys(const T* x, int64_t n, int64_t limit, bool descending, std::byte* scratch, T* values,
               int64_t* indices, int64_t stride) {
  constexpr int64_t kFew = 256;
  auto* items = reinterpret_cast<uint64_t*>(scratch);
  const uint32_t flip = descending ? 0xffffffffu : 0;
  for (int64_t i = 0; i < n; ++i)
    items[i] = static_cast<uint64_t>(key_of(x[i]) ^ flip) << 32 | static_cast<uint64_t>(i);
  if (limit < n) {
    std::nth_element(items, items + limit, items + n);
    std::sort(items, items + limit);
  } else if (n < kFew) {
    std::sort(items, items + n);
  } else {
    items = radix_sort(items, items + n, n);
  }
  for (int64_t i = 0; i < limit; ++i) {
    const auto at = static_cast<int64_t>(items[i] & 0xffffffffu);
    values[i * stride] = x[at];
    indices[i * stride] = at;
  }
}

template <class T>
struct Item {
  T value;
  int64_t index;
};

/// Whether a comes before b.
template <class T, bool kDescending>
bool comes_before(const Item<T>& a, const Item<T>& b) {
  const bool less = kDescending ? nan_last_less(b.value, a.value) : nan_last_less(a.value, b.value);
  const bool more = kDescending ? nan_last_less(a.value, b.value) : nan_last_less(b.value, a.value);
  return less || (!more && a.index < b.index);
}

/// Whether any of n values may come before one that is equal to `last` and has a lower index.
template <class T, bool kDescending>
bool any_before(const T* x, int64_t n, T last) {
  int found = 0;
  for (int64_t i = 0; i < n; ++i) found |= kDescending ? !(x[i] <= last) : !(x[i] >= last);
  return found != 0;
}

/// Puts `item` in place of the front of a heap, whose front comes last.
template <class T, bool kDescending>
void replace_front(Item<T>* heap, int64_t size, const Item<T>& item) {
  int64_t hole = 0;
  while (true) {
    int64_t child = 2 * hole + 1;
    if (child >= size) break;
    if (child + 1 < size && comes_before<T, kDescending>(heap[child], heap[child + 1])) ++child;
    if (!comes_before<T, kDescending>(item, heap[child])) break;
    heap[hole] = heap[child];
    hole = child;
  }
  heap[hole] = item;
}

/// The first `limit` of many, by a heap whose front is the last of them.
template <class T, bool kDescending>
void select_first(const T* x, int64_t n, int64_t limit, std::byte* scratch, T* values,
                  int64_t* indices, int64_t stride) {
  constexpr int64_t kBlock = 32;
  const auto before = comes_before<T, kDescending>;
  auto* const items = reinterpret_cast<Item<T>*>(scratch);
  for (int64_t i = 0; i < limit; ++i) items[i] = {x[i], i};
  std::make_heap(items, items + limit, before);
  for (int64_t first = limit; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    if (!any_before<T, kDescending>(x + first, count, items[0].value)) continue;
    for (int64_t i = first; i < first + count; ++i) {
      const Item<T> item{x[i], i};
      if (before(item, items[0])) replace_front<T, kDescending>(items, limit, item);
    }
  }
  std::sort_heap(items, items + limit, before);
  for (int64_t i = 0; i < limit; ++i) {
    values[i * stride] = items[i].value;
    indices[i * stride] = items[i].index;
  }
}

/// The first `limit` of a row of any type.
template <class T, bool kDescending>
void sort_items(const T* x, int64_t n, int64_t limit, std::byte* scratch, T* values,
                int64_t* indices, int64_t stride) {
  auto* const items = reinterpret_cast<Item<T>*>(scratch);
  for (int64_t i = 0; i < n; ++i) items[i] = {x[i], i};
  const auto before = comes_before<T, kDescending>;
  if (limit < n) std::nth_element(items, items + limit, items + n, before);
  std::sort(items, items + limit, before);
  for (int64_t i = 0; i < limit; ++i) {
    values[i * stride] = items[i].value;
    indices[i * stride] = items[i].index;
  }
}

template <class T>
using SortRow = void (*)(const T*, int64_t, int64_t, std::byte*, T*, int64_t*, int64_t);

struct SortProblem {
  const KernelRequest& request;
  Rows rows;
  int64_t limit;  ///< pairs that are wanted of each row
  bool descending;

  DType dtype() const { return request.operands[0].dtype; }
};

/// A kernel that sorts each row with `sort`, whose scratch is `items` items of `item` bytes.
template <class T>
std::unique_ptr<Kernel> sort_kernel(const SortProblem& p, SortRow<T> sort, int64_t items,
                                    int64_t item, std::string name) {
  const Rows rows = p.rows;
  const int64_t n = rows.length, limit = p.limit;
  const size_t packed = rows.inner == 1 ? 0 : row_buffer_bytes(n, sizeof(T));
  const size_t each = packed + row_buffer_bytes(items, item);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        if (limit == 0) return;
        const T* const x = static_cast<const T*>(operands[0]);
        for_each_row(context, rows.count(), n * 16, each, [&](int64_t row, std::byte* buffer) {
          const T* values = x + rows.start(row);
          if (packed > 0) {
            gather_row(values, rows.inner, reinterpret_cast<T*>(buffer), n);
            values = reinterpret_cast<const T*>(buffer);
          }
          const int64_t start = row / rows.inner * limit * rows.inner + row % rows.inner;
          sort(values, n, limit, buffer + packed, static_cast<T*>(results[0]) + start,
               static_cast<int64_t*>(results[1]) + start, rows.inner);
        });
      },
      row_scratch(rows.count(), each), std::move(name));
}

/// A few of many: a heap of the first ones.
double selection_speedup(const SortProblem& p) {
  constexpr int64_t kMany = 8;
  return p.limit > 0 && p.limit < p.rows.length / kMany ? kPreferred : 0;
}

std::unique_ptr<Kernel> prepare_selection(const SortProblem& p) {
  return visit_dtype(p.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return sort_kernel<T>(p, p.descending ? &select_first<T, true> : &select_first<T, false>,
                          p.limit, sizeof(Item<T>), "cpu:selection");
  });
}

/// Values of up to 32 bits and their indices are one key of 64 bits.
double keys_speedup(const SortProblem& p) {
  return item_size(p.dtype()) <= 4 && p.rows.length < int64_t{1} << 32 ? kPreferred : 0;
}

std::unique_ptr<Kernel> prepare_keys(const SortProblem& p) {
  return visit_dtype(p.dtype(), [&](auto tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) <= 4) {
      const auto keys = [](auto direction) -> SortRow<T> {
        return [](const T* x, int64_t count, int64_t first, std::byte* scratch, T* values,
                  int64_t* indices, int64_t stride) {
          sort_keys(x, count, first, decltype(direction)::value, scratch, values, indices, stride);
        };
      };
      return sort_kernel<T>(p, p.descending ? keys(std::true_type()) : keys(std::false_type()),
                            p.rows.length, 2 * sizeof(uint64_t), "cpu:keys");
    } else {
      return nullptr;
    }
  });
}

std::unique_ptr<Kernel> prepare_comparison(const SortProblem& p) {
  return visit_dtype(p.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return sort_kernel<T>(p, p.descending ? &sort_items<T, true> : &sort_items<T, false>,
                          p.rows.length, sizeof(Item<T>), "cpu:comparison");
  });
}

constexpr Algorithm<SortProblem> kAlgorithms[] = {
    {"selection", selection_speedup, prepare_selection},
    {"keys", keys_speedup, prepare_keys},
    {"comparison", baseline, prepare_comparison},
};

}  // namespace

std::unique_ptr<Kernel> prepare_sort_pairs(const KernelRequest& request) {
  const SortPairsAttrs attrs(request.attrs);
  const Rows rows = Rows::of(request.operands[0].shape, attrs.axis);
  const int64_t n = rows.length,
                limit = request.operands[0].shape.empty() || attrs.limit < 0 ? n : attrs.limit;
  // An axis of symbolic size may turn out to be too short.
  if (limit > n) fail(ErrorCode::kUsage, "topk: k is ", limit, ", the axis has ", n, " elements");
  return prepare_best<SortProblem>(kAlgorithms, {request, rows, limit, attrs.descending});
}

}  // namespace paddle::cpu
