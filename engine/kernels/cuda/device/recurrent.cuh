// The cells of recurrent layers, one step at a time; the products with the hidden state's weight
// come before (forward) or after (backward). A thread has one element of the hidden state.
//
//   lstm: [i f g o] = gates + W h; c' = σ(f) c + σ(i) tanh(g); h' = σ(o) tanh(c')
//   gru:  [r z n] = gates; r, z += W h; n = tanh(n + σ(r) (W h + b)); h' = σ(z) h + (1 - σ(z)) n
//   rnn:  h' = activation(gates + W h)

struct RecurrentArguments {
  const void *gates, *bias, *h;
  void* share;  ///< W h; of the gradient: its product with the weight in the step after, or null
  void *c, *saved, *out, *last;
  const void *grad_out, *c_before, *h_before, *values;  ///< of the gradient; values: saved ones
  void *dh, *dc, *dgates, *dhidden;
  int64_t batch, hidden, steps, step, h_stride, before_stride, c_stride;
};

template <class T>
PADDLE_DEVICE T sigmoid_of(T x) {
  return (T)1 / ((T)1 + fn::exp(-x));
}

struct LstmCell {
  template <class T>
  PADDLE_DEVICE static T apply(const RecurrentArguments& g, int64_t b, int64_t k) {
    const int64_t n = g.hidden, at = b * g.steps + g.step;
    const T* const gates = (const T*)g.gates + at * 4 * n;
    const T* const share = (const T*)g.share + b * 4 * n;
    const T i = sigmoid_of(share[k] + gates[k]), f = sigmoid_of(share[n + k] + gates[n + k]);
    const T m = fn::tanh(share[2 * n + k] + gates[2 * n + k]);
    const T o = sigmoid_of(share[3 * n + k] + gates[3 * n + k]);
    T& c = ((T*)g.c)[b * n + k];
    c = f * c + i * m;
    if (g.saved) {
      T* const saved = (T*)g.saved + at * 5 * n;
      saved[k] = i;
      saved[n + k] = f;
      saved[2 * n + k] = m;
      saved[3 * n + k] = o;
      saved[4 * n + k] = c;
    }
    return fn::tanh(c) * o;
  }
  template <class T>
  PADDLE_DEVICE static T gradient(const RecurrentArguments& g, int64_t b, int64_t k, T dh) {
    const int64_t n = g.hidden, at = b * g.steps + g.step;
    const T* const saved = (const T*)g.values + at * 5 * n;
    const T i = saved[k], f = saved[n + k], m = saved[2 * n + k], o = saved[3 * n + k];
    const T t = fn::tanh(saved[4 * n + k]);
    T& dc = ((T*)g.dc)[b * n + k];
    const T d = dc + dh * o * ((T)1 - t * t);
    const T before = ((const T*)g.c_before)[b * g.c_stride + k];
    T* const dgates = (T*)g.dgates + at * 4 * n;
    T* const dhidden = (T*)g.dhidden + at * 4 * n;
    dhidden[3 * n + k] = dgates[3 * n + k] = dh * t * o * ((T)1 - o);
    dhidden[k] = dgates[k] = d * m * i * ((T)1 - i);
    dhidden[n + k] = dgates[n + k] = d * before * f * ((T)1 - f);
    dhidden[2 * n + k] = dgates[2 * n + k] = d * i * ((T)1 - m * m);
    dc = d * f;
    return (T)0;
  }
};

