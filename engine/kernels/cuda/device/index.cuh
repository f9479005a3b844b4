// Gathers and scatters by index, positions of extrema, and running sums. Scatters go along lines
// whose elements no other line writes, in the order of the indices, so that every run gives the
// same bits.

constexpr int kIndexAxes = 8;

struct IndexArguments {
  const void *x, *index, *values;
  void *out, *counts;
  int64_t count, lines, length, inner;  ///< of elements or slices; lines of a scatter
  int64_t size, step;                   ///< of the indexed axis of x
  int64_t index_step;                   ///< between the indices of a line
  int axes, depth;
  int64_t shape[kIndexAxes], x_stride[kIndexAxes], index_stride[kIndexAxes];
  double alpha;
  int include_self;
  DataError* error;
  int64_t site[kIndexAxes];  ///< of messages, by coordinate
};

/// A valid index; an invalid one is recorded and replaced by 0.
PADDLE_DEVICE int64_t checked_index(const IndexArguments& g, int64_t value, int64_t size,
                                    int which) {
  if (value < -size || value >= size) {
    record_error(g.error, g.site[which], value);
    return 0;
  }
  return value < 0 ? value + size : value;
}

/// Places in x and the index of a line's or element's coordinates.
struct IndexPlace {
  int64_t x, index;
};
PADDLE_DEVICE IndexPlace index_place(const IndexArguments& g, int64_t n) {
  IndexPlace out = {0, 0};
  for (int axis = g.axes - 1; axis >= 0; --axis) {
    const int64_t rest = n / g.shape[axis], at = n - rest * g.shape[axis];
    out.x += at * g.x_stride[axis];
    out.index += at * g.index_stride[axis];
    n = rest;
  }
  return out;
}

/// Item: an unsigned type of an element's size.
template <class Index, class Item>
PADDLE_DEVICE void gather_along(const IndexArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.count; i += step) {
    const int64_t at = checked_index(g, (int64_t)((const Index*)g.index)[i], g.size, 0);
    ((Item*)g.out)[i] = ((const Item*)g.x)[index_place(g, i).x + at * g.step];
  }
}

/// Slices of `inner` elements at the indices, from each of the blocks of `size` slices.
template <class Index, class Item>
PADDLE_DEVICE void select_slices(const IndexArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.count; i += step) {
    const int64_t slice = i / g.inner, column = i - slice * g.inner;
    const int64_t block = slice / g.length, which = slice - block * g.length;
    const int64_t at = checked_index(g, (int64_t)((const Index*)g.index)[which], g.size, 0);
    ((Item*)g.out)[i] = ((const Item*)g.x)[(block * g.size + at) * g.inner + column];
  }
}

/// The slice that coordinates name.
template <class Index>
PADDLE_DEVICE int64_t coordinate_place(const IndexArguments& g, int64_t which) {
  int64_t out = 0;
  for (int axis = 0; axis < g.depth; ++axis)
    out += checked_index(g, (int64_t)((const Index*)g.index)[which * g.depth + axis], g.shape[axis],
                         axis) *
           g.x_stride[axis];
  return out;
}

template <class Index, class Item>
PADDLE_DEVICE void gather_coordinates(const IndexArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.count; i += step) {
    const int64_t which = i / g.inner;
    ((Item*)g.out)[i] =
        ((const Item*)g.x)[coordinate_place<Index>(g, which) * g.inner + (i - which * g.inner)];
  }
}

// --- scatters ---

/// How a new value joins an old one; 16-bit floats are combined in float.
struct CombineAssign {
  template <class C>
  PADDLE_DEVICE C operator()(C, C b) const {
    return b;
  }
};
struct CombineAdd {
  template <class C>
  PADDLE_DEVICE C operator()(C a, C b) const {
    return (C)(a + b);
  }
};
struct CombineMul {
  template <class C>
  PADDLE_DEVICE C operator()(C a, C b) const {
    return (C)(a * b);
  }
};
struct CombineMin {
  template <class C>
  PADDLE_DEVICE C operator()(C a, C b) const {
    return b < a ? b : a;
  }
};
struct CombineMax {
  template <class C>
  PADDLE_DEVICE C operator()(C a, C b) const {
    return b > a ? b : a;
  }
};

template <class T, class Combine>
PADDLE_DEVICE void combine_into(T& target, T value, Combine combine) {
  typedef typename Computed<T>::type C;
  target = convert<T>((C)combine((C)loaded(target), (C)loaded(value)));
}

