// Kernels over rows: softmax, cross entropy, normalization, and their gradients. Threads of a block
// fold a row together. Elements of a row are `inner` apart.

struct RowArguments {
  const void *a, *b, *c, *d, *e;  ///< operands
  void *out, *out1, *out2;        ///< results; null if unused
  void* partial;
  uint32_t* counters;
  int64_t rows, length, inner, chunks;
  double number;    ///< epsilon
  int64_t ignored;  ///< the label without loss
  DataError* error;
  int64_t site;
};

PADDLE_DEVICE int64_t row_start(const RowArguments& arguments, int64_t row) {
  return row / arguments.inner * arguments.inner * arguments.length + row % arguments.inner;
}

// --- softmax ---

template <class C, class From, class To, bool kLog>
PADDLE_DEVICE void softmax_rows(const RowArguments& arguments) {
  for (int64_t row = blockIdx.x; row < arguments.rows; row += gridDim.x) {
    const int64_t start = row_start(arguments, row);
    const From* const x = (const From*)arguments.a + start;
    To* const out = (To*)arguments.out + start;
    C top = minus_infinity((C)0);
    for (int64_t i = threadIdx.x; i < arguments.length; i += kBlockThreads)
      top = FoldMax()(top, convert<C>(x[i * arguments.inner]));
    top = fold_block(top, FoldMax());
    C sum = (C)0;
    for (int64_t i = threadIdx.x; i < arguments.length; i += kBlockThreads)
      sum += fn::exp(convert<C>(x[i * arguments.inner]) - top);
    sum = fold_block(sum, FoldSum());
    const C scale = kLog ? fn::log(sum) : (C)1 / sum;
    for (int64_t i = threadIdx.x; i < arguments.length; i += kBlockThreads) {
      const C value = convert<C>(x[i * arguments.inner]) - top;
      out[i * arguments.inner] = convert<To>(kLog ? value - scale : fn::exp(value) * scale);
    }
  }
}

// --- cross entropy of logits ---

template <class C, class T, class Label, class Loss, class Sum>
PADDLE_DEVICE void cross_entropy_rows(const RowArguments& arguments) {
  for (int64_t row = blockIdx.x; row < arguments.rows; row += gridDim.x) {
    const T* const x = (const T*)arguments.a + row_start(arguments, row);
    C top = minus_infinity((C)0);
    for (int64_t i = threadIdx.x; i < arguments.length; i += kBlockThreads)
      top = FoldMax()(top, convert<C>(x[i * arguments.inner]));
    top = fold_block(top, FoldMax());
    C sum = (C)0;
    for (int64_t i = threadIdx.x; i < arguments.length; i += kBlockThreads)
      sum += fn::exp(convert<C>(x[i * arguments.inner]) - top);
    sum = fold_block(sum, FoldSum());
    if (threadIdx.x != 0) continue;
    const C log_sum = top + fn::log(sum);
    const int64_t label = (int64_t)((const Label*)arguments.b)[row];
    C loss = (C)0;
    if (label != arguments.ignored) {
      if (label < 0 || label >= arguments.length)
        record_error(arguments.error, arguments.site, label);
      else
        loss = log_sum - convert<C>(x[label * arguments.inner]);
    }
    ((Loss*)arguments.out)[row] = convert<Loss>(loss);
    if (arguments.out1) ((Sum*)arguments.out1)[row] = convert<Sum>(log_sum);
  }
}

