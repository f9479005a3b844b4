// Batch normalization and its gradient: sums per channel, by blocks over chunks of a channel's
// elements, and the elements afterwards. Sums are kept in double, in an order that depends on sizes
// only.

/// A tensor is [outer, channels, inner].
struct ChannelArguments {
  const void *x, *grad;
  const void *running_mean, *running_var, *weight, *bias;  ///< of the gradient: mean and rstd
  void* out;
  void *new_mean, *new_var, *mean, *rstd;  ///< of the gradient: dweight, dbias, -, -
  void *scale, *shift, *slope;
  double* partial;     ///< [channels, chunks, 2]
  uint32_t* counters;  ///< by blocks of channels
  int64_t outer, channels, inner, size, count, chunk, chunks;
  Divider inner_size, channel_count;
  double momentum, epsilon;
  int batch;  ///< statistics are those of the batch
};

/// Element k of a channel.
PADDLE_DEVICE int64_t channel_place(const ChannelArguments& g, int64_t channel, int64_t k) {
  const int64_t outer = divide((uint32_t)k, g.inner_size);
  return (outer * g.channels + channel) * g.inner + (k - outer * g.inner);
}

/// The block's channel and chunk. With channels last a block has 32 neighboring channels, one for
/// each lane, and 8 rows at a time.
struct ChannelWork {
  int64_t channel, begin, end, first, step;
};
template <bool kLast>
PADDLE_DEVICE ChannelWork channel_work(const ChannelArguments& g) {
  const int thread = (int)threadIdx.x;
  ChannelWork out;
  out.channel = kLast ? (int64_t)blockIdx.x * 32 + thread % 32 : (int64_t)blockIdx.x;
  out.begin = (int64_t)blockIdx.y * g.chunk;
  out.end = out.begin + g.chunk < g.count ? out.begin + g.chunk : g.count;
  if (out.channel >= g.channels) out.end = out.begin;
  out.first = out.begin + (kLast ? thread / 32 : thread);
  out.step = kLast ? kBlockThreads / 32 : kBlockThreads;
  return out;
}

/// Folds the threads of a channel; every thread of a channel has the sum.
template <bool kLast>
PADDLE_DEVICE double fold_channel(double value) {
  if constexpr (kLast) {
    __shared__ double values[kBlockThreads];
    const int thread = (int)threadIdx.x;
    values[thread] = value;
    __syncthreads();
    double sum = 0;
    for (int i = thread % 32; i < kBlockThreads; i += 32) sum += values[i];
    __syncthreads();
    return sum;
  } else {
    return fold_block(value, FoldSum());
  }
}

/// Whether the thread stores what its channel sums up to.
template <bool kLast>
PADDLE_DEVICE bool is_first_of_channel(const ChannelArguments& g, const ChannelWork& work) {
  return kLast ? threadIdx.x < 32 && work.channel < g.channels : threadIdx.x == 0;
}

template <bool kLast>
PADDLE_DEVICE void store_partial(const ChannelArguments& g, const ChannelWork& work, double first,
                                 double second) {
  if (!is_first_of_channel<kLast>(g, work)) return;
  double* const to = g.partial + (work.channel * g.chunks + (int64_t)blockIdx.y) * 2;
  to[0] = first;
  to[1] = second;
}

/// The mean of a chunk and the sum of squared distances from it.
template <class T, bool kLast>
PADDLE_DEVICE ChannelWork channel_moments(const ChannelArguments& g) {
  const ChannelWork work = channel_work<kLast>(g);
  const T* const x = (const T*)g.x;
  double sum = 0;
  for (int64_t k = work.first; k < work.end; k += work.step)
    sum += (double)loaded(x[channel_place(g, work.channel, k)]);
  const int64_t count = work.end - work.begin;
  const double mean = fold_channel<kLast>(sum) / (double)(count > 0 ? count : 1);
  double squares = 0;
  for (int64_t k = work.first; k < work.end; k += work.step) {
    const double distance = (double)loaded(x[channel_place(g, work.channel, k)]) - mean;
    squares += distance * distance;
  }
  store_partial<kLast>(g, work, mean, fold_channel<kLast>(squares));
  return work;
}

/// C: type of mean, rstd and what follows from them; M, V, W, B: of the other vectors.
template <class C, class M, class V, class W, class B>
PADDLE_DEVICE void statistics_of(const ChannelArguments& g, int64_t channel) {
  const double old_mean = convert<double>(((const M*)g.running_mean)[channel]);
  const double old_var = convert<double>(((const V*)g.running_var)[channel]);
  double center = old_mean, variance = old_var;
  if (g.batch) {
    // Chunks are joined in order: counts, means and squared distances of two sets.
    double count = 0, mean = 0, squares = 0;
    for (int64_t chunk = 0; chunk < g.chunks; ++chunk) {
      const int64_t begin = chunk * g.chunk;
      const int64_t end = begin + g.chunk < g.count ? begin + g.chunk : g.count;
      const double more = (double)(end - begin), all = count + more;
      const double* const part = g.partial + (channel * g.chunks + chunk) * 2;
      const double distance = part[0] - mean;
      mean += distance * (more / all);
      squares += part[1] + distance * distance * (count * more / all);
      count = all;
    }
    center = mean;
    variance = squares / (double)g.count;
  }
  const double rstd = 1 / sqrt(variance + g.epsilon);
  const double blend = g.batch ? g.momentum : 1;
  if (g.new_mean)
    ((M*)g.new_mean)[channel] =
        convert<M>(old_mean * blend + (g.batch ? center * (1 - g.momentum) : 0));
  if (g.new_var)
    ((V*)g.new_var)[channel] =
        convert<V>(old_var * blend + (g.batch ? variance * (1 - g.momentum) : 0));
  if (g.mean) ((C*)g.mean)[channel] = convert<C>(center);
  if (g.rstd) ((C*)g.rstd)[channel] = convert<C>(rstd);
  if (g.scale)
    ((C*)g.scale)[channel] =
        convert<C>(rstd * (g.weight ? convert<double>(((const W*)g.weight)[channel]) : 1));
  if (g.shift)
    ((C*)g.shift)[channel] =
        convert<C>(g.bias ? convert<double>(((const B*)g.bias)[channel]) : 0.0);
}

