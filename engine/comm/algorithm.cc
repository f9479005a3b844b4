#include "comm/algorithm.h"

#include <algorithm>
#include <cstring>

namespace paddle::comm {

void copy_bytes(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

size_t size_in_bytes(DType dtype, int64_t count) {
  return static_cast<size_t>(storage_bytes(dtype, count));
}

std::pair<int64_t, int64_t> part_of(int64_t count, size_t i, size_t parts) {
  const auto at = [&](size_t n) {
    return static_cast<int64_t>(static_cast<__int128>(count) * static_cast<int64_t>(n) /
                                static_cast<int64_t>(parts));
  };
  return {at(i), at(i + 1)};
}

size_t position_in(std::span<const int> group, int rank) {
  return static_cast<size_t>(std::find(group.begin(), group.end(), rank) - group.begin());
}

namespace {

template <class T>
void combine_elements(T* into, const T* other, int64_t count, Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      for (int64_t i = 0; i < count; ++i) into[i] = static_cast<T>(into[i] + other[i]);
      return;
    case Reduction::kMax:
      for (int64_t i = 0; i < count; ++i)
        if (!(into[i] >= other[i]) && into[i] == into[i]) into[i] = other[i];
      return;
    case Reduction::kMin:
      for (int64_t i = 0; i < count; ++i)
        if (!(into[i] <= other[i]) && into[i] == into[i]) into[i] = other[i];
      return;
  }
}

}  // namespace

void combine(std::byte* into, const std::byte* other, int64_t count, DType dtype,
             Reduction reduction) {
  if (is_complex(dtype)) {
    if (reduction != Reduction::kSum)
      fail(ErrorCode::kUsage, "complex numbers have no order for a reduction");
    return combine(into, other, 2 * count, dtype == DType::kC64 ? DType::kF32 : DType::kF64,
                   reduction);
  }
  visit_dtype(dtype, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    combine_elements(reinterpret_cast<T*>(into), reinterpret_cast<const T*>(other), count,
                     reduction);
  });
}

std::unique_ptr<CollectiveAlgorithm> make_algorithm(CollectiveForm form) {
  return form == CollectiveForm::kRing ? make_ring() : make_tree();
}

size_t all_reduce_scratch(DType dtype, int64_t count, size_t group) {
  if (group <= 1) return 0;
  const size_t bytes = size_in_bytes(dtype, count);
  if (bytes <= kSmallAllReduce) return bytes * group;
  const auto largest = count / static_cast<int64_t>(group) + 1;
  return size_in_bytes(dtype, largest) * group;
}

uint64_t all_reduce_sent_bytes(uint64_t bytes, size_t group) {
  if (group <= 1) return 0;
  return bytes <= kSmallAllReduce ? bytes * (group - 1) : 2 * bytes / group * (group - 1);
}

size_t reduce_scatter_scratch(size_t part_bytes, size_t group) {
  return group > 1 ? part_bytes * group : 0;
}

}  // namespace paddle::comm