/// a: gradient of the loss, b: logits, c: labels, d: log sums.
template <class C, class T, class To, class Label, class Grad, class Sum>
PADDLE_DEVICE void cross_entropy_grad_rows(const RowArguments& arguments) {
  for (int64_t row = blockIdx.x; row < arguments.rows; row += gridDim.x) {
    const int64_t start = row_start(arguments, row);
    const T* const x = (const T*)arguments.b + start;
    To* const out = (To*)arguments.out + start;
    const int64_t label = (int64_t)((const Label*)arguments.c)[row];
    const bool skipped = label == arguments.ignored;
    if (threadIdx.x == 0 && !skipped && (label < 0 || label >= arguments.length))
      record_error(arguments.error, arguments.site, label);
    const C grad = convert<C>(((const Grad*)arguments.a)[row]);
    const C log_sum = convert<C>(((const Sum*)arguments.d)[row]);
    for (int64_t i = threadIdx.x; i < arguments.length; i += kBlockThreads) {
      const int64_t at = i * arguments.inner;
      C value = (C)0;
      if (!skipped) {
        value = fn::exp(convert<C>(x[at]) - log_sum);
        if (i == label) value -= (C)1;
        value = value * grad;
      }
      out[at] = convert<To>(value);
    }
  }
}

// --- normalization ---

/// a: x, b: weight or null, c: bias or null. Results: normalized, means, reciprocal deviations.
template <class C, class T, class To, class Weight, class Bias, bool kCentered>
PADDLE_DEVICE void normalize_rows(const RowArguments& arguments) {
  const int64_t n = arguments.length;
  for (int64_t row = blockIdx.x; row < arguments.rows; row += gridDim.x) {
    const T* const x = (const T*)arguments.a + row * n;
    To* const out = (To*)arguments.out + row * n;
    C center = (C)0;
    if constexpr (kCentered) {
      for (int64_t i = threadIdx.x; i < n; i += kBlockThreads) center += convert<C>(x[i]);
      center = fold_block(center, FoldSum()) / (C)n;
    }
    C square = (C)0;
    for (int64_t i = threadIdx.x; i < n; i += kBlockThreads) {
      const C value = convert<C>(x[i]) - center;
      square += value * value;
    }
    square = fold_block(square, FoldSum()) / (C)n;
    const C scale = (C)1 / fn::sqrt(square + (C)arguments.number);
    for (int64_t i = threadIdx.x; i < n; i += kBlockThreads) {
      C value = (convert<C>(x[i]) - center) * scale;
      if (arguments.b) value = value * convert<C>(((const Weight*)arguments.b)[i]);
      if (arguments.c) value = value + convert<C>(((const Bias*)arguments.c)[i]);
      out[i] = convert<To>(value);
    }
    if (threadIdx.x == 0) {
      if (arguments.out1) ((C*)arguments.out1)[row] = center;
      if (arguments.out2) ((C*)arguments.out2)[row] = scale;
    }
  }
}

/// The gradient of x. a: gradient, b: x, c: means, d: reciprocal deviations, e: weight or null.
template <class C, class T, class Grad, class Weight, class To>
PADDLE_DEVICE void normalize_grad_rows(const RowArguments& arguments) {
  const int64_t n = arguments.length;
  const Weight* const weight = (const Weight*)arguments.e;
  for (int64_t row = blockIdx.x; row < arguments.rows; row += gridDim.x) {
    const Grad* const grad = (const Grad*)arguments.a + row * n;
    const T* const x = (const T*)arguments.b + row * n;
    To* const out = (To*)arguments.out + row * n;
    const C mean = ((const C*)arguments.c)[row], scale = ((const C*)arguments.d)[row];
    C sum = (C)0, centered = (C)0;
    for (int64_t i = threadIdx.x; i < n; i += kBlockThreads) {
      C g = convert<C>(grad[i]);
      if (weight) g = g * convert<C>(weight[i]);
      sum += g;
      centered += g * (convert<C>(x[i]) - mean);
    }
    sum = fold_block(sum, FoldSum()) / (C)n;
    centered = fold_block(centered, FoldSum()) * scale * scale / (C)n;
    for (int64_t i = threadIdx.x; i < n; i += kBlockThreads) {
      C g = convert<C>(grad[i]);
      if (weight) g = g * convert<C>(weight[i]);
      out[i] = convert<To>((g - sum - centered * (convert<C>(x[i]) - mean)) * scale);
    }
  }
}

