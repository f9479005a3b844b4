// Equal elements: the most frequent ones of rows, those that are different, and numbers of elements
// in bins. They are counted in sorted order (device/sort.cuh), so that sums of weights have the
// order of their indices.

struct CountArguments {
  const void *x, *weights;
  const void* sorted;    ///< x in order, or the bins of its elements
  const int64_t* order;  ///< where sorted elements come from; null: they are in place
  int64_t* places;       ///< the order that `rank_slices` stores
  void *out, *indices, *inverse, *numbers;
  int64_t* starts;  ///< of runs of equal elements
  double* range;    ///< least and largest element, by block and then in all
  int64_t* counts;  ///< as in SelectArguments, for runs
  uint32_t* counters;
  int64_t size, chunk;           ///< elements or slices
  int64_t outer, length, inner;  ///< slices: axes before, of, and after their axis
  int64_t runs, rows, bins;
  double low, high;
  int density;
};

// --- the most frequent element of a row ---

struct Run {
  int64_t count, begin, last;
};
struct LargerRun {
  PADDLE_DEVICE Run operator()(const Run& a, const Run& b) const {
    return b.count > a.count || (b.count == a.count && b.begin < a.begin) ? b : a;
  }
};

/// A block for each row, sorted with the places of its elements.
template <class T>
PADDLE_DEVICE void mode_rows(const CountArguments& g) {
  const T* const sorted = (const T*)g.sorted;
  for (int64_t row = blockIdx.x; row < g.rows; row += gridDim.x) {
    const int64_t start = row / g.inner * g.inner * g.length + row % g.inner;
    const auto key = [&](int64_t i) { return sort_key(sorted[start + i * g.inner]); };
    Run best = {0, 0, 0};
    for (int64_t i = threadIdx.x; i < g.length; i += kBlockThreads) {
      if (i > 0 && key(i - 1) == key(i)) continue;
      const uint64_t own = key(i);
      int64_t low = i + 1, high = g.length;
      while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (key(middle) == own)
          low = middle + 1;
        else
          high = middle;
      }
      best = LargerRun()(best, Run{low - i, i, low - 1});
    }
    best = fold_block(best, LargerRun());
    if (threadIdx.x != 0) continue;
    const int64_t place = g.order[start + best.last * g.inner];
    ((T*)g.out)[row] = ((const T*)g.x)[start + place * g.inner];
    ((int64_t*)g.indices)[row] = place;
  }
}

// --- different slices ---

/// -1, 0 or 1 as slice a comes before b, equals it, or comes after.
template <class T>
PADDLE_DEVICE int compare_slices(const CountArguments& g, int64_t a, int64_t b) {
  const T* const x = (const T*)g.x;
  for (int64_t o = 0; o < g.outer; ++o)
    for (int64_t i = 0; i < g.inner; ++i) {
      const uint64_t left = sort_key(x[(o * g.length + a) * g.inner + i]);
      const uint64_t right = sort_key(x[(o * g.length + b) * g.inner + i]);
      if (left != right) return left < right ? -1 : 1;
    }
  return 0;
}

/// Few slices: the place of one is the number of those before it.
template <class T>
PADDLE_DEVICE void rank_slices(const CountArguments& g) {
  for (int64_t slice = blockIdx.x; slice < g.size; slice += gridDim.x) {
    int64_t before = 0;
    for (int64_t other = threadIdx.x; other < g.size; other += kBlockThreads) {
      const int order = compare_slices<T>(g, other, slice);
      before += order < 0 || (order == 0 && other < slice) ? 1 : 0;
    }
    before = fold_block(before, FoldSum());
    if (threadIdx.x == 0) g.places[before] = slice;
  }
}

PADDLE_DEVICE int64_t slice_at(const CountArguments& g, int64_t place) {
  return g.order ? g.order[place] : place;
}

/// Selects the first of each run of equal slices.
template <class T>
struct Runs {
  PADDLE_DEVICE static bool is_selected(const CountArguments& g, int64_t i) {
    return i == 0 || compare_slices<T>(g, slice_at(g, i - 1), slice_at(g, i)) != 0;
  }
  PADDLE_DEVICE static void store(const CountArguments& g, int64_t i, int64_t to) {
    g.starts[to] = i;
  }
};

/// The first slice of each run.
template <class T>
PADDLE_DEVICE void store_slices(const CountArguments& g) {
  const int64_t size = g.outer * g.runs * g.inner, step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < size; i += step) {
    const int64_t at = i % g.inner, run = i / g.inner % g.runs, o = i / g.inner / g.runs;
    const int64_t slice = slice_at(g, g.starts[run]);
    ((T*)g.out)[i] = ((const T*)g.x)[(o * g.length + slice) * g.inner + at];
  }
}

