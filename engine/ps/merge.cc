#include "ps/merge.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>
#include <type_traits>

#include "tables/row_update.h"
#include "tables/shards.h"

namespace paddle::ps {
namespace {

template <class T>
void add_row(std::byte* to, const std::byte* from, int64_t width) {
  auto* const sum = reinterpret_cast<T*>(to);
  const auto* const more = reinterpret_cast<const T*>(from);
  for (int64_t k = 0; k < width; ++k) sum[k] += more[k];
}

}  // namespace

MergedRows merge(const program::TableSpec& spec, std::span<const PushedRows> by_worker) {
  struct Part {
    int shard;
    uint64_t order, key;
    size_t worker;
    const std::byte *row, *use;
  };
  const bool is_signed = spec.key == DType::kI64;
  const auto bytes = static_cast<size_t>(storage_bytes(spec.dtype, spec.width));
  const size_t workers = by_worker.size();
  std::vector<Part> parts;
  for (size_t worker = 0; worker < workers; ++worker) {
    const PushedRows& pushed = by_worker[worker];
    for (size_t i = 0; i < pushed.keys.size(); ++i) {
      const uint64_t key = pushed.keys[i];
      parts.push_back({tables::shard_of(key), tables::ordered(key, is_signed), key, worker,
                       pushed.rows + i * bytes,
                       pushed.uses ? pushed.uses + i * sizeof(tables::KeyUse) : nullptr});
    }
  }
  const auto is_before = [](const Part& a, const Part& b) {
    return std::tie(a.shard, a.order, a.worker) < std::tie(b.shard, b.order, b.worker);
  };
  // Workers send them in this order; then runs are merged.
  size_t sorted = 0;
  for (const PushedRows& pushed : by_worker) {
    const auto begin = parts.begin() + static_cast<ptrdiff_t>(sorted);
    const auto end = begin + static_cast<ptrdiff_t>(pushed.keys.size());
    if (!std::is_sorted(begin, end, is_before)) std::sort(begin, end, is_before);
    std::inplace_merge(parts.begin(), begin, end, is_before);
    sorted += pushed.keys.size();
  }
  MergedRows out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i == 0 || parts[i].key != parts[i - 1].key) {
      out.keys.push_back(parts[i].key);
      out.uses.emplace_back();
    }
    if (!parts[i].use) continue;
    tables::KeyUse use;
    std::memcpy(&use, parts[i].use, sizeof use);
    out.uses.back() += use;
  }
  out.gradients = Array::empty(spec.dtype, {static_cast<int64_t>(out.keys.size()), spec.width});
  auto* to = static_cast<std::byte*>(out.gradients.raw());
  // The tree of the workers, without those that have no gradient.
  std::vector<std::byte> copies(workers * bytes);
  std::vector<char> there(workers);
  for (size_t i = 0; i < parts.size(); to += bytes) {
    const uint64_t key = parts[i].key;
    if (i + 1 == parts.size() || parts[i + 1].key != key) {
      std::memcpy(to, parts[i++].row, bytes);
      continue;
    }
    std::fill(there.begin(), there.end(), 0);
    for (; i < parts.size() && parts[i].key == key; ++i) {
      std::memcpy(copies.data() + parts[i].worker * bytes, parts[i].row, bytes);
      there[parts[i].worker] = 1;
    }
    for (size_t step = 1; step < workers; step *= 2)
      for (size_t a = 0; a + step < workers; a += 2 * step) {
        const size_t b = a + step;
        if (!there[b]) continue;
        std::byte* const left = copies.data() + a * bytes;
        const std::byte* const right = copies.data() + b * bytes;
        if (!there[a])
          std::memcpy(left, right, bytes);
        else if (spec.dtype == DType::kF64)
          add_row<double>(left, right, spec.width);
        else
          add_row<float>(left, right, spec.width);
        there[a] = 1;
      }
    std::memcpy(to, copies.data(), bytes);
  }
  return out;
}

void add_squares(const program::TableSpec& spec, std::span<const uint64_t> keys,
                 const Array& gradients, std::span<double> by_shard) {
  const bool is_signed = spec.key == DType::kI64;
  const auto bytes = static_cast<size_t>(storage_bytes(spec.dtype, spec.width));
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto place = [&](size_t i) {
    return std::pair(tables::shard_of(keys[i]), tables::ordered(keys[i], is_signed));
  };
  const auto is_before = [&](size_t a, size_t b) { return place(a) < place(b); };
  if (!std::is_sorted(order.begin(), order.end(), is_before))
    std::sort(order.begin(), order.end(), is_before);
  for (const size_t i : order)
    by_shard[static_cast<size_t>(tables::shard_of(keys[i]))] += tables::sum_of_squares(
        spec.dtype, spec.width, static_cast<const std::byte*>(gradients.raw()) + i * bytes);
}

void divide_by_shows(std::span<const tables::KeyUse> uses, Array& gradients) {
  const int64_t width = gradients.shape[1];
  const auto divide = [&](auto* gradient) {
    for (const tables::KeyUse& use : uses) {
      const auto show = static_cast<std::remove_pointer_t<decltype(gradient)>>(use.show);
      for (int64_t k = 0; show > 0 && k < width; ++k) gradient[k] /= show;
      gradient += width;
    }
  };
  if (gradients.dtype == DType::kF64)
    divide(gradients.data<double>());
  else
    divide(gradients.data<float>());
}

}  // namespace paddle::ps
