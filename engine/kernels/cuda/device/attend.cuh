// Attention and its gradient without scores in memory: a block has a tile of queries (or keys) of
// one head and goes over the tiles of the other side in order. Sums are of float.
//
//   forward           out = softmax(scale q k' + mask) v, and the log sums of the rows
//   gradient, first   dq, by tiles of queries, and delta, the products of grad and result by row
//   gradient, second  dk and dv, by tiles of keys
//
// kTile rows of at most kWidth elements are in shared memory at a time. A thread has the column
// threadIdx.x % kTile of kEach rows of a tile of scores, and kColumns elements of kEach rows of a
// result.

struct HeadMatrix {
  const void* at;
  int64_t batch, row, head, column;  ///< strides in elements
};
struct FusedAttentionArguments {
  HeadMatrix q, k, v, grad, result;
  HeadMatrix out, dq, dk, dv;
  float* log_sum;     ///< contiguous [batch, head, query]: a result
  const float* sums;  ///< the same as an operand, with strides
  float* delta;
  const void* mask;  ///< null if absent
  int64_t heads, queries, keys, width, value_width, causal;
  int64_t mask_strides[4];  ///< batch, head, query, key
  int64_t sum_strides[3];   ///< batch, head, query
  float scale;
};

template <int kTile, int kWidth>
struct AttentionTile {
  static constexpr int kGroups = kBlockThreads / kTile, kEach = kTile / kGroups,
                       kColumns = kWidth / kTile;
  typedef float Rows[kTile][kWidth + 1];
  typedef float Scores[kTile][kTile + 1];
};

/// Brings rows [first, first + kTile) of a head into shared memory; 0 outside.
template <class T, int kTile, int kWidth>
PADDLE_DEVICE void load_rows(const HeadMatrix& matrix, int64_t batch, int64_t head, int64_t first,
                             int64_t rows, int64_t width, float (*tile)[kWidth + 1]) {
  const T* const from = (const T*)matrix.at + batch * matrix.batch + head * matrix.head;
  for (int i = (int)threadIdx.x; i < kTile * kWidth; i += kBlockThreads) {
    const int r = i / kWidth, c = i % kWidth;
    float value = 0;
    if (first + r < rows && c < width)
      value = convert<float>(from[(first + r) * matrix.row + c * matrix.column]);
    tile[r][c] = value;
  }
}

/// The products of this thread's rows of a with row `lane` of b.
template <int kTile, int kWidth>
PADDLE_DEVICE void multiply_rows(const float (*a)[kWidth + 1], const float (*b)[kWidth + 1],
                                 int row, int lane, int64_t width,
                                 float (&out)[AttentionTile<kTile, kWidth>::kEach]) {
  typedef AttentionTile<kTile, kWidth> Tile;
#pragma unroll
  for (int i = 0; i < Tile::kEach; ++i) out[i] = 0;
#pragma unroll 8
  for (int c = 0; c < (int)width; ++c) {
    const float other = b[lane][c];
#pragma unroll
    for (int i = 0; i < Tile::kEach; ++i) out[i] += a[row + i][c] * other;
  }
}

/// Whether a key has no part in a query's sum at all.
PADDLE_DEVICE bool is_hidden(const FusedAttentionArguments& g, int64_t query, int64_t key) {
  return query >= g.queries || key >= g.keys || (g.causal && key > query);
}
/// A product as a score.
template <class Mask>
PADDLE_DEVICE float score_of(const FusedAttentionArguments& g, float product, int64_t batch,
                             int64_t head, int64_t query, int64_t key) {
  const float score = product * g.scale;
  if (is_hidden(g, query, key)) return minus_infinity(0.0f);
  if (!g.mask) return score;
  const Mask mask = ((const Mask*)g.mask)[batch * g.mask_strides[0] + head * g.mask_strides[1] +
                                          query * g.mask_strides[2] + key * g.mask_strides[3]];
  if constexpr (IsSame<Mask, bool>::value) {
    return mask ? score : minus_infinity(0.0f);
  } else {
    return score + convert<float>(mask);
  }
}

