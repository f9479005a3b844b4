// Rows in order, and places in sorted rows. Values become unsigned keys with their order: NaN comes
// last, -0 equals 0. Equal keys keep the order of their indices.

struct SortArguments {
  const void *x, *values;
  void *out, *indices;
  uint64_t* keys;
  uint32_t* places;
  int64_t rows, length, inner, limit;
  int64_t padded;           ///< keys of a row, a power of two; unused ones are the largest
  int64_t width, distance;  ///< of a step of the bitonic sort
  int64_t count, per_row;   ///< of a search
  int descending, right;
};

template <class T>
PADDLE_DEVICE uint64_t sort_key(T x) {
  const auto value = loaded(x);
  typedef typename Computed<T>::type C;
  if constexpr (IsSame<C, double>::value) {
    const uint64_t bits = value == 0 ? 0 : as_bits(value);
    const uint64_t key = bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
    return value != value ? ~(uint64_t)0 : key;
  } else if constexpr (IsSame<C, float>::value) {
    const uint32_t bits = value == 0 ? 0 : as_bits(value);
    const uint32_t key = bits >> 31 ? ~bits : bits | 0x80000000u;
    return value != value ? (uint64_t)0xffffffffu : (uint64_t)key;
  } else if constexpr ((C)-1 < (C)0) {
    return (uint64_t)(int64_t)value ^ (uint64_t)1 << 63;
  } else {
    return (uint64_t)value;
  }
}

PADDLE_DEVICE int64_t sort_start(const SortArguments& g, int64_t row, int64_t length) {
  const int64_t block = row / g.inner;
  return block * g.inner * length + (row - block * g.inner);
}

template <class T>
PADDLE_DEVICE void make_keys(const SortArguments& g) {
  const int64_t size = g.rows * g.padded, step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < size; i += step) {
    const int64_t row = i / g.padded, at = i - row * g.padded;
    uint64_t key = ~(uint64_t)0;
    if (at < g.length) {
      key = sort_key(((const T*)g.x)[sort_start(g, row, g.length) + at * g.inner]);
      if (g.descending) key = ~key;
    }
    g.keys[i] = key;
    if (g.places) g.places[i] = (uint32_t)at;
  }
}

template <class T>
PADDLE_DEVICE void store_sorted(const SortArguments& g, int64_t row, int64_t place, int64_t from) {
  const int64_t to = sort_start(g, row, g.limit) + place * g.inner;
  ((T*)g.out)[to] = ((const T*)g.x)[sort_start(g, row, g.length) + from * g.inner];
  if (g.indices) ((int64_t*)g.indices)[to] = from;
}

/// Short rows: the place of an element is the number of those before it.
template <class T>
PADDLE_DEVICE void sort_by_rank(const SortArguments& g) {
  __shared__ uint64_t tile[kBlockThreads];
  const int thread = (int)threadIdx.x;
  const int64_t blocks = (g.length + kBlockThreads - 1) / kBlockThreads;
  for (int64_t work = blockIdx.x; work < g.rows * blocks; work += gridDim.x) {
    const int64_t row = work / blocks, at = (work - row * blocks) * kBlockThreads + thread;
    const uint64_t* const keys = g.keys + row * g.length;
    const uint64_t mine = at < g.length ? keys[at] : 0;
    int64_t rank = 0;
    for (int64_t begin = 0; begin < g.length; begin += kBlockThreads) {
      const int64_t count = g.length - begin < kBlockThreads ? g.length - begin : kBlockThreads;
      if (thread < count) tile[thread] = keys[begin + thread];
      __syncthreads();
      for (int64_t k = 0; k < count; ++k)
        rank += tile[k] < mine || (tile[k] == mine && begin + k < at) ? 1 : 0;
      __syncthreads();
    }
    if (at < g.length && rank < g.limit) store_sorted<T>(g, row, rank, at);
  }
}

/// One step of a bitonic sort of keys and places.
PADDLE_DEVICE void bitonic_step(const SortArguments& g) {
  const int64_t pairs = g.rows * g.padded / 2, step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < pairs; i += step) {
    const int64_t block = i / g.distance, low = block * 2 * g.distance + (i - block * g.distance);
    const int64_t high = low + g.distance;
    const bool ascends = (low % g.padded & g.width) == 0;
    const uint64_t a = g.keys[low], b = g.keys[high];
    const uint32_t at = g.places[low], bt = g.places[high];
    if ((a > b || (a == b && at > bt)) != ascends) continue;
    g.keys[low] = b;
    g.keys[high] = a;
    g.places[low] = bt;
    g.places[high] = at;
  }
}
template <class T>
PADDLE_DEVICE void take_sorted(const SortArguments& g) {
  const int64_t size = g.rows * g.limit, step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < size; i += step) {
    const int64_t row = i / g.limit, place = i - row * g.limit;
    store_sorted<T>(g, row, place, g.places[row * g.padded + place]);
  }
}

/// How many elements of a sorted row come before a value; with `right` also those equal to it.
template <class T, class To>
PADDLE_DEVICE void search_rows(const SortArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.count; i += step) {
    const T* const row = (const T*)g.x + i / g.per_row * g.length;
    const uint64_t key = sort_key(((const T*)g.values)[i]);
    int64_t low = 0, high = g.length;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      const uint64_t each = sort_key(row[middle]);
      if (g.right ? each <= key : each < key)
        low = middle + 1;
      else
        high = middle;
    }
    ((To*)g.out)[i] = (To)low;
  }
}
