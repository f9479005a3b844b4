// Products of matrices of any strides, in batches, by tiles in shared memory:
//   out[b, i, j] = factor * sum over k of x[b, i, k] y[b, k, j], plus bias[j]
// The inner dimension can be split into chunks, whose sums the last block of a tile adds in order.

constexpr int kMatmulBatchAxes = 3;

struct MatmulArguments {
  const void *x, *y, *bias;
  void *out, *partial;
  uint32_t* counters;  ///< of split products, by tile
  int64_t m, n, k, chunk, chunks, batches;
  int64_t x_row, x_column, y_row, y_column, out_row, out_column;
  int64_t batch[kMatmulBatchAxes], x_batch[kMatmulBatchAxes], y_batch[kMatmulBatchAxes],
      out_batch[kMatmulBatchAxes];
  double factor;
};

constexpr int kTileRows = 64, kTileColumns = 64, kTileDepth = 16;

/// Brings rows [row, row + 64) and depth [k, k + 16) of a matrix into shared memory, as
/// tile[depth][row]; 0 outside of it. Neighboring threads read neighboring elements.
template <class C, class T>
PADDLE_DEVICE void load_tile(const T* from, int64_t row_stride, int64_t k_stride, int64_t row,
                             int64_t rows, int64_t k, int64_t k_end, C (*tile)[kTileRows + 4]) {
  const int thread = (int)threadIdx.x;
#pragma unroll
  for (int i = 0; i < kTileRows * kTileDepth / kBlockThreads; ++i) {
    const int at = thread + i * kBlockThreads;
    const int r = k_stride == 1 ? at / kTileDepth : at % kTileRows;
    const int d = k_stride == 1 ? at % kTileDepth : at / kTileRows;
    C value = (C)0;
    if (row + r < rows && k + d < k_end)
      value = convert<C>(from[(row + r) * row_stride + (k + d) * k_stride]);
    tile[d][r] = value;
  }
}

/// The 4 x 4 results of a thread: from this row and column on, of a batch that begins at `out`.
struct MatmulTile {
  int64_t row, column, batch, out;
};

/// The results of a thread, with factor and bias. False in all threads of a block whose sums
/// another block completes. T, Y and B: types of x, y and bias; C: of the sums.
template <class C, class T, class Y, class B>
PADDLE_DEVICE bool sum_tile(const MatmulArguments& arguments, MatmulTile& tile, C (&sums)[4][4]) {
  __shared__ C x_tile[kTileDepth][kTileRows + 4];
  __shared__ C y_tile[kTileDepth][kTileColumns + 4];
  const int64_t column_tiles = (arguments.n + kTileColumns - 1) / kTileColumns;
  const int64_t row0 = (int64_t)blockIdx.x / column_tiles * kTileRows;
  const int64_t column0 = (int64_t)blockIdx.x % column_tiles * kTileColumns;
  const int64_t part = (int64_t)blockIdx.y % arguments.chunks;
  const int64_t batch = (int64_t)blockIdx.y / arguments.chunks;
  int64_t rest = batch, x_at = 0, y_at = 0, out_at = 0;
#pragma unroll
  for (int axis = kMatmulBatchAxes - 1; axis >= 0; --axis) {
    const int64_t index = rest % arguments.batch[axis];
    rest /= arguments.batch[axis];
    x_at += index * arguments.x_batch[axis];
    y_at += index * arguments.y_batch[axis];
    out_at += index * arguments.out_batch[axis];
  }
  const T* const x = (const T*)arguments.x + x_at;
  const Y* const y = (const Y*)arguments.y + y_at;
  const int64_t k_begin = part * arguments.chunk;
  const int64_t k_limit = k_begin + arguments.chunk;
  const int64_t k_end = k_limit < arguments.k ? k_limit : arguments.k;
  const int thread_row = (int)threadIdx.x / 16 * 4, thread_column = (int)threadIdx.x % 16 * 4;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) sums[i][j] = (C)0;
  for (int64_t k = k_begin; k < k_end; k += kTileDepth) {
    load_tile<C>(x, arguments.x_row, arguments.x_column, row0, arguments.m, k, k_end, x_tile);
    load_tile<C>(y, arguments.y_column, arguments.y_row, column0, arguments.n, k, k_end, y_tile);
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kTileDepth; ++d) {
      C a[4], b[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        a[i] = x_tile[d][thread_row + i];
        b[i] = y_tile[d][thread_column + i];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] += a[i] * b[j];
    }
    __syncthreads();
  }
  tile.row = row0 + thread_row;
  tile.column = column0 + thread_column;
  tile.batch = batch;
  tile.out = out_at;
  const int64_t size = arguments.batches * arguments.m * arguments.n;
  C* const partial = (C*)arguments.partial + batch * arguments.m * arguments.n;
  if (arguments.chunks > 1) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int64_t row = tile.row + i, column = tile.column + j;
        if (row < arguments.m && column < arguments.n)
          partial[part * size + row * arguments.n + column] = sums[i][j];
      }
    uint32_t* const counter = arguments.counters + batch * gridDim.x + blockIdx.x;
    if (!is_last_block(counter, (uint32_t)arguments.chunks)) return false;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t row = tile.row + i, column = tile.column + j;
      if (row >= arguments.m || column >= arguments.n) continue;
      C value = sums[i][j];
      if (arguments.chunks > 1) {
        value = (C)0;
        for (int64_t other = 0; other < arguments.chunks; ++other)
          value += partial[other * size + row * arguments.n + column];
      }
      value = value * (C)arguments.factor;
      if (arguments.bias) value += convert<C>(((const B*)arguments.bias)[column]);
      sums[i][j] = value;
    }
  return true;
}

/// O: type of the result.
template <class C, class T, class Y, class B, class O>
PADDLE_DEVICE void matmul_tile(const MatmulArguments& arguments) {
  MatmulTile tile;
  C sums[4][4];
  if (!sum_tile<C, T, Y, B>(arguments, tile, sums)) return;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t row = tile.row + i, column = tile.column + j;
      if (row < arguments.m && column < arguments.n)
        ((O*)arguments.out)[tile.out + row * arguments.out_row + column * arguments.out_column] =
            convert<O>(sums[i][j]);
    }
}

// --- folds of columns, for product groups ---

/// Folds the rows of a tile, of which a thread has four neighboring columns. The thread gets the
/// column threadIdx.x % kTileColumns.
template <class T, class Fold>
PADDLE_DEVICE T fold_tile(T value0, T value1, T value2, T value3, Fold fold) {
  constexpr int kThreads = kTileColumns / 4, kRows = kBlockThreads / kThreads;
  __shared__ T values[kRows][kTileColumns];
  T* const own = &values[threadIdx.x / kThreads][threadIdx.x % kThreads * 4];
  own[0] = value0;
  own[1] = value1;
  own[2] = value2;
  own[3] = value3;
  __syncthreads();
  const int column = (int)threadIdx.x % kTileColumns;
  T out = values[0][column];
  for (int row = 1; row < kRows; ++row) out = fold(out, values[row][column]);
  __syncthreads();
  return out;
}

/// Folds the values of the threads that have the same column.
template <class T, class Fold>
PADDLE_DEVICE T fold_parts(T value, Fold fold) {
  __shared__ T values[kBlockThreads];
  values[threadIdx.x] = value;
  __syncthreads();
  const int column = (int)threadIdx.x % kTileColumns;
  T out = values[column];
  for (int i = column + kTileColumns; i < kBlockThreads; i += kTileColumns)
    out = fold(out, values[i]);
  __syncthreads();
  return out;
}