/// Along an axis: a line has the same place in all other axes. With `kCounts` the number of values
/// that an element has is in `counts`.
template <class Index, class T, class Combine, bool kCounts>
PADDLE_DEVICE void scatter_along(const IndexArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t line = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; line < g.lines;
       line += step) {
    const IndexPlace place = index_place(g, line);
    for (int64_t k = 0; k < g.length; ++k) {
      const int64_t from = place.index + k * g.index_step;
      const int64_t at =
          place.x + checked_index(g, (int64_t)((const Index*)g.index)[from], g.size, 0) * g.step;
      T& target = ((T*)g.out)[at];
      const T value = ((const T*)g.values)[from];
      if constexpr (kCounts) {
        if (((int32_t*)g.counts)[at]++ == 0) {
          target = value;
          continue;
        }
      }
      combine_into(target, value, Combine());
    }
  }
}

/// The number of values of an element before a scatter.
PADDLE_DEVICE void begin_counts(const IndexArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.count; i += step)
    ((int32_t*)g.counts)[i] = g.include_self;
}
/// Sums to means.
template <class T>
PADDLE_DEVICE void divide_by_counts(const IndexArguments& g) {
  typedef typename Computed<T>::type C;
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.count; i += step) {
    const int32_t count = ((const int32_t*)g.counts)[i];
    if (count <= 1) continue;
    T& target = ((T*)g.out)[i];
    if constexpr (IsFloat<C>::value) {
      target = convert<T>((C)loaded(target) / (C)count);
    } else {
      target = (T)((int64_t)target / count);
    }
  }
}

/// Slices at indices, plus alpha times values; a thread has one column of one block.
template <class Index, class T, class Sum>
PADDLE_DEVICE void add_slices(const IndexArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  const Sum factor = IsFloat<Sum>::value ? (Sum)g.alpha : (Sum)(int64_t)g.alpha;
  for (int64_t line = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; line < g.lines;
       line += step) {
    const int64_t block = line / g.inner, column = line - block * g.inner;
    for (int64_t k = 0; k < g.length; ++k) {
      const int64_t at = checked_index(g, (int64_t)((const Index*)g.index)[k], g.size, 0);
      T& target = ((T*)g.out)[(block * g.size + at) * g.inner + column];
      const T value = ((const T*)g.values)[(block * g.length + k) * g.inner + column];
      target = convert<T>((Sum)(convert<Sum>(target) + factor * convert<Sum>(value)));
    }
  }
}

/// Slices at coordinates; a thread has one column.
template <class Index, class T, class Combine>
PADDLE_DEVICE void scatter_coordinates(const IndexArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t column = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; column < g.inner;
       column += step)
    for (int64_t k = 0; k < g.length; ++k)
      combine_into(((T*)g.out)[coordinate_place<Index>(g, k) * g.inner + column],
                   ((const T*)g.values)[k * g.inner + column], Combine());
}

template <class Index>
PADDLE_DEVICE void one_hot(const IndexArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.count; i += step) {
    const int64_t which = i / g.size, column = i - which * g.size;
    const int64_t at = (int64_t)((const Index*)g.index)[which];
    if (column == 0 && (at < 0 || at >= g.size)) record_error(g.error, g.site[0], at);
    ((float*)g.out)[i] = at == column ? 1.0f : 0.0f;
  }
}

/// Row-major places of coordinates, which lie axis by axis.
PADDLE_DEVICE void linear_index(const IndexArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.count; i += step) {
    int64_t place = 0;
    for (int axis = 0; axis < g.axes; ++axis) {
      const int64_t at = ((const int64_t*)g.index)[axis * g.count + i];
      if (at < 0 || at >= g.shape[axis]) record_error(g.error, g.site[axis], at);
      place = place * g.shape[axis] + at;
    }
    ((int64_t*)g.out)[i] = place;
  }
}

// --- rows: element k of a row is k * inner from its start ---

PADDLE_DEVICE int64_t line_start(const IndexArguments& g, int64_t line) {
  const int64_t block = line / g.inner;
  return block * g.inner * g.length + (line - block * g.inner);
}

template <class T>
struct Extremum {
  T value;
  int64_t at;
};
/// The one with the larger value; NaN is larger than numbers, and of equal ones the first counts.
template <class T, bool kMax>
struct FoldExtremum {
  PADDLE_DEVICE Extremum<T> operator()(const Extremum<T>& a, const Extremum<T>& b) const {
    if (a.at < 0) return b;
    if (b.at < 0) return a;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    bool takes_b = b.at < a.at;
    if (a_nan != b_nan)
      takes_b = b_nan;
    else if (!a_nan && a.value != b.value)
      takes_b = kMax ? b.value > a.value : b.value < a.value;
    return takes_b ? b : a;
  }
};