/// Of each run: where its first slice was, and how long it is; of each slice: its run. I: their
/// type.
template <class I>
PADDLE_DEVICE void store_run_numbers(const CountArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  const int64_t thread = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x;
  for (int64_t run = thread; run < g.runs; run += step) {
    const int64_t end = run + 1 < g.runs ? g.starts[run + 1] : g.size;
    if (g.indices) ((I*)g.indices)[run] = (I)slice_at(g, g.starts[run]);
    if (g.numbers) ((I*)g.numbers)[run] = (I)(end - g.starts[run]);
  }
  if (!g.inverse) return;
  for (int64_t i = thread; i < g.size; i += step) {
    int64_t low = 0, high = g.runs;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (g.starts[middle] <= i)
        low = middle + 1;
      else
        high = middle;
    }
    ((I*)g.inverse)[slice_at(g, i)] = (I)(low - 1);
  }
}

// --- bins ---

/// The number of sorted integers less than a bin.
template <class T>
PADDLE_DEVICE int64_t begin_of_bin(const CountArguments& g, int64_t bin) {
  const T* const sorted = (const T*)g.sorted;
  int64_t low = 0, high = g.size;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if ((int64_t)sorted[middle] < bin)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// Sums of the weights of each integer, or how often it is there. T: of integers; W: of weights; S:
/// of sums.
template <class T, class W, class S>
PADDLE_DEVICE void count_integers(const CountArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  int64_t bin = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x;
  for (; bin < g.bins; bin += step) {
    const int64_t begin = begin_of_bin<T>(g, bin), end = begin_of_bin<T>(g, bin + 1);
    S sum = (S)(end - begin);
    if (g.weights) {
      sum = (S)0;
      for (int64_t i = begin; i < end; ++i) sum += convert<S>(((const W*)g.weights)[g.order[i]]);
    }
    ((S*)g.out)[bin] = sum;
  }
}

/// Of numbers where those that are not comparable count as neither.
struct Lesser {
  PADDLE_DEVICE double operator()(double a, double b) const { return b < a ? b : a; }
};
struct Larger {
  PADDLE_DEVICE double operator()(double a, double b) const { return b > a ? b : a; }
};

/// The least and the largest element, without NaN.
template <class T>
PADDLE_DEVICE void find_range(const CountArguments& g) {
  double low = as_double(0x7ff0000000000000ull), high = -low;
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x;
  for (; i < g.size; i += step) {
    const double value = convert<double>(((const T*)g.x)[i]);
    low = Lesser()(low, value);
    high = Larger()(high, value);
  }
  low = fold_block(low, Lesser());
  high = fold_block(high, Larger());
  if (threadIdx.x == 0) {
    g.range[2 * (int64_t)blockIdx.x + 2] = low;
    g.range[2 * (int64_t)blockIdx.x + 3] = high;
  }
  if (!is_last_block(g.counters, gridDim.x) || threadIdx.x != 0) return;
  for (int64_t block = 1; block <= gridDim.x; ++block) {
    low = Lesser()(low, g.range[2 * block]);
    high = Larger()(high, g.range[2 * block + 1]);
  }
  g.range[0] = low;
  g.range[1] = high;
}

/// The bin of each element; what is in none gets the number after the last.
template <class T>
PADDLE_DEVICE void find_bins(const CountArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x;
  for (; i < g.size; i += step) {
    const double value = convert<double>(((const T*)g.x)[i]);
    int64_t bin = g.bins;
    if (value >= g.low && value <= g.high) {
      bin = (int64_t)((value - g.low) * (double)g.bins / (g.high - g.low));
      if (bin > g.bins - 1) bin = g.bins - 1;
    }
    g.places[i] = bin;
  }
}

/// From sums of double to a histogram, or its density, by one block. To: of results.
template <class To>
PADDLE_DEVICE void store_histogram(const CountArguments& g) {
  __shared__ double total;
  const double* const sums = (const double*)g.numbers;
  if (threadIdx.x == 0 && g.density) {
    total = 0;
    for (int64_t bin = 0; bin < g.bins; ++bin) total += sums[bin];
  }
  __syncthreads();
  for (int64_t bin = threadIdx.x; bin < g.bins; bin += kBlockThreads) {
    double sum = sums[bin];
    if (g.density) sum /= total * (g.high - g.low) / (double)g.bins;
    ((To*)g.out)[bin] = convert<To>(sum);
  }
}
