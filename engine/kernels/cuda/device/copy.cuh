// Copies between windows of any strides, and fills. Elements are copied as unsigned numbers of
// their size.

constexpr int kMaxCopyAxes = 12;

struct CopyArguments {
  const void* from;
  void* to;
  int64_t size, axes;
  int64_t shape[kMaxCopyAxes], from_strides[kMaxCopyAxes], to_strides[kMaxCopyAxes];
};

/// Index: an unsigned type that holds the number of elements.
template <class T, class Index>
PADDLE_DEVICE void copy_window(const CopyArguments& arguments) {
  const Index size = (Index)arguments.size, step = (Index)gridDim.x * kBlockThreads;
  const T* const from = (const T*)arguments.from;
  T* const to = (T*)arguments.to;
  for (Index i = (Index)blockIdx.x * kBlockThreads + threadIdx.x; i < size; i += step) {
    Index rest = i;
    int64_t source = 0, target = 0;
    for (int axis = (int)arguments.axes - 1; axis >= 0; --axis) {
      const Index extent = (Index)arguments.shape[axis], next = rest / extent;
      const int64_t index = (int64_t)(rest - next * extent);
      source += index * arguments.from_strides[axis];
      target += index * arguments.to_strides[axis];
      rest = next;
    }
    to[target] = from[source];
  }
}

/// Boxes of several operands, by blockIdx.y.
constexpr int kMaxJoinedCopies = 10;
struct JoinArguments {
  CopyArguments copies[kMaxJoinedCopies];
};

struct FillArguments {
  void* to;
  int64_t size;
  uint64_t low, high;  ///< the element
};

template <class T>
PADDLE_DEVICE void fill_elements(const FillArguments& arguments, T value) {
  constexpr int kWidth = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
  T* const to = (T*)arguments.to;
  const int64_t step = (int64_t)gridDim.x * kBlockThreads * kWidth;
  Pack<T, kWidth> pack;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) pack.values[k] = value;
  const bool aligned = (uint64_t)to % 16 == 0;
  for (int64_t i = ((int64_t)blockIdx.x * kBlockThreads + threadIdx.x) * kWidth; i < arguments.size;
       i += step) {
    if (aligned && i + kWidth <= arguments.size) {
      *(Pack<T, kWidth>*)(to + i) = pack;
    } else {
      for (int64_t j = i; j < i + kWidth && j < arguments.size; ++j) to[j] = value;
    }
  }
}

PADDLE_DEVICE u128 wide_element(const FillArguments& arguments) {
  u128 out;
  out.low = arguments.low;
  out.high = arguments.high;
  return out;
}

PADDLE_KERNEL(copy_1, CopyArguments) { copy_window<uint8_t, uint32_t>(arguments); }
PADDLE_KERNEL(copy_2, CopyArguments) { copy_window<uint16_t, uint32_t>(arguments); }
PADDLE_KERNEL(copy_4, CopyArguments) { copy_window<uint32_t, uint32_t>(arguments); }
PADDLE_KERNEL(copy_8, CopyArguments) { copy_window<uint64_t, uint32_t>(arguments); }
PADDLE_KERNEL(copy_16, CopyArguments) { copy_window<u128, uint32_t>(arguments); }
PADDLE_KERNEL(copy_large_1, CopyArguments) { copy_window<uint8_t, uint64_t>(arguments); }
PADDLE_KERNEL(copy_large_2, CopyArguments) { copy_window<uint16_t, uint64_t>(arguments); }
PADDLE_KERNEL(copy_large_4, CopyArguments) { copy_window<uint32_t, uint64_t>(arguments); }
PADDLE_KERNEL(copy_large_8, CopyArguments) { copy_window<uint64_t, uint64_t>(arguments); }
PADDLE_KERNEL(copy_large_16, CopyArguments) { copy_window<u128, uint64_t>(arguments); }
PADDLE_KERNEL(fill_1, FillArguments) { fill_elements(arguments, (uint8_t)arguments.low); }
PADDLE_KERNEL(fill_2, FillArguments) { fill_elements(arguments, (uint16_t)arguments.low); }
PADDLE_KERNEL(fill_4, FillArguments) { fill_elements(arguments, (uint32_t)arguments.low); }
PADDLE_KERNEL(fill_8, FillArguments) { fill_elements(arguments, arguments.low); }
PADDLE_KERNEL(fill_16, FillArguments) { fill_elements(arguments, wide_element(arguments)); }
PADDLE_KERNEL(join_1, JoinArguments) {
  copy_window<uint8_t, uint32_t>(arguments.copies[blockIdx.y]);
}
PADDLE_KERNEL(join_2, JoinArguments) {
  copy_window<uint16_t, uint32_t>(arguments.copies[blockIdx.y]);
}
PADDLE_KERNEL(join_4, JoinArguments) {
  copy_window<uint32_t, uint32_t>(arguments.copies[blockIdx.y]);
}
PADDLE_KERNEL(join_8, JoinArguments) {
  copy_window<uint64_t, uint32_t>(arguments.copies[blockIdx.y]);
}
PADDLE_KERNEL(join_16, JoinArguments) { copy_window<u128, uint32_t>(arguments.copies[blockIdx.y]); }
PADDLE_KERNEL(join_large_1, JoinArguments) {
  copy_window<uint8_t, uint64_t>(arguments.copies[blockIdx.y]);
}
PADDLE_KERNEL(join_large_2, JoinArguments) {
  copy_window<uint16_t, uint64_t>(arguments.copies[blockIdx.y]);
}
PADDLE_KERNEL(join_large_4, JoinArguments) {
  copy_window<uint32_t, uint64_t>(arguments.copies[blockIdx.y]);
}
PADDLE_KERNEL(join_large_8, JoinArguments) {
  copy_window<uint64_t, uint64_t>(arguments.copies[blockIdx.y]);
}
PADDLE_KERNEL(join_large_16, JoinArguments) {
  copy_window<u128, uint64_t>(arguments.copies[blockIdx.y]);
}
