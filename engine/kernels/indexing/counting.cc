// bincount, histogram and unique.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>
#include <type_traits>
#include <vector>

#include "kernels/common/rows.h"
#include "kernels/common/unique_options.h"
#include "ops/generated/sorting.h"

namespace paddle::cpu {
namespace {

template <class T>
T element(ConvertFn load, const void* data, int64_t item, int64_t i) {
  T value;
  load(static_cast<const std::byte*>(data) + i * item, 1, &value, 1);
  return value;
}

constexpr int64_t kCounted = 512;  // elements converted at a time

/// The order of distinct elements, and which is which.
struct Distinct {
  std::vector<int64_t> firsts;   ///< of each distinct element, where it is first
  std::vector<int64_t> counts;   ///< how often it is there
  std::vector<int64_t> inverse;  ///< of each element, the number of its distinct one
};

/// The integers of a narrow range, in ascending order, by counting; false for others.
template <class T>
bool count_distinct(const T* x, int64_t n, Distinct& out) {
  if constexpr (!std::is_integral_v<T>) {
    return false;
  } else {
    if (n == 0) return false;
    const auto [least, most] = std::minmax_element(x, x + n);
    const uint64_t low = static_cast<uint64_t>(*least), range = static_cast<uint64_t>(*most) - low;
    if (range > static_cast<uint64_t>(4 * n) + 1024) return false;
    // First how often each is there, then its number.
    std::vector<int64_t> table(range + 1), first(range + 1);
    const auto place = [&](int64_t i) { return static_cast<uint64_t>(x[i]) - low; };
    for (int64_t i = n; i-- > 0;) {
      ++table[place(i)];
      first[place(i)] = i;
    }
    for (uint64_t k = 0; k <= range; ++k) {
      if (table[k] == 0) continue;
      out.counts.push_back(table[k]);
      out.firsts.push_back(first[k]);
      table[k] = std::ssize(out.firsts) - 1;
    }
    for (int64_t i = 0; i < n; ++i) out.inverse[static_cast<size_t>(i)] = table[place(i)];
    return true;
  }
}

}  // namespace

std::unique_ptr<Kernel> prepare_bincount(const KernelRequest& request) {
  const int64_t minlength = BincountAttrs(request.attrs).minlength;
  const Layout& x = request.operands[0];
  const bool weighted = request.operands.size() > 1 && request.operands[1].present;
  const DType weight_type = weighted ? request.operands[1].dtype : DType::kF64;
  const ConvertFn load = x.dtype == DType::kI64 ? nullptr : convert_fn(x.dtype, DType::kI64),
                  load_weight = convert_fn(weight_type, DType::kF64);
  const int64_t size = x.size(), item = item_size(x.dtype), weight_item = item_size(weight_type);
  const bool single = weight_type == DType::kF32;
  return make_kernel([=](const RunContext& context, void* const* operands, void* const*) {
    int64_t buffer[kCounted];
    // Calls `each(values, first, n)` for parts of x.
    const auto for_each_part = [&](const auto& each) {
      for (int64_t first = 0; first < size; first += kCounted) {
        const int64_t n = std::min(kCounted, size - first);
        const std::byte* const from = static_cast<const std::byte*>(operands[0]) + first * item;
        if (load) load(from, 1, buffer, n);
        each(load ? buffer : reinterpret_cast<const int64_t*>(from), first, n);
      }
    };
    int64_t least = 0, most = -1;
    for_each_part([&](const int64_t* values, int64_t, int64_t n) {
      int64_t signs = 0, even = -1, odd = -1, i = 0;
      for (; i + 2 <= n; i += 2) {
        signs |= values[i] | values[i + 1];
        even = std::max(even, values[i]);
        odd = std::max(odd, values[i + 1]);
      }
      for (; i < n; ++i) signs |= values[i], even = std::max(even, values[i]);
      most = std::max({most, even, odd});
      if (signs < 0) least = std::min(least, *std::min_element(values, values + n));
    });
    if (least < 0) fail(ErrorCode::kData, "bincount: x must not be negative, found ", least);
    if (most >= (int64_t{1} << 40))
      fail(ErrorCode::kData, "bincount: ", most, " would need too many bins");
    const int64_t bins = std::max(minlength, most + 1);
    void* const out = context.allocator->allocate(0, {bins});
    std::memset(out, 0, static_cast<size_t>(bins) * (weighted && single ? 4 : 8));
    // Neighbors are often equal, and then wait for each other's count in one table.
    constexpr int64_t kTables = 4, kFewBins = 4096;
    std::vector<int64_t> tables(!weighted && bins <= kFewBins && size >= 4 * bins
                                    ? static_cast<size_t>(kTables * bins)
                                    : 0);
    for_each_part([&](const int64_t* values, int64_t first, int64_t n) {
      if (!tables.empty()) {
        int64_t* const counts = tables.data();
        int64_t i = 0;
        for (; i + kTables <= n; i += kTables)
          for (int64_t k = 0; k < kTables; ++k) ++counts[k * bins + values[i + k]];
        for (; i < n; ++i) ++counts[values[i]];
        return;
      }
      if (!weighted) {
        auto* const counts = static_cast<int64_t*>(out);
        for (int64_t i = 0; i < n; ++i) ++counts[values[i]];
        return;
      }
      for (int64_t i = 0; i < n; ++i) {
        const double weight = element<double>(load_weight, operands[1], weight_item, first + i);
        if (single)
          static_cast<float*>(out)[values[i]] += static_cast<float>(weight);
        else
          static_cast<double*>(out)[values[i]] += weight;
      }
    });
    for (size_t i = 0; i < tables.size(); ++i)
      static_cast<int64_t*>(out)[static_cast<int64_t>(i) % bins] += tables[i];
  });
}

std::unique_ptr<Kernel> prepare_histogram(const KernelRequest& request) {
  const HistogramAttrs attrs(request.attrs);
  const Layout& x = request.operands[0];
  const bool weighted = request.operands.size() > 1 && request.operands[1].present;
  const DType weight_type = weighted ? request.operands[1].dtype : DType::kF64;
  const ConvertFn load = convert_fn(x.dtype, DType::kF64),
                  load_weight = convert_fn(weight_type, DType::kF64);
  const ConvertFn store = convert_fn(DType::kF64, request.results[0].dtype);
  const int64_t size = x.size(), item = item_size(x.dtype), weight_item = item_size(weight_type);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        double low = attrs.min, high = attrs.max;
        if (low == 0 && high == 0 && size > 0) {
          low = INFINITY;
          high = -INFINITY;
          for (int64_t i = 0; i < size; ++i) {
            const double value = element<double>(load, operands[0], item, i);
            low = std::min(low, value);
            high = std::max(high, value);
          }
        }
        if (low == high) {
          low -= 1;
          high += 1;
        }
        if (!std::isfinite(low) || !std::isfinite(high))
          fail(ErrorCode::kData, "histogram: the range [", low, ", ", high, "] is not finite");
        double* const counts = reinterpret_cast<double*>(context.scratch);
        std::fill_n(counts, attrs.bins, 0.0);
        for (int64_t i = 0; i < size; ++i) {
          const double value = element<double>(load, operands[0], item, i);
          if (!(value >= low && value <= high)) continue;
          const double position = (value - low) * static_cast<double>(attrs.bins) / (high - low);
          const int64_t bin = std::min(static_cast<int64_t>(position), attrs.bins - 1);
          counts[bin] += weighted ? element<double>(load_weight, operands[1], weight_item, i) : 1;
        }
        if (attrs.density) {
          const double total = std::accumulate(counts, counts + attrs.bins, 0.0);
          for (int64_t i = 0; i < attrs.bins; ++i)
            counts[i] /= total * (high - low) / static_cast<double>(attrs.bins);
        }
        store(counts, 1, results[0], attrs.bins);
      },
      static_cast<size_t>(attrs.bins) * 8);
}