/// The last block of a channel finds its statistics.
template <class T, bool kLast, class C, class M, class V, class W, class B>
PADDLE_DEVICE void channel_statistics(const ChannelArguments& g) {
  const ChannelWork work = g.batch ? channel_moments<T, kLast>(g) : channel_work<kLast>(g);
  if (!is_last_block(g.counters + blockIdx.x, gridDim.y)) return;
  if (is_first_of_channel<kLast>(g, work)) statistics_of<C, M, V, W, B>(g, work.channel);
}

PADDLE_DEVICE int64_t channel_of(const ChannelArguments& g, int64_t i) {
  const uint32_t plane = divide((uint32_t)i, g.inner_size);
  return plane - divide(plane, g.channel_count) * g.channel_count.divisor;
}

/// (x - mean) scale + shift.
template <class C, class T>
PADDLE_DEVICE void normalize_channels(const ChannelArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.size; i += step) {
    const int64_t c = channel_of(g, i);
    const C value =
        (convert<C>(((const T*)g.x)[i]) - ((const C*)g.mean)[c]) * ((const C*)g.scale)[c] +
        ((const C*)g.shift)[c];
    ((T*)g.out)[i] = convert<T>(value);
  }
}

/// The sums of the gradient, and of its products with the distance from the mean.
template <class C, class G, class T, bool kLast>
PADDLE_DEVICE ChannelWork channel_grad_sums(const ChannelArguments& g) {
  const ChannelWork work = channel_work<kLast>(g);
  const G* const grad = (const G*)g.grad;
  const T* const x = (const T*)g.x;
  const double mean =
      work.channel < g.channels ? (double)((const C*)g.running_mean)[work.channel] : 0;
  double sum = 0, centered = 0;
  for (int64_t k = work.first; k < work.end; k += work.step) {
    const int64_t at = channel_place(g, work.channel, k);
    const double value = (double)loaded(grad[at]);
    sum += value;
    centered += value * ((double)loaded(x[at]) - mean);
  }
  sum = fold_channel<kLast>(sum);
  store_partial<kLast>(g, work, sum, fold_channel<kLast>(centered));
  return work;
}

template <class C, class W>
PADDLE_DEVICE void grad_statistics_of(const ChannelArguments& g, int64_t channel) {
  double sum = 0, centered = 0;
  for (int64_t chunk = 0; chunk < g.chunks; ++chunk) {
    const double* const part = g.partial + (channel * g.chunks + chunk) * 2;
    sum += part[0];
    centered += part[1];
  }
  const double rstd = (double)((const C*)g.running_var)[channel], dweight = centered * rstd;
  const double factor = (g.weight ? convert<double>(((const W*)g.weight)[channel]) : 1) * rstd;
  const double count = (double)g.count;
  if (g.new_mean) ((C*)g.new_mean)[channel] = (C)dweight;
  if (g.new_var) ((C*)g.new_var)[channel] = (C)sum;
  if (g.scale) ((C*)g.scale)[channel] = (C)factor;
  if (g.slope) ((C*)g.slope)[channel] = (C)(g.batch ? -factor * rstd * dweight / count : 0);
  if (g.shift) ((C*)g.shift)[channel] = (C)(g.batch ? -factor * sum / count : 0);
}

template <class C, class G, class T, bool kLast, class W>
PADDLE_DEVICE void channel_grad_statistics(const ChannelArguments& g) {
  const ChannelWork work = channel_grad_sums<C, G, T, kLast>(g);
  if (!is_last_block(g.counters + blockIdx.x, gridDim.y)) return;
  if (is_first_of_channel<kLast>(g, work)) grad_statistics_of<C, W>(g, work.channel);
}

/// grad scale + (x - mean) slope + shift.
template <class C, class G, class T>
PADDLE_DEVICE void combine_channels(const ChannelArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.size; i += step) {
    const int64_t c = channel_of(g, i);
    const C value =
        convert<C>(((const G*)g.grad)[i]) * ((const C*)g.scale)[c] +
        (convert<C>(((const T*)g.x)[i]) - ((const C*)g.running_mean)[c]) * ((const C*)g.slope)[c] +
        ((const C*)g.shift)[c];
    ((T*)g.out)[i] = convert<T>(value);
  }
}
