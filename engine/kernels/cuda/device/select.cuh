// Elements that a condition selects, in order: their places, or their values. Chunks of elements
// are counted, the last block adds the counts up, and the chunks are then stored where those before
// them end.

constexpr int kSelectAxes = 8;

struct SelectArguments {
  const void *x, *mask;
  void* out;
  int64_t* counts;  ///< by chunk, then in all; after the sums: those before a chunk
  uint32_t* counters;
  int64_t size, chunk;
  int axes;
  int64_t shape[kSelectAxes], x_strides[kSelectAxes], mask_strides[kSelectAxes];
};

PADDLE_DEVICE int64_t selected_place(const SelectArguments& g, const int64_t* strides, int64_t n) {
  int64_t out = 0;
  for (int axis = g.axes - 1; axis >= 0; --axis) {
    const int64_t next = n / g.shape[axis];
    out += (n - next * g.shape[axis]) * strides[axis];
    n = next;
  }
  return out;
}

/// What is not 0, by coordinates.
template <class T>
struct NonZero {
  PADDLE_DEVICE static bool is_selected(const SelectArguments& g, int64_t i) {
    return convert<bool>(((const T*)g.x)[i]);
  }
  PADDLE_DEVICE static void store(const SelectArguments& g, int64_t i, int64_t to) {
    int64_t* const out = (int64_t*)g.out + to * g.axes;
    for (int axis = g.axes - 1; axis >= 0; --axis) {
      const int64_t next = i / g.shape[axis];
      out[axis] = i - next * g.shape[axis];
      i = next;
    }
  }
};
/// Values where a mask is true. Item: an unsigned type of an element's size.
template <class Item>
struct Masked {
  PADDLE_DEVICE static bool is_selected(const SelectArguments& g, int64_t i) {
    return ((const bool*)g.mask)[selected_place(g, g.mask_strides, i)];
  }
  PADDLE_DEVICE static void store(const SelectArguments& g, int64_t i, int64_t to) {
    ((Item*)g.out)[to] = ((const Item*)g.x)[selected_place(g, g.x_strides, i)];
  }
};

/// A block per chunk. Arguments: SelectArguments, or others with its sizes and counts.
template <class Which, class Arguments>
PADDLE_DEVICE void count_selected(const Arguments& g) {
  const int64_t begin = (int64_t)blockIdx.x * g.chunk;
  const int64_t end = begin + g.chunk < g.size ? begin + g.chunk : g.size;
  int64_t count = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kBlockThreads)
    count += Which::is_selected(g, i) ? 1 : 0;
  count = fold_block(count, FoldSum());
  if (threadIdx.x == 0) g.counts[blockIdx.x] = count;
  if (!is_last_block(g.counters, gridDim.x) || threadIdx.x != 0) return;
  int64_t sum = 0;
  for (int64_t i = 0; i < gridDim.x; ++i) {
    const int64_t more = g.counts[i];
    g.counts[i] = sum;
    sum += more;
  }
  g.counts[gridDim.x] = sum;
}
template <class Which, class Arguments>
PADDLE_DEVICE void store_selected(const Arguments& g) {
  __shared__ int before[kBlockThreads + 1];
  const int thread = (int)threadIdx.x;
  const int64_t begin = (int64_t)blockIdx.x * g.chunk;
  const int64_t end = begin + g.chunk < g.size ? begin + g.chunk : g.size;
  int64_t to = g.counts[blockIdx.x];
  for (int64_t first = begin; first < end; first += kBlockThreads) {
    const int64_t i = first + thread;
    const bool mine = i < end && Which::is_selected(g, i);
    before[thread + 1] = mine ? 1 : 0;
    if (thread == 0) before[0] = 0;
    __syncthreads();
    for (int width = 1; width <= kBlockThreads; width *= 2) {
      const int more = thread + 1 >= width ? before[thread + 1 - width] : 0;
      __syncthreads();
      before[thread + 1] += more;
      __syncthreads();
    }
    if (mine) Which::store(g, i, to + before[thread]);
    to += before[kBlockThreads];
    __syncthreads();
  }
}