struct GruCell {
  template <class T>
  PADDLE_DEVICE static T apply(const RecurrentArguments& g, int64_t b, int64_t k) {
    const int64_t n = g.hidden, at = b * g.steps + g.step;
    const T* const gates = (const T*)g.gates + at * 3 * n;
    const T* const share = (const T*)g.share + b * 3 * n;
    const T* const bias = (const T*)g.bias;
    const T zero = (T)0;
    const T r = sigmoid_of(share[k] + (bias ? bias[k] : zero) + gates[k]);
    const T z = sigmoid_of(share[n + k] + (bias ? bias[n + k] : zero) + gates[n + k]);
    const T own = share[2 * n + k] + (bias ? bias[2 * n + k] : zero);
    const T m = fn::tanh(gates[2 * n + k] + r * own);
    if (g.saved) {
      T* const saved = (T*)g.saved + at * 4 * n;
      saved[k] = r;
      saved[n + k] = z;
      saved[2 * n + k] = m;
      saved[3 * n + k] = own;
    }
    return z * (((const T*)g.h)[b * g.h_stride + k] - m) + m;
  }
  template <class T>
  PADDLE_DEVICE static T gradient(const RecurrentArguments& g, int64_t b, int64_t k, T dh) {
    const int64_t n = g.hidden, at = b * g.steps + g.step;
    const T* const saved = (const T*)g.values + at * 4 * n;
    const T r = saved[k], z = saved[n + k], m = saved[2 * n + k], own = saved[3 * n + k];
    const T before = ((const T*)g.h_before)[b * g.before_stride + k];
    T* const dgates = (T*)g.dgates + at * 3 * n;
    T* const dhidden = (T*)g.dhidden + at * 3 * n;
    const T dn = dh * ((T)1 - z) * ((T)1 - m * m);
    dgates[2 * n + k] = dn;
    dhidden[2 * n + k] = dn * r;
    dhidden[k] = dgates[k] = dn * own * r * ((T)1 - r);
    dhidden[n + k] = dgates[n + k] = dh * (before - m) * z * ((T)1 - z);
    return dh * z;
  }
};

template <bool kTanh>
struct RnnCell {
  template <class T>
  PADDLE_DEVICE static T apply(const RecurrentArguments& g, int64_t b, int64_t k) {
    const int64_t n = g.hidden;
    const T value =
        ((const T*)g.share)[b * n + k] + ((const T*)g.gates)[(b * g.steps + g.step) * n + k];
    if constexpr (kTanh) return fn::tanh(value);
    return value > (T)0 ? value : (T)0;
  }
  template <class T>
  PADDLE_DEVICE static T gradient(const RecurrentArguments& g, int64_t b, int64_t k, T dh) {
    const int64_t at = (b * g.steps + g.step) * g.hidden + k;
    const T out = ((const T*)g.out)[at];
    const T slope = kTanh ? (T)1 - out * out : (T)(out > (T)0 ? 1 : 0);
    ((T*)g.dhidden)[at] = ((T*)g.dgates)[at] = dh * slope;
    return (T)0;
  }
};

template <class T, class Cell>
PADDLE_DEVICE void recurrent_step(const RecurrentArguments& g) {
  const int64_t size = g.batch * g.hidden, step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < size; i += step) {
    const int64_t b = i / g.hidden, k = i - b * g.hidden;
    const T value = Cell::template apply<T>(g, b, k);
    ((T*)g.out)[(b * g.steps + g.step) * g.hidden + k] = value;
    if (g.last) ((T*)g.last)[i] = value;
  }
}

template <class T, class Cell>
PADDLE_DEVICE void recurrent_grad_step(const RecurrentArguments& g) {
  const int64_t size = g.batch * g.hidden, step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < size; i += step) {
    const int64_t b = i / g.hidden, k = i - b * g.hidden;
    T dh = ((const T*)g.dh)[i];
    if (g.share) dh += ((const T*)g.share)[i];
    dh += ((const T*)g.grad_out)[(b * g.steps + g.step) * g.hidden + k];
    ((T*)g.dh)[i] = Cell::template gradient<T>(g, b, k, dh);
  }
}

/// What the first step leaves for the first state.
template <class T>
PADDLE_DEVICE void recurrent_grad_end(const RecurrentArguments& g) {
  const int64_t size = g.batch * g.hidden, step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < size; i += step)
    ((T*)g.dh)[i] += ((const T*)g.share)[i];
}