// Slices along an axis are compared element by element; a flattened tensor has slices of one.
std::unique_ptr<Kernel> prepare_unique(const KernelRequest& request) {
  const UniqueOptions options = unique_options(request);
  return visit_dtype(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const RunContext& context, void* const* operands, void* const*) {
      const T* const data = static_cast<const T*>(operands[0]);
      const Rows& rows = options.rows;
      Distinct distinct;
      distinct.inverse.resize(static_cast<size_t>(rows.length));
      auto& [firsts, counts, inverse] = distinct;
      const auto compare = [&](int64_t a, int64_t b) {  // -1, 0 or 1; NaNs are equal and sort last
        for (int64_t o = 0; o < rows.outer; ++o)
          for (int64_t i = 0; i < rows.inner; ++i) {
            const T left = data[(o * rows.length + a) * rows.inner + i],
                    right = data[(o * rows.length + b) * rows.inner + i];
            if (left < right) return -1;
            if (right < left) return 1;
            if ((left != left) != (right != right)) return left != left ? 1 : -1;
          }
        return 0;
      };
      const bool single = rows.outer == 1 && rows.inner == 1;
      if (options.consecutive || !single || !count_distinct(data, rows.length, distinct)) {
        std::vector<int64_t> order(static_cast<size_t>(rows.length));
        std::iota(order.begin(), order.end(), int64_t{0});
        if (!options.consecutive)
          std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            const int c = compare(a, b);
            return c < 0 || (c == 0 && a < b);
          });
        for (size_t i = 0; i < order.size(); ++i) {
          if (i == 0 || compare(order[i - 1], order[i]) != 0) {
            firsts.push_back(order[i]);
            counts.push_back(0);
          }
          ++counts.back();
          inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(firsts.size()) - 1;
        }
      }
      Dims result = options.shape;
      result[options.axis] = static_cast<int64_t>(firsts.size());
      T* const out = static_cast<T*>(context.allocator->allocate(0, result));
      for (int64_t o = 0; o < rows.outer; ++o)
        for (size_t k = 0; k < firsts.size(); ++k)
          std::copy_n(data + (o * rows.length + firsts[k]) * rows.inner, rows.inner,
                      out + (o * static_cast<int64_t>(firsts.size()) + static_cast<int64_t>(k)) *
                                rows.inner);
      size_t next = 1;
      const auto put = [&](const std::vector<int64_t>& values) {
        void* const target =
            context.allocator->allocate(next++, {static_cast<int64_t>(values.size())});
        for (size_t i = 0; i < values.size(); ++i) {
          if (options.is_int64)
            static_cast<int64_t*>(target)[i] = values[i];
          else
            static_cast<int32_t*>(target)[i] = static_cast<int32_t>(values[i]);
        }
      };
      if (options.with_index) put(firsts);
      if (options.with_inverse) put(inverse);
      if (options.with_counts) put(counts);
    });
  });
}

}  // namespace paddle::cpu
