// Sequences that are stored one after another, frames that overlap, and paths of beams.

struct SequenceArguments {
  const void *x, *parents;
  const int64_t *lengths, *starts;  ///< starts: null for the numbers of sequences
  void* out;
  int64_t* ends;
  int64_t count, total, most;
  int64_t steps, batch, beams;
  int64_t rows, size, length, number, hop;
  DataError* error;
  int64_t site;
};

/// Running sums of lengths, by one block. A length is an error if it is negative or if the sum
/// exceeds `most` with it.
PADDLE_DEVICE void sum_lengths(const SequenceArguments& g) {
  __shared__ int64_t values[kBlockThreads];
  const int thread = (int)threadIdx.x;
  int64_t total = 0;
  for (int64_t begin = 0; begin < g.count; begin += kBlockThreads) {
    const int64_t k = begin + thread;
    const int64_t given = k < g.count ? g.lengths[k] : 0;
    const int64_t length = given < 0 || given > g.most ? 0 : given;
    values[thread] = length;
    __syncthreads();
    for (int width = 1; width < kBlockThreads; width *= 2) {
      const int64_t before = thread >= width ? values[thread - width] : 0;
      __syncthreads();
      values[thread] += before;
      __syncthreads();
    }
    const int64_t end = total + values[thread];
    if (given != length || (end > g.most && end - length <= g.most))
      record_error(g.error, g.site, given);
    if (k < g.count) g.ends[k] = end;
    total += values[kBlockThreads - 1];
    __syncthreads();
  }
}
/// The sequence of each row, or its place from the sequence's start on.
PADDLE_DEVICE void number_rows(const SequenceArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < g.total; i += step) {
    int64_t low = 0, high = g.count - 1;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (g.ends[middle] > i)
        high = middle;
      else
        low = middle + 1;
    }
    ((int64_t*)g.out)[i] = g.starts ? g.starts[low] + i - (g.ends[low] - g.lengths[low]) : low;
  }
}

/// Sums of frames that begin `hop` elements after each other.
template <class C, class T>
PADDLE_DEVICE void overlap_frames(const SequenceArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads, elements = g.rows * g.size;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < elements; i += step) {
    const int64_t row = i / g.size, place = i - row * g.size;
    const T* const x = (const T*)g.x + row * g.number * g.length;
    C sum = (C)0;
    for (int64_t frame = place < g.length ? 0 : (place - g.length) / g.hop + 1;
         frame < g.number && frame * g.hop <= place; ++frame)
      sum += convert<C>(x[frame * g.length + place - frame * g.hop]);
    ((T*)g.out)[i] = convert<T>(sum);
  }
}

/// Beams from their last step to the first, by the parents of each; a thread follows one.
template <class T>
PADDLE_DEVICE void follow_beams(const SequenceArguments& g) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads, all = g.batch * g.beams;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < all; i += step) {
    const int64_t b = i / g.beams, k = i - b * g.beams;
    int64_t beam = k;
    for (int64_t t = g.steps; t-- > 0;) {
      const int64_t row = (t * g.batch + b) * g.beams;
      ((T*)g.out)[row + k] = ((const T*)g.x)[row + beam];
      beam = convert<int64_t>(((const T*)g.parents)[row + beam]);
      if (beam >= 0 && beam < g.beams) continue;
      if (t > 0) record_error(g.error, g.site, beam);
      beam = 0;
    }
  }
}