/// One block per row of contiguous elements, else one thread per row.
template <class T, class To, bool kMax, bool kBlock>
PADDLE_DEVICE void extremum_places(const IndexArguments& g) {
  typedef typename Computed<T>::type C;
  const FoldExtremum<C, kMax> fold;
  const int64_t step = kBlock ? (int64_t)gridDim.x : (int64_t)gridDim.x * kBlockThreads;
  const int64_t first =
      kBlock ? (int64_t)blockIdx.x : (int64_t)blockIdx.x * kBlockThreads + threadIdx.x;
  for (int64_t line = first; line < g.lines; line += step) {
    const T* const x = (const T*)g.x + line_start(g, line);
    Extremum<C> best = {(C)0, -1};
    for (int64_t k = kBlock ? threadIdx.x : 0; k < g.length; k += kBlock ? kBlockThreads : 1)
      best = fold(best, {(C)loaded(x[k * g.inner]), k});
    if constexpr (kBlock) best = fold_block(best, fold);
    if (!kBlock || threadIdx.x == 0) ((To*)g.out)[line] = convert<To>(best.at);
  }
}

/// Running sums or products in Sum. One block per row of contiguous elements, which scans 256 at a
/// time, else one thread per row.
template <class From, class Sum, class To, class Fold, bool kBlock>
PADDLE_DEVICE void running_folds(const IndexArguments& g) {
  const Sum neutral = IsSame<Fold, FoldProd>::value ? (Sum)1 : (Sum)0;
  const Fold fold;
  const int64_t step = kBlock ? (int64_t)gridDim.x : (int64_t)gridDim.x * kBlockThreads;
  const int64_t first =
      kBlock ? (int64_t)blockIdx.x : (int64_t)blockIdx.x * kBlockThreads + threadIdx.x;
  for (int64_t line = first; line < g.lines; line += step) {
    const int64_t start = line_start(g, line);
    const From* const x = (const From*)g.x + start;
    To* const out = (To*)g.out + start;
    Sum sum = neutral;
    if constexpr (kBlock) {
      __shared__ Sum values[kBlockThreads];
      const int thread = (int)threadIdx.x;
      for (int64_t begin = 0; begin < g.length; begin += kBlockThreads) {
        const int64_t k = begin + thread;
        values[thread] = k < g.length ? convert<Sum>(x[k]) : neutral;
        __syncthreads();
        for (int width = 1; width < kBlockThreads; width *= 2) {
          const Sum before = thread >= width ? values[thread - width] : neutral;
          __syncthreads();
          values[thread] = fold(values[thread], before);
          __syncthreads();
        }
        if (k < g.length) out[k] = convert<To>(fold(sum, values[thread]));
        sum = fold(sum, values[kBlockThreads - 1]);
        __syncthreads();
      }
    } else {
      for (int64_t k = 0; k < g.length; ++k) {
        sum = fold(sum, convert<Sum>(x[k * g.inner]));
        out[k * g.inner] = convert<To>(sum);
      }
    }
  }
}

/// The running maximum or minimum and its last position; one thread per row.
template <class T, class Place, bool kMax>
PADDLE_DEVICE void running_extrema(const IndexArguments& g) {
  typedef typename Computed<T>::type C;
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t line = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; line < g.lines;
       line += step) {
    const int64_t start = line_start(g, line);
    T best{};
    int64_t place = 0;
    for (int64_t k = 0; k < g.length; ++k) {
      const T value = ((const T*)g.x)[start + k * g.inner];
      const C wide = (C)loaded(value), old = (C)loaded(best);
      if (k == 0 || wide != wide || (old == old && (kMax ? wide >= old : wide <= old))) {
        best = value;
        place = k;
      }
      ((T*)g.out)[start + k * g.inner] = best;
      ((Place*)g.counts)[start + k * g.inner] = (Place)place;
    }
  }
}

/// log of the running sum of exp(x), in double; one thread per row.
template <class From, class To>
PADDLE_DEVICE void running_log_sums(const IndexArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  const double lowest = as_double(0xfff0000000000000ull);
  for (int64_t line = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; line < g.lines;
       line += step) {
    const int64_t start = line_start(g, line);
    double top = lowest, sum = 0;  // sum of exp(x - top)
    for (int64_t k = 0; k < g.length; ++k) {
      const double value = convert<double>(((const From*)g.x)[start + k * g.inner]);
      if (value > top) {
        sum = sum * ::exp(top - value) + 1;
        top = value;
      } else if (top != lowest || value != value) {
        sum += ::exp(value - top);
      }
      ((To*)g.out)[start + k * g.inner] = convert<To>(sum == 0 ? lowest : top + ::log(sum));
    }
  }
}