/// out += weights rows, for this thread's rows and columns; of a transposed tile of weights if
/// kTransposed.
template <int kTile, int kWidth, bool kTransposed>
PADDLE_DEVICE void add_products(
    const float (*weights)[kTile + 1], const float (*rows)[kWidth + 1], int row, int lane,
    float (&out)[AttentionTile<kTile, kWidth>::kEach][AttentionTile<kTile, kWidth>::kColumns]) {
  typedef AttentionTile<kTile, kWidth> Tile;
#pragma unroll 4
  for (int k = 0; k < kTile; ++k) {
    float values[Tile::kColumns];
#pragma unroll
    for (int j = 0; j < Tile::kColumns; ++j) values[j] = rows[k][lane + j * kTile];
#pragma unroll
    for (int i = 0; i < Tile::kEach; ++i) {
      const float weight = kTransposed ? weights[k][row + i] : weights[row + i][k];
#pragma unroll
      for (int j = 0; j < Tile::kColumns; ++j) out[i][j] += weight * values[j];
    }
  }
}

template <class T, int kTile, int kWidth>
PADDLE_DEVICE void store_rows(const HeadMatrix& matrix, int64_t batch, int64_t head, int64_t first,
                              int64_t rows, int64_t width, int row, int lane, float scale,
                              const float (&values)[AttentionTile<kTile, kWidth>::kEach]
                                                   [AttentionTile<kTile, kWidth>::kColumns]) {
  typedef AttentionTile<kTile, kWidth> Tile;
  T* const to = (T*)matrix.at + batch * matrix.batch + head * matrix.head;
#pragma unroll
  for (int i = 0; i < Tile::kEach; ++i)
#pragma unroll
    for (int j = 0; j < Tile::kColumns; ++j) {
      const int64_t r = first + row + i, c = lane + j * kTile;
      if (r < rows && c < width)
        to[r * matrix.row + c * matrix.column] = convert<T>(values[i][j] * scale);
    }
}

/// Folds the values of the threads of a row; each of them gets the result.
template <int kTile, int kWidth, class Fold>
PADDLE_DEVICE void fold_lanes(float (*all)[kTile + 1], int row, int lane, Fold fold,
                              float (&values)[AttentionTile<kTile, kWidth>::kEach]) {
  typedef AttentionTile<kTile, kWidth> Tile;
#pragma unroll
  for (int i = 0; i < Tile::kEach; ++i) all[row + i][lane] = values[i];
  for (int width = kTile / 2; width > 0; width /= 2) {
    __syncthreads();
    if (lane < width)
#pragma unroll
      for (int i = 0; i < Tile::kEach; ++i)
        all[row + i][lane] = fold(all[row + i][lane], all[row + i][lane + width]);
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < Tile::kEach; ++i) values[i] = all[row + i][0];
  __syncthreads();
}

/// T: type of q, k and v; O: of the result. Weights are relative to the largest score so far.
template <class T, class O, class Mask, int kTile, int kWidth>
PADDLE_DEVICE void attend(const FusedAttentionArguments& g) {
  typedef AttentionTile<kTile, kWidth> Tile;
  __shared__ typename Tile::Rows q, kv;
  __shared__ typename Tile::Scores scores;
  const int lane = (int)threadIdx.x % kTile, row = (int)threadIdx.x / kTile * Tile::kEach;
  const int64_t batch = (int64_t)blockIdx.y / g.heads, head = (int64_t)blockIdx.y % g.heads;
  const int64_t first = (int64_t)blockIdx.x * kTile;
  load_rows<T, kTile, kWidth>(g.q, batch, head, first, g.queries, g.width, q);
  float top[Tile::kEach], sum[Tile::kEach], out[Tile::kEach][Tile::kColumns];
#pragma unroll
  for (int i = 0; i < Tile::kEach; ++i) {
    top[i] = minus_infinity(0.0f);
    sum[i] = 0;
#pragma unroll
    for (int j = 0; j < Tile::kColumns; ++j) out[i][j] = 0;
  }
  const int64_t end = g.causal && first + kTile < g.keys ? first + kTile : g.keys;
  for (int64_t begin = 0; begin < end; begin += kTile) {
    load_rows<T, kTile, kWidth>(g.k, batch, head, begin, g.keys, g.width, kv);
    __syncthreads();
    float weights[Tile::kEach], largest[Tile::kEach];
    multiply_rows<kTile, kWidth>(q, kv, row, lane, g.width, weights);
#pragma unroll
    for (int i = 0; i < Tile::kEach; ++i) {
      weights[i] = score_of<Mask>(g, weights[i], batch, head, first + row + i, begin + lane);
      largest[i] = weights[i];
    }
    fold_lanes<kTile, kWidth>(scores, row, lane, FoldMax(), largest);
#pragma unroll
    for (int i = 0; i < Tile::kEach; ++i) {
      const float next = FoldMax()(top[i], largest[i]);
      const float base = next == minus_infinity(0.0f) ? 0.0f : next;
      const float fade = fn::exp(top[i] - base);
      const float weight =
          is_hidden(g, first + row + i, begin + lane) ? 0.0f : fn::exp(weights[i] - base);
      top[i] = next;
      sum[i] = sum[i] * fade + weight;
#pragma unroll
      for (int j = 0; j < Tile::kColumns; ++j) out[i][j] *= fade;
      scores[row + i][lane] = weight;
    }
    load_rows<T, kTile, kWidth>(g.v, batch, head, begin, g.keys, g.value_width, kv);
    __syncthreads();
    add_products<kTile, kWidth, false>(scores, kv, row, lane, out);
    __syncthreads();
  }
  fold_lanes<kTile, kWidth>(scores, row, lane, FoldSum(), sum);
#pragma unroll
  for (int i = 0; i < Tile::kEach; ++i) {
    const float factor = 1.0f / sum[i];
#pragma unroll
    for (int j = 0; j < Tile::kColumns; ++j) out[i][j] *= factor;
    const int64_t query = first + row + i;
    if (lane == 0 && query < g.queries)
      g.log_sum[((int64_t)blockIdx.y) * g.queries + query] = top[i] + fn::log(sum[i]);
  }
  store_rows<O, kTile, kWidth>(g.out, batch, head, first, g.queries, g.value_width, row, lane, 1.0f,
                               out);
}

