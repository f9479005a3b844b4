// Losses of sequences over their alignments: CTC and RNN transducers. A block computes a sequence;
// its threads share the states of a step, or the places of an anti-diagonal of the lattice.

struct AlignmentArguments {
  const void *x, *labels;  ///< labels: int64 classes (CTC), or log-probabilities (transducers)
  const int64_t *input_lengths, *label_lengths;
  void *out, *label_out;
  void* scratch;
  int64_t batch, steps, classes, longest, blank;
  int64_t scratch_each;  ///< bytes for a sequence
  DataError* error;
  int64_t step_site, length_site, label_site;
};

/// A length, or the nearest one that is valid.
PADDLE_DEVICE int64_t checked_length(const AlignmentArguments& g, int64_t site, int64_t length,
                                     int64_t least, int64_t most) {
  if (length >= least && length <= most) return length;
  if (threadIdx.x == 0) record_error(g.error, site, length);
  return length < least ? least : most;
}

template <class C>
PADDLE_DEVICE C log_add(C a, C b) {
  const C high = a > b ? a : b, low = a > b ? b : a;
  if (high == minus_infinity(high)) return high;
  return high + fn::log1p(fn::exp(low - high));
}
template <class C>
PADDLE_DEVICE C log_add(C a, C b, C c) {
  const C two = a > b ? a : b, high = two > c ? two : c;
  if (high == minus_infinity(high)) return high;
  return high + fn::log(fn::exp(a - high) + fn::exp(b - high) + fn::exp(c - high));
}

/// One sequence of CTC. States are labels between blanks.
template <class C>
struct CtcSequence {
  const C* x;
  int64_t stride, steps, states, blank;
  const int64_t* classes;  ///< of each state

  PADDLE_DEVICE C emitted(int64_t t, int64_t s) const { return x[t * stride + classes[s]]; }
  PADDLE_DEVICE bool may_skip(int64_t s) const {
    return s >= 2 && classes[s] != blank && classes[s] != classes[s - 2];
  }
};

/// Scratch of a sequence: the classes of its states, for each state the next one of the same class
/// (-1: none; the first of a class has a mark), then forward variables, [steps, states], and three
/// rows of states.
template <class C, bool kOccupancy>
PADDLE_DEVICE void ctc_sequences(const AlignmentArguments& g) {
  const int64_t thread = threadIdx.x, most = 2 * g.longest + 1;
  const C none = minus_infinity((C)0);
  for (int64_t b = blockIdx.x; b < g.batch; b += gridDim.x) {
    const int64_t steps = checked_length(g, g.step_site, g.input_lengths[b], 0, g.steps);
    const int64_t count = checked_length(g, g.length_site, g.label_lengths[b], 0, g.longest);
    char* const scratch = (char*)g.scratch + b * g.scratch_each;
    int64_t* const classes = (int64_t*)scratch;
    int64_t *const next = classes + most, *const first = next + most;
    C *const alpha = (C*)(first + most), *const rows = alpha + g.steps * most;
    const CtcSequence<C> sequence = {
        (const C*)g.x + b * g.classes, g.batch * g.classes, steps, 2 * count + 1, g.blank, classes};
    const int64_t n = sequence.states;
    for (int64_t s = thread; s < n; s += kBlockThreads) {
      int64_t label = s % 2 == 0 ? g.blank : ((const int64_t*)g.labels)[b * g.longest + s / 2];
      if (label < 0 || label >= g.classes) {
        record_error(g.error, g.label_site, label);
        label = g.blank;
      }
      classes[s] = label;
    }
    __syncthreads();
    for (int64_t s = thread; s < n; s += kBlockThreads) {
      alpha[s] = s < 2 && steps > 0 ? sequence.emitted(0, s) : none;
      if constexpr (kOccupancy) {
        int64_t after = s + 1, before = 0;
        while (after < n && classes[after] != classes[s]) ++after;
        while (classes[before] != classes[s]) ++before;
        next[s] = after < n ? after : -1;
        first[s] = before == s;
      }
    }
    __syncthreads();
    for (int64_t t = 1; t < steps; ++t) {
      const C* const before = alpha + (t - 1) * n;
      for (int64_t s = thread; s < n; s += kBlockThreads)
        alpha[t * n + s] =
            sequence.emitted(t, s) + log_add(before[s], s > 0 ? before[s - 1] : none,
                                             sequence.may_skip(s) ? before[s - 2] : none);
      __syncthreads();
    }
    const C* const last = alpha + steps * n;
    const C total = steps > 0    ? log_add(last[-1], n > 1 ? last[-2] : none)
                    : count == 0 ? (C)0
                                 : none;
    if constexpr (!kOccupancy) {
      if (thread == 0) ((C*)g.out)[b] = -total;
    } else {
      C *beta = rows, *shifted = rows + most;
      C* const shares = rows + 2 * most;
      C* const out = (C*)g.out + b * g.classes;
      const bool lives = steps > 0 && total > none;
      for (int64_t t = g.steps; t-- > 0;) {
        for (int64_t i = thread; i < g.classes; i += kBlockThreads)
          out[t * sequence.stride + i] = (C)0;
        if (!lives || t >= steps) continue;
        for (int64_t s = thread; s < n; s += kBlockThreads)
          shifted[s] = t + 1 < steps ? beta[s] + sequence.emitted(t + 1, s) : (C)0;
        __syncthreads();
        for (int64_t s = thread; s < n; s += kBlockThreads) {
          beta[s] = t + 1 == steps
                        ? (s + 2 >= n ? (C)0 : none)
                        : log_add(shifted[s], s + 1 < n ? shifted[s + 1] : none,
                                  s + 2 < n && sequence.may_skip(s + 2) ? shifted[s + 2] : none);
          shares[s] = fn::exp(alpha[t * n + s] + beta[s] - total);
        }
        __syncthreads();
        // States of a class are added in their order.
        for (int64_t s = thread; s < n; s += kBlockThreads) {
          if (first[s] == 0) continue;
          C sum = shares[s];
          for (int64_t i = next[s]; i >= 0; i = next[i]) sum += shares[i];
          out[t * sequence.stride + classes[s]] = sum;
        }
      }
    }
    __syncthreads();
  }
}

