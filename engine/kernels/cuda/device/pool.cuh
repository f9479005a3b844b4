// Pooling over planes and its gradients, in both layouts.

struct PoolArguments {
  const void *x, *mask;
  void *out, *out1;
  int64_t size, planes;  ///< of what a kernel writes; planes of a batch
  int64_t in_batch, in_channel, in_row, in_column;
  int64_t out_batch, out_channel, out_row, out_column;
  Divider channels, in_height, in_width, out_height, out_width, stride_height, stride_width;
  int height, width, windows_height, windows_width;
  int kernel_height, kernel_width, step_height, step_width;
  int top, bottom, left, right;
  int channels_last, exclusive;
  double divisor;
};

struct PoolPlace {
  uint32_t image, channel;
  int row, column;
};

/// The place of element n of a tensor in the order of memory.
PADDLE_DEVICE PoolPlace pool_place(const PoolArguments& g, uint32_t n, Divider height,
                                   Divider width) {
  PoolPlace out;
  uint32_t rest;
  if (g.channels_last) {
    rest = divide(n, g.channels);
    out.channel = n - rest * g.channels.divisor;
    n = rest;
  }
  rest = divide(n, width);
  out.column = (int)(n - rest * width.divisor);
  n = rest;
  rest = divide(n, height);
  out.row = (int)(n - rest * height.divisor);
  n = rest;
  if (!g.channels_last) {
    rest = divide(n, g.channels);
    out.channel = n - rest * g.channels.divisor;
    n = rest;
  }
  out.image = n;
  return out;
}

template <class T>
PADDLE_DEVICE T least_value() {
  if constexpr (IsFloat<T>::value) {
    return (T)as_float(0xff800000u);
  } else if constexpr ((T)-1 < (T)0) {
    return (T)((uint64_t)1 << (sizeof(T) * 8 - 1));
  } else {
    return (T)0;
  }
}

PADDLE_DEVICE int nearest_place(int place, int size) {
  const int most = size - 1, low = place < most ? place : most;
  return low > 0 ? low : 0;
}

/// The largest element of each window, and its place in the plane; NaN wins.
template <class T>
PADDLE_DEVICE void max_pool(const PoolArguments& g) {
  typedef typename Computed<T>::type C;
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.size; i += step) {
    const PoolPlace at = pool_place(g, (uint32_t)i, g.out_height, g.out_width);
    const T* const x = (const T*)g.x + at.image * g.in_batch + at.channel * g.in_channel;
    const int h0 = at.row * g.step_height - g.top, w0 = at.column * g.step_width - g.left;
    const int h1 = h0 + g.kernel_height < g.height ? h0 + g.kernel_height : g.height;
    const int w1 = w0 + g.kernel_width < g.width ? w0 + g.kernel_width : g.width;
    C best = least_value<C>();
    int place = nearest_place(h0, g.height) * g.width + nearest_place(w0, g.width);
    for (int h = h0 > 0 ? h0 : 0; h < h1; ++h)
      for (int w = w0 > 0 ? w0 : 0; w < w1; ++w) {
        const C value = loaded(x[h * g.in_row + w * g.in_column]);
        if (value > best || value != value) {
          best = value;
          place = h * g.width + w;
        }
      }
    ((T*)g.out)[i] = convert<T>(best);
    if (g.out1) ((int32_t*)g.out1)[i] = place;
  }
}

/// Adds the gradients of a plane's windows at their places, in order; windows may overlap. A block
/// makes a plane. Among windows that are added at the same time, the first of those with one place
/// adds all of them.
template <class S, class T>
PADDLE_DEVICE void max_pool_grad(const PoolArguments& g) {
  __shared__ int places[kBlockThreads];
  __shared__ S values[kBlockThreads];
  const int thread = (int)threadIdx.x, count = g.windows_height * g.windows_width;
  const int pixels = g.height * g.width;
  for (int64_t plane = blockIdx.x; plane < g.planes; plane += gridDim.x) {
    const uint32_t image = divide((uint32_t)plane, g.channels);
    const uint32_t channel = (uint32_t)plane - image * g.channels.divisor;
    S* const out = (S*)g.out + image * g.in_batch + channel * g.in_channel;
    const int64_t from = image * g.out_batch + channel * g.out_channel;
    for (int pixel = thread; pixel < pixels; pixel += kBlockThreads)
      out[pixel * g.in_column] = (S)0;
    __syncthreads();
    for (int first = 0; first < count; first += kBlockThreads) {
      const int window = first + thread;
      int place = -1;
      if (window < count) {
        const int64_t at = from + window * g.out_column;
        place = ((const int32_t*)g.mask)[at];
        if (place < 0 || place >= pixels) place = -1;
        values[thread] = (S)loaded(((const T*)g.x)[at]);
      }
      places[thread] = place;
      __syncthreads();
      if (place >= 0) {
        bool is_first = true;
        for (int i = 0; i < thread; ++i) is_first = is_first && places[i] != place;
        if (is_first) {
          S sum = out[place * g.in_column];
          for (int i = thread; i < kBlockThreads; ++i)
            if (places[i] == place) sum = (S)(sum + values[i]);
          out[place * g.in_column] = sum;
        }
      }
      __syncthreads();
    }
  }
}