/// The weights of a tile again, and the gradients of its scores: weight times (gradient of the
/// weight - delta). Tiles of q, k, grad and v are in shared memory.
template <class Mask, int kTile, int kWidth>
PADDLE_DEVICE void score_grads(const FusedAttentionArguments& g, const float (*q)[kWidth + 1],
                               const float (*k)[kWidth + 1], const float (*grad)[kWidth + 1],
                               const float (*v)[kWidth + 1], int64_t batch, int64_t head,
                               int64_t query, int64_t key,
                               const float (&log_sum)[AttentionTile<kTile, kWidth>::kEach],
                               const float (&delta)[AttentionTile<kTile, kWidth>::kEach],
                               float (&weights)[AttentionTile<kTile, kWidth>::kEach],
                               float (&grads)[AttentionTile<kTile, kWidth>::kEach]) {
  typedef AttentionTile<kTile, kWidth> Tile;
  const int lane = (int)threadIdx.x % kTile, row = (int)threadIdx.x / kTile * Tile::kEach;
  multiply_rows<kTile, kWidth>(q, k, row, lane, g.width, weights);
  multiply_rows<kTile, kWidth>(grad, v, row, lane, g.value_width, grads);
#pragma unroll
  for (int i = 0; i < Tile::kEach; ++i) {
    const int64_t at = query + row + i, other = key + lane;
    const float score = score_of<Mask>(g, weights[i], batch, head, at, other);
    weights[i] = is_hidden(g, at, other) ? 0.0f : fn::exp(score - log_sum[i]);
    grads[i] = (grads[i] - delta[i]) * weights[i];
  }
}

PADDLE_DEVICE float log_sum_of(const FusedAttentionArguments& g, int64_t batch, int64_t head,
                               int64_t query) {
  if (query >= g.queries) return 0.0f;
  return g.sums[batch * g.sum_strides[0] + head * g.sum_strides[1] + query * g.sum_strides[2]];
}