/// Scratch of a sequence: forward variables, [steps, labels + 1], and two rows of them.
template <class C, bool kOccupancy>
PADDLE_DEVICE void transducer_sequences(const AlignmentArguments& g) {
  const int64_t thread = threadIdx.x, stride = g.longest + 1;
  const C none = minus_infinity((C)0);
  for (int64_t b = blockIdx.x; b < g.batch; b += gridDim.x) {
    const int64_t steps = checked_length(g, g.step_site, g.input_lengths[b], 1, g.steps);
    const int64_t count = checked_length(g, g.length_site, g.label_lengths[b], 0, g.longest);
    const C* const blank = (const C*)g.x + b * g.steps * stride;
    const C* const label = (const C*)g.labels + b * g.steps * g.longest;
    C* const alpha = (C*)((char*)g.scratch + b * g.scratch_each);
    const int64_t width = count + 1;
    for (int64_t d = 0; d < steps + count; ++d) {
      for (int64_t u = thread; u < width; u += kBlockThreads) {
        const int64_t t = d - u;
        if (t < 0 || t >= steps) continue;
        C* const now = alpha + t * width + u;
        if (d == 0) {
          *now = (C)0;
        } else {
          const C up = t > 0 ? now[-width] + blank[(t - 1) * stride + u] : none;
          const C left = u > 0 ? now[-1] + label[t * g.longest + u - 1] : none;
          *now = log_add(up, left);
        }
      }
      __syncthreads();
    }
    const C total = alpha[steps * width - 1] + blank[(steps - 1) * stride + count];
    if constexpr (!kOccupancy) {
      if (thread == 0) ((C*)g.out)[b] = -total;
    } else {
      C* const blanks = (C*)g.out + b * g.steps * stride;
      C* const labels = (C*)g.label_out + b * g.steps * g.longest;
      for (int64_t i = thread; i < g.steps * stride; i += kBlockThreads) blanks[i] = (C)0;
      for (int64_t i = thread; i < g.steps * g.longest; i += kBlockThreads) labels[i] = (C)0;
      __syncthreads();
      C* const rows = alpha + g.steps * stride;
      for (int64_t d = total > none ? steps + count : 0; d-- > 0;) {
        C* const beta = rows + (d % 2) * stride;
        const C* const after = rows + ((d + 1) % 2) * stride;
        for (int64_t u = thread; u < width; u += kBlockThreads) {
          const int64_t t = d - u;
          if (t < 0 || t >= steps) continue;
          const C here = alpha[t * width + u];
          const C follow = t + 1 < steps ? after[u] : u == count ? (C)0 : none;
          const C through = follow + blank[t * stride + u];
          blanks[t * stride + u] = fn::exp(here + through - total);
          C right = none;
          if (u < count) {
            right = after[u + 1] + label[t * g.longest + u];
            labels[t * g.longest + u] = fn::exp(here + right - total);
          }
          beta[u] = log_add(through, right);
        }
        __syncthreads();
      }
    }
    __syncthreads();
  }
}