/// Sums in float, to the result's type.
template <class T>
PADDLE_DEVICE void narrow(const PoolArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.size; i += step)
    ((T*)g.out1)[i] = convert<T>(((const float*)g.out)[i]);
}

/// The elements of each plane at the places of the mask; 0 for a place outside of the plane.
template <class T>
PADDLE_DEVICE void max_pool_take(const PoolArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.size; i += step) {
    const PoolPlace at = pool_place(g, (uint32_t)i, g.out_height, g.out_width);
    const int place = ((const int32_t*)g.mask)[i];
    const bool inside = place >= 0 && place < g.height * g.width;
    const int64_t from = at.image * g.in_batch + at.channel * g.in_channel;
    T zero;
    memset(&zero, 0, sizeof(T));
    ((T*)g.out)[i] = inside ? ((const T*)g.x)[from + place * g.in_column] : zero;
  }
}

/// The elements of a window inside the input, and the divisor of their sum.
struct PoolWindow {
  int first_h, last_h, first_w, last_w;
  double divisor;
};
PADDLE_DEVICE PoolWindow average_window(const PoolArguments& g, int row, int column) {
  const int h0 = row * g.step_height - g.top, w0 = column * g.step_width - g.left;
  // Windows that ceil_mode adds count only elements of the padded input.
  const int padded_h = g.height + g.bottom, padded_w = g.width + g.right;
  const int h1 = h0 + g.kernel_height < padded_h ? h0 + g.kernel_height : padded_h;
  const int w1 = w0 + g.kernel_width < padded_w ? w0 + g.kernel_width : padded_w;
  PoolWindow out;
  out.first_h = h0 > 0 ? h0 : 0;
  out.last_h = h1 < g.height ? h1 : g.height;
  out.first_w = w0 > 0 ? w0 : 0;
  out.last_w = w1 < g.width ? w1 : g.width;
  out.divisor = g.divisor;
  if (g.divisor == 0) {
    const int inside_h = out.last_h > out.first_h ? out.last_h - out.first_h : 0;
    const int inside_w = out.last_w > out.first_w ? out.last_w - out.first_w : 0;
    out.divisor = g.exclusive ? (double)((int64_t)inside_h * inside_w)
                              : (double)((int64_t)(h1 - h0) * (w1 - w0));
  }
  return out;
}

template <class C, class T>
PADDLE_DEVICE void average_pool(const PoolArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.size; i += step) {
    const PoolPlace at = pool_place(g, (uint32_t)i, g.out_height, g.out_width);
    const T* const x = (const T*)g.x + at.image * g.in_batch + at.channel * g.in_channel;
    const PoolWindow window = average_window(g, at.row, at.column);
    C sum = (C)0;
    for (int h = window.first_h; h < window.last_h; ++h)
      for (int w = window.first_w; w < window.last_w; ++w)
        sum += convert<C>(x[h * g.in_row + w * g.in_column]);
    ((T*)g.out)[i] = convert<T>(sum / (C)window.divisor);
  }
}

/// A plane of few windows, one block for each window; the plane is summed in a fixed order.
template <class C, class T>
PADDLE_DEVICE void average_pool_large(const PoolArguments& g) {
  for (int64_t i = blockIdx.x; i < g.size; i += gridDim.x) {
    const PoolPlace at = pool_place(g, (uint32_t)i, g.out_height, g.out_width);
    const T* const x = (const T*)g.x + at.image * g.in_batch + at.channel * g.in_channel;
    const PoolWindow window = average_window(g, at.row, at.column);
    const int width = window.last_w - window.first_w;
    const int count = width > 0 ? width * (window.last_h - window.first_h) : 0;
    C sum = (C)0;
    for (int k = (int)threadIdx.x; k < count; k += kBlockThreads) {
      const int h = window.first_h + k / width, w = window.first_w + k % width;
      sum += convert<C>(x[h * g.in_row + w * g.in_column]);
    }
    sum = fold_block(sum, FoldSum());
    if (threadIdx.x == 0) ((T*)g.out)[i] = convert<T>(sum / (C)window.divisor);
  }
}

/// Each element of the input takes from the windows that contain it, in order.
template <class C, class T>
PADDLE_DEVICE void average_pool_grad(const PoolArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.size; i += step) {
    const PoolPlace at = pool_place(g, (uint32_t)i, g.in_height, g.in_width);
    const T* const grad = (const T*)g.x + at.image * g.out_batch + at.channel * g.out_channel;
    const int h = at.row + g.top, w = at.column + g.left;
    // The first window that reaches here: row * step + kernel > h.
    const int before_h = h - g.kernel_height + 1, before_w = w - g.kernel_width + 1;
    const int row0 =
        before_h <= 0 ? 0 : (int)divide((uint32_t)(before_h + g.step_height - 1), g.stride_height);
    const int column0 =
        before_w <= 0 ? 0 : (int)divide((uint32_t)(before_w + g.step_width - 1), g.stride_width);
    C sum = (C)0;
    for (int row = row0; row < g.windows_height && row * g.step_height <= h; ++row)
      for (int column = column0; column < g.windows_width && column * g.step_width <= w; ++column)
        sum += convert<C>(grad[row * g.out_row + column * g.out_column]) /
               (C)average_window(g, row, column).divisor;
    ((T*)g.out)[i] = convert<T>(sum);
  }
}