/// G, O: types of grad and result.
template <class T, class G, class O, class Mask, int kTile, int kWidth>
PADDLE_DEVICE void attend_query_grads(const FusedAttentionArguments& g) {
  typedef AttentionTile<kTile, kWidth> Tile;
  __shared__ typename Tile::Rows q, grad, k, v;
  __shared__ typename Tile::Scores scores;
  const int lane = (int)threadIdx.x % kTile, row = (int)threadIdx.x / kTile * Tile::kEach;
  const int64_t batch = (int64_t)blockIdx.y / g.heads, head = (int64_t)blockIdx.y % g.heads;
  const int64_t first = (int64_t)blockIdx.x * kTile;
  load_rows<T, kTile, kWidth>(g.q, batch, head, first, g.queries, g.width, q);
  load_rows<G, kTile, kWidth>(g.grad, batch, head, first, g.queries, g.value_width, grad);
  load_rows<O, kTile, kWidth>(g.result, batch, head, first, g.queries, g.value_width, v);
  __syncthreads();
  float log_sum[Tile::kEach], delta[Tile::kEach], out[Tile::kEach][Tile::kColumns];
#pragma unroll
  for (int i = 0; i < Tile::kEach; ++i) {
    log_sum[i] = log_sum_of(g, batch, head, first + row + i);
    delta[i] = 0;
#pragma unroll
    for (int j = 0; j < Tile::kColumns; ++j) {
      delta[i] += grad[row + i][lane + j * kTile] * v[row + i][lane + j * kTile];
      out[i][j] = 0;
    }
  }
  fold_lanes<kTile, kWidth>(scores, row, lane, FoldSum(), delta);
#pragma unroll
  for (int i = 0; i < Tile::kEach; ++i)
    if (lane == 0 && first + row + i < g.queries)
      g.delta[(int64_t)blockIdx.y * g.queries + first + row + i] = delta[i];
  const int64_t end = g.causal && first + kTile < g.keys ? first + kTile : g.keys;
  for (int64_t begin = 0; begin < end; begin += kTile) {
    load_rows<T, kTile, kWidth>(g.k, batch, head, begin, g.keys, g.width, k);
    load_rows<T, kTile, kWidth>(g.v, batch, head, begin, g.keys, g.value_width, v);
    __syncthreads();
    float weights[Tile::kEach], grads[Tile::kEach];
    score_grads<Mask, kTile, kWidth>(g, q, k, grad, v, batch, head, first, begin, log_sum, delta,
                                     weights, grads);
#pragma unroll
    for (int i = 0; i < Tile::kEach; ++i) scores[row + i][lane] = grads[i];
    __syncthreads();
    add_products<kTile, kWidth, false>(scores, k, row, lane, out);
    __syncthreads();
  }
  store_rows<T, kTile, kWidth>(g.dq, batch, head, first, g.queries, g.width, row, lane, g.scale,
                               out);
}

template <class T, class G, class Mask, int kTile, int kWidth>
PADDLE_DEVICE void attend_key_grads(const FusedAttentionArguments& g) {
  typedef AttentionTile<kTile, kWidth> Tile;
  __shared__ typename Tile::Rows q, grad, k, v;
  __shared__ typename Tile::Scores weight_tile, grad_tile;
  const int lane = (int)threadIdx.x % kTile, row = (int)threadIdx.x / kTile * Tile::kEach;
  const int64_t batch = (int64_t)blockIdx.y / g.heads, head = (int64_t)blockIdx.y % g.heads;
  const int64_t first = (int64_t)blockIdx.x * kTile;
  load_rows<T, kTile, kWidth>(g.k, batch, head, first, g.keys, g.width, k);
  load_rows<T, kTile, kWidth>(g.v, batch, head, first, g.keys, g.value_width, v);
  float dk[Tile::kEach][Tile::kColumns], dv[Tile::kEach][Tile::kColumns];
#pragma unroll
  for (int i = 0; i < Tile::kEach; ++i)
#pragma unroll
    for (int j = 0; j < Tile::kColumns; ++j) dk[i][j] = dv[i][j] = 0;
  for (int64_t begin = g.causal ? first : 0; begin < g.queries; begin += kTile) {
    load_rows<T, kTile, kWidth>(g.q, batch, head, begin, g.queries, g.width, q);
    load_rows<G, kTile, kWidth>(g.grad, batch, head, begin, g.queries, g.value_width, grad);
    __syncthreads();
    float log_sum[Tile::kEach], delta[Tile::kEach], weights[Tile::kEach], grads[Tile::kEach];
#pragma unroll
    for (int i = 0; i < Tile::kEach; ++i) {
      const int64_t query = begin + row + i;
      log_sum[i] = log_sum_of(g, batch, head, query);
      delta[i] = query < g.queries ? g.delta[(int64_t)blockIdx.y * g.queries + query] : 0.0f;
    }
    score_grads<Mask, kTile, kWidth>(g, q, k, grad, v, batch, head, begin, first, log_sum, delta,
                                     weights, grads);
#pragma unroll
    for (int i = 0; i < Tile::kEach; ++i) {
      weight_tile[row + i][lane] = weights[i];
      grad_tile[row + i][lane] = grads[i];
    }
    __syncthreads();
    add_products<kTile, kWidth, true>(weight_tile, grad, row, lane, dv);
    add_products<kTile, kWidth, true>(grad_tile, q, row, lane, dk);
    __syncthreads();
  }
  store_rows<T, kTile, kWidth>(g.dk, batch, head, first, g.keys, g.width, row, lane, g.scale, dk);
  store_rows<T, kTile, kWidth>(g.dv, batch, head, first, g.keys, g.value_width, row, lane, 1.0f,
                               dv);
}