/// The gradients of weight and bias: sums over the rows of a chunk, for 32 columns per block; the
/// last block of the columns adds the chunks in order.
template <class C, class T, class Grad, class WeightGrad, class BiasGrad>
PADDLE_DEVICE void normalize_grad_columns(const RowArguments& arguments) {
  __shared__ C shared[2][kBlockThreads];
  const int64_t n = arguments.length;
  const int thread = (int)threadIdx.x;
  const int64_t column = (int64_t)blockIdx.x * 32 + thread % 32;
  const int64_t begin = arguments.rows * blockIdx.y / gridDim.y;
  const int64_t end = arguments.rows * (blockIdx.y + 1) / gridDim.y;
  C weight = (C)0, bias = (C)0;
  if (column < n)
    for (int64_t row = begin + thread / 32; row < end; row += kBlockThreads / 32) {
      const C g = convert<C>(((const Grad*)arguments.a)[row * n + column]);
      const C x = convert<C>(((const T*)arguments.b)[row * n + column]);
      weight += g * (x - ((const C*)arguments.c)[row]) * ((const C*)arguments.d)[row];
      bias += g;
    }
  for (int turn = 0;; ++turn) {
    shared[0][thread] = weight;
    shared[1][thread] = bias;
    __syncthreads();
    if (thread < 32)
      for (int i = thread + 32; i < kBlockThreads; i += 32) {
        weight += shared[0][i];
        bias += shared[1][i];
      }
    if (turn == 1 || gridDim.y == 1) break;
    C* const partial = (C*)arguments.partial;
    if (thread < 32 && column < n) {
      partial[blockIdx.y * 2 * n + column] = weight;
      partial[blockIdx.y * 2 * n + n + column] = bias;
    }
    if (!is_last_block(arguments.counters + blockIdx.x, gridDim.y)) return;
    weight = bias = (C)0;
    if (column < n)
      for (int64_t chunk = thread / 32; chunk < gridDim.y; chunk += kBlockThreads / 32) {
        weight += partial[chunk * 2 * n + column];
        bias += partial[chunk * 2 * n + n + column];
      }
  }
  if (thread >= 32 || column >= n) return;
  if (arguments.out1) ((WeightGrad*)arguments.out1)[column] = convert<WeightGrad>(weight);
  if (arguments.out2) ((BiasGrad*)arguments.out2)[column] = convert<BiasGrad>(bias);
}

// --- sums of squares ---

/// a: x; partial: one sum per block, which the last block adds.
template <class T>
PADDLE_DEVICE void sum_squares(const RowArguments& arguments) {
  const int64_t begin = (int64_t)blockIdx.x * arguments.length;
  const int64_t limit = begin + arguments.length;
  const int64_t end = limit < arguments.rows ? limit : arguments.rows;
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kBlockThreads) {
    const double value = (double)loaded(((const T*)arguments.a)[i]);
    sum += value * value;
  }
  sum = fold_block(sum, FoldSum());
  double* const partial = (double*)arguments.partial;
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
  if (!is_last_block(arguments.counters, gridDim.x)) return;
  sum = 0;
  for (int64_t i = threadIdx.x; i < gridDim.x; i += kBlockThreads) sum += partial[i];
  sum = fold_block(sum, FoldSum());
  if (threadIdx.x == 0) ((double*)arguments.out)[0] = sum;
}

// --- finite tensors ---

constexpr int kFiniteTensors = 64;
struct FiniteArguments {
  const void* x[kFiniteTensors];
  int64_t size[kFiniteTensors];
  bool* out;
};
/// Clears `out` where an element of tensor blockIdx.y is infinite or NaN.
template <class T>
PADDLE_DEVICE void find_not_finite(const FiniteArguments& g) {
  const T* const x = (const T*)g.x[blockIdx.y];
  const int64_t size = g.size[blockIdx.y], step = (int64_t)gridDim.x * kBlockThreads;
  bool found = false;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < size; i += step)
    found = found || !fn::isfinite(loaded(x[i]));
  if (found) *g.out = false;
}
