// The rows of attention between its products (attention.cc): masks and weights.

constexpr int kMaskAxes = 4;

struct AttentionArguments {
  void *scores, *out;          ///< [heads, queries, keys] of some heads, in scratch
  const void *mask, *log_sum;  ///< null if absent
  void* new_log_sum;
  const void *grad, *result;  ///< [batch, queries, heads, width]
  int64_t first, count;       ///< the heads: batch * heads of them in all
  int64_t heads, queries, keys, causal;
  int64_t mask_strides[kMaskAxes];  ///< batch, head, query, key; of a bool mask
  int64_t mask_is_bool;
  int64_t sum_strides[3];                      ///< batch, head, query
  int64_t grad_strides[4], result_strides[4];  ///< batch, query, head, width
  int64_t width;
};

/// The score after masks.
template <class C, class Mask>
PADDLE_DEVICE C masked_score(const AttentionArguments& arguments, C score, int64_t batch,
                             int64_t head, int64_t query, int64_t key) {
  const C excluded = minus_infinity((C)0);
  if (arguments.causal && key > query) return excluded;
  if (!arguments.mask) return score;
  const Mask mask =
      ((const Mask*)
           arguments.mask)[batch * arguments.mask_strides[0] + head * arguments.mask_strides[1] +
                           query * arguments.mask_strides[2] + key * arguments.mask_strides[3]];
  if constexpr (IsSame<Mask, bool>::value) {
    return mask ? score : excluded;
  } else {
    return score + convert<C>(mask);
  }
}

/// Scores become weights, and their log sums are stored. Without visible keys weights are 0.
template <class C, class Mask>
PADDLE_DEVICE void attention_weights(const AttentionArguments& arguments) {
  const int64_t rows = arguments.count * arguments.queries;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t which = arguments.first + row / arguments.queries;
    const int64_t query = row % arguments.queries;
    const int64_t batch = which / arguments.heads, head = which % arguments.heads;
    C* const scores = (C*)arguments.scores + row * arguments.keys;
    C top = minus_infinity((C)0);
    for (int64_t i = threadIdx.x; i < arguments.keys; i += kBlockThreads) {
      const C score = masked_score<C, Mask>(arguments, scores[i], batch, head, query, i);
      scores[i] = score;
      top = FoldMax()(top, score);
    }
    top = fold_block(top, FoldMax());
    C sum = (C)0;
    for (int64_t i = threadIdx.x; i < arguments.keys; i += kBlockThreads) {
      // A key that causality excludes has weight 0 even where all others are excluded by a mask.
      const bool hidden = arguments.causal && i > query;
      const C weight = hidden ? (C)0 : fn::exp(scores[i] - top);
      scores[i] = weight;
      sum += weight;
    }
    sum = fold_block(sum, FoldSum());
    const C scale = arguments.keys == 0 ? (C)0 : (C)1 / sum;
    for (int64_t i = threadIdx.x; i < arguments.keys; i += kBlockThreads)
      scores[i] = scores[i] * scale;
    if (threadIdx.x == 0)
      ((C*)arguments.new_log_sum)[which * arguments.queries + query] = top + fn::log(sum);
  }
}

/// Scores become weights by their log sums.
template <class C, class Mask>
PADDLE_DEVICE void attention_weights_again(const AttentionArguments& arguments) {
  const int64_t rows = arguments.count * arguments.queries;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t which = arguments.first + row / arguments.queries;
    const int64_t query = row % arguments.queries;
    const int64_t batch = which / arguments.heads, head = which % arguments.heads;
    C* const scores = (C*)arguments.scores + row * arguments.keys;
    const C log_sum =
        ((const C*)
             arguments.log_sum)[batch * arguments.sum_strides[0] + head * arguments.sum_strides[1] +
                                query * arguments.sum_strides[2]];
    for (int64_t i = threadIdx.x; i < arguments.keys; i += kBlockThreads) {
      const bool hidden = arguments.causal && i > query;
      const C score = masked_score<C, Mask>(arguments, scores[i], batch, head, query, i);
      scores[i] = hidden ? (C)0 : fn::exp(score - log_sum);
    }
  }
}

/// The gradients of weights (in `out`) become those of scores: weight times (gradient - delta),
/// with delta the product of a query's gradient and result.
template <class C, class Grad, class Result>
PADDLE_DEVICE void attention_score_grads(const AttentionArguments& arguments) {
  const int64_t rows = arguments.count * arguments.queries;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t which = arguments.first + row / arguments.queries;
    const int64_t query = row % arguments.queries;
    const int64_t batch = which / arguments.heads, head = which % arguments.heads;
    const Grad* const grad = (const Grad*)arguments.grad + batch * arguments.grad_strides[0] +
                             query * arguments.grad_strides[1] + head * arguments.grad_strides[2];
    const Result* const result =
        (const Result*)arguments.result + batch * arguments.result_strides[0] +
        query * arguments.result_strides[1] + head * arguments.result_strides[2];
    C delta = (C)0;
    for (int64_t i = threadIdx.x; i < arguments.width; i += kBlockThreads)
      delta += convert<C>(grad[i * arguments.grad_strides[3]]) *
               convert<C>(result[i * arguments.result_strides[3]]);
    delta = fold_block(delta, FoldSum());
    const C* const weights = (const C*)arguments.scores + row * arguments.keys;
    C* const grads = (C*)arguments.out + row * arguments.keys;
    for (int64_t i = threadIdx.x; i < arguments.keys; i += kBlockThreads)
      grads[i] = (grads[i] - delta) * weights[i];
  }
}
