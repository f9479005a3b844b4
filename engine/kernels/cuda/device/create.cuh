// Ranges, borders of padded tensors, and log(sum(exp(x))) over axes.

struct RangeArguments {
  void* out;
  int64_t size, last;        ///< last: of linspace, the number of the last element
  int64_t first, step;       ///< of integers
  double start, stop, each;  ///< of floats; each: the distance
};

/// first + i step, wrapping around.
template <class T>
PADDLE_DEVICE void integer_range(const RangeArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.size; i += step)
    ((T*)g.out)[i] = convert<T>((int64_t)((uint64_t)g.first + (uint64_t)i * (uint64_t)g.step));
}
template <class T>
PADDLE_DEVICE void number_range(const RangeArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.size; i += step)
    ((T*)g.out)[i] = convert<T>(g.start + (double)i * g.each);
}
/// Counts from both ends, so that the last element is exactly `stop`.
template <class T>
PADDLE_DEVICE void line_space(const RangeArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.size; i += step)
    ((T*)g.out)[i] = convert<T>(2 * i <= g.last ? g.start + g.each * (double)i
                                                : g.stop - g.each * (double)(g.last - i));
}

constexpr int kCreateAxes = 8;

struct BorderArguments {
  const void* from;
  void* to;
  int64_t size;
  int axes;
  int64_t shape[kCreateAxes], from_shape[kCreateAxes], from_strides[kCreateAxes],
      before[kCreateAxes];
};
/// Where an element of a border comes from, for `at` before or after an axis of `size` elements.
struct Reflect {
  PADDLE_DEVICE static int64_t place(int64_t at, int64_t size) {
    const int64_t period = 2 * (size - 1);
    at = (at % period + period) % period;
    return at < size ? at : period - at;
  }
};
struct Replicate {
  PADDLE_DEVICE static int64_t place(int64_t at, int64_t size) { return at < 0 ? 0 : size - 1; }
};
struct Circular {
  PADDLE_DEVICE static int64_t place(int64_t at, int64_t size) { return (at % size + size) % size; }
};
template <class Item, class Border>
PADDLE_DEVICE void pad_borders(const BorderArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.size; i += step) {
    int64_t rest = i, from = 0;
    for (int axis = g.axes - 1; axis >= 0; --axis) {
      const int64_t next = rest / g.shape[axis], size = g.from_shape[axis];
      int64_t at = rest - next * g.shape[axis] - g.before[axis];
      if (at < 0 || at >= size) at = Border::place(at, size);
      from += at * g.from_strides[axis];
      rest = next;
    }
    ((Item*)g.to)[i] = ((const Item*)g.from)[from];
  }
}

struct LogSumArguments {
  const void* x;
  void* out;
  int64_t results, count;  ///< elements of a result
  int kept, reduced;       ///< axes
  int64_t kept_shape[kCreateAxes], kept_strides[kCreateAxes];
  int64_t reduced_shape[kCreateAxes], reduced_strides[kCreateAxes];
};
PADDLE_DEVICE int64_t place_in_axes(int64_t n, int axes, const int64_t* shape,
                                    const int64_t* strides) {
  int64_t out = 0;
  for (int axis = axes - 1; axis > 0; --axis) {
    const int64_t next = n / shape[axis];
    out += (n - next * shape[axis]) * strides[axis];
    n = next;
  }
  return axes > 0 ? out + n * strides[0] : out;
}
/// C: type of the exponentials; a block, or a thread, has a result.
template <class C, class T, class R, bool kBlock>
PADDLE_DEVICE void log_sums(const LogSumArguments& g) {
  const int64_t first = kBlock ? (int64_t)threadIdx.x : 0, step = kBlock ? kBlockThreads : 1;
  const int64_t results = kBlock ? (int64_t)gridDim.x : (int64_t)gridDim.x * kBlockThreads;
  int64_t result = kBlock ? (int64_t)blockIdx.x : (int64_t)blockIdx.x * kBlockThreads + threadIdx.x;
  for (; result < g.results; result += results) {
    const T* const x = (const T*)g.x + place_in_axes(result, g.kept, g.kept_shape, g.kept_strides);
    C top = minus_infinity((C)0);
    for (int64_t i = first; i < g.count; i += step)
      top = FoldMax()(
          top, convert<C>(x[place_in_axes(i, g.reduced, g.reduced_shape, g.reduced_strides)]));
    if constexpr (kBlock) top = fold_block(top, FoldMax());
    if (top == minus_infinity((C)0) || top == -minus_infinity((C)0)) top = (C)0;
    double sum = 0;
    for (int64_t i = first; i < g.count; i += step) {
      const C value =
          convert<C>(x[place_in_axes(i, g.reduced, g.reduced_shape, g.reduced_strides)]);
      sum += (double)fn::exp(value - top);
    }
    if constexpr (kBlock) sum = fold_block(sum, FoldSum());
    if (first == 0) ((R*)g.out)[result] = convert<R>(fn::log(sum) + (double)top);
  }
}
