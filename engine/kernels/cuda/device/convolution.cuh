// Convolutions of one to three axes, any layout and groups, and their gradients. Each is a product
// of matrices whose elements are looked up by position, in tiles in shared memory, or one thread or
// block per result where there are few columns. Sums have a fixed order.
//
//   forward          out[position, channel]   = sum over (channel, tap) of x weight
//   input gradient   out[pixel, channel]      = sum over (out channel, tap) of grad weight
//   weight gradient  out[channel, (in, tap)]  = sum over (sample, position) of grad x

/// Axes are planes, rows and columns; strides count elements.
struct ConvArguments {
  const void *a, *b, *bias;
  void *out, *partial;
  uint32_t* counters;             ///< of divided sums, by tile
  int64_t rows, columns, depth;   ///< of the product of a group
  int64_t groups, chunk, chunks;  ///< the depth is summed in `chunks` of `chunk`
  int64_t group_in, group_out;    ///< channels of a group
  int64_t x_batch, x_channel, x_axis[3];
  int64_t y_batch, y_channel, y_axis[3];
  int64_t taps;
  Divider x_size[3], y_size[3], kernel[3], stride[3], tap_count;
  int size[3], out_size[3], step[3], dilation[3], padding[3];
};

/// A place: the offset of its sample or channel, and coordinates.
struct ConvPlace {
  int64_t offset;
  int at[3];
};

/// n as a sample and coordinates in axes of these sizes, the last axis fastest.
PADDLE_DEVICE uint32_t split_place(uint32_t n, const Divider* sizes, int* at) {
#pragma unroll
  for (int axis = 2; axis >= 0; --axis) {
    const uint32_t rest = divide(n, sizes[axis]);
    at[axis] = (int)(n - rest * sizes[axis].divisor);
    n = rest;
  }
  return n;
}

/// The first input of a window, of the output position n (a sample, then axes).
PADDLE_DEVICE ConvPlace window_place(const ConvArguments& g, uint32_t n) {
  ConvPlace out;
  out.offset = (int64_t)split_place(n, g.y_size, out.at) * g.x_batch;
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) out.at[axis] = out.at[axis] * g.step[axis] - g.padding[axis];
  return out;
}
/// The distance from there, of the place n in a window (a channel of the input, then axes).
PADDLE_DEVICE ConvPlace tap_place(const ConvArguments& g, uint32_t n, int64_t channel_stride) {
  ConvPlace out;
  out.offset = (int64_t)split_place(n, g.kernel, out.at) * channel_stride;
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) out.at[axis] *= g.dilation[axis];
  return out;
}

template <class C, class T>
PADDLE_DEVICE C input_at(const ConvArguments& g, const T* x, const ConvPlace& window,
                         const ConvPlace& tap) {
  int64_t at = window.offset + tap.offset;
  bool inside = true;
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    const int place = window.at[axis] + tap.at[axis];
    inside = inside && (unsigned)place < (unsigned)g.size[axis];
    at += place * g.x_axis[axis];
  }
  return inside ? convert<C>(x[at]) : (C)0;
}

/// Each operand has the places of its index in a result (Fixed) and in the sum (Moving), and the
/// value at both.
template <class C, class T>
struct ForwardInput {
  static constexpr bool kDepthFirst = false;
  const T* x;
  PADDLE_DEVICE ForwardInput(const ConvArguments& g, int64_t group)
      : x((const T*)g.a + group * g.group_in * g.x_channel) {}
  typedef ConvPlace Fixed;
  typedef ConvPlace Moving;
  PADDLE_DEVICE Fixed fixed(const ConvArguments& g, int64_t row) const {
    return window_place(g, (uint32_t)row);
  }
  PADDLE_DEVICE Moving moving(const ConvArguments& g, int64_t k) const {
    return tap_place(g, (uint32_t)k, g.x_channel);
  }
  PADDLE_DEVICE C value(const ConvArguments& g, const Fixed& row, const Moving& k) const {
    return input_at<C>(g, x, row, k);
  }
};

/// The weights of the forward product: one row of memory per output channel.
template <class C, class W>
struct ForwardWeight {
  static constexpr bool kDepthFirst = true;
  const W* weight;
  PADDLE_DEVICE ForwardWeight(const ConvArguments& g, int64_t group)
      : weight((const W*)g.b + group * g.group_out * g.depth) {}
  typedef int64_t Fixed;
  typedef int64_t Moving;
  PADDLE_DEVICE Fixed fixed(const ConvArguments& g, int64_t column) const {
    return column * g.depth;
  }
  PADDLE_DEVICE Moving moving(const ConvArguments&, int64_t k) const { return k; }
  PADDLE_DEVICE C value(const ConvArguments&, Fixed column, Moving k) const {
    return convert<C>(weight[column + k]);
  }
};

/// The gradients that an input pixel takes from: those of windows that contain it.
template <class C, class T>
struct WindowGrad {
  static constexpr bool kDepthFirst = false;
  const T* grad;
  PADDLE_DEVICE WindowGrad(const ConvArguments& g, int64_t group)
      : grad((const T*)g.a + group * g.group_out * g.y_channel) {}
  typedef ConvPlace Fixed;
  typedef ConvPlace Moving;
  PADDLE_DEVICE Fixed fixed(const ConvArguments& g, int64_t row) const {
    ConvPlace out;
    out.offset = (int64_t)split_place((uint32_t)row, g.x_size, out.at) * g.y_batch;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) out.at[axis] += g.padding[axis];
    return out;
  }
  PADDLE_DEVICE Moving moving(const ConvArguments& g, int64_t k) const {
    return tap_place(g, (uint32_t)k, g.y_channel);
  }
  PADDLE_DEVICE C value(const ConvArguments& g, const Fixed& pixel, const Moving& tap) const {
    int64_t at = pixel.offset + tap.offset;
    bool inside = true;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      const int from = pixel.at[axis] - tap.at[axis];
      const int place = from < 0 ? 0 : (int)divide((uint32_t)from, g.stride[axis]);
      inside = inside && from >= 0 && place * g.step[axis] == from && place < g.out_size[axis];
      at += place * g.y_axis[axis];
    }
    return inside ? convert<C>(grad[at]) : (C)0;
  }
};

/// The weights of the input's gradient: columns are input channels, the depth is (output channel,
/// tap).
template <class C, class W>
struct GradWeight {
  static constexpr bool kDepthFirst = true;
  const W* weight;
  PADDLE_DEVICE GradWeight(const ConvArguments& g, int64_t group)
      : weight((const W*)g.b + group * g.depth * g.group_in) {}
  typedef int64_t Fixed;
  typedef int64_t Moving;
  PADDLE_DEVICE Fixed fixed(const ConvArguments& g, int64_t column) const {
    return column * g.taps;
  }
  PADDLE_DEVICE Moving moving(const ConvArguments& g, int64_t k) const {
    const int64_t channel = divide((uint32_t)k, g.tap_count);
    return channel * g.group_in * g.taps + (k - channel * g.taps);
  }
  PADDLE_DEVICE C value(const ConvArguments&, Fixed column, Moving k) const {
    return convert<C>(weight[column + k]);
  }
};

/// The gradient as an operand of the weights' gradient: rows are output channels, the depth is
/// (sample, position).
template <class C, class T>
struct PositionGrad {
  static constexpr bool kDepthFirst = true;
  const T* grad;
  PADDLE_DEVICE PositionGrad(const ConvArguments& g, int64_t group)
      : grad((const T*)g.b + group * g.group_out * g.y_channel) {}
  typedef int64_t Fixed;
  typedef int64_t Moving;
  PADDLE_DEVICE Fixed fixed(const ConvArguments& g, int64_t row) const { return row * g.y_channel; }
  PADDLE_DEVICE Moving moving(const ConvArguments& g, int64_t k) const {
    int at[3];
    int64_t out = (int64_t)split_place((uint32_t)k, g.y_size, at) * g.y_batch;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) out += at[axis] * g.y_axis[axis];
    return out;
  }
  PADDLE_DEVICE C value(const ConvArguments&, Fixed row, Moving k) const {
    return convert<C>(grad[row + k]);
  }
};

/// The input as an operand of the weights' gradient: columns are (channel, tap).
template <class C, class T>
struct PositionInput {
  static constexpr bool kDepthFirst = true;
  const T* x;
  PADDLE_DEVICE PositionInput(const ConvArguments& g, int64_t group)
      : x((const T*)g.a + group * g.group_in * g.x_channel) {}
  typedef ConvPlace Fixed;
  typedef ConvPlace Moving;
  PADDLE_DEVICE Fixed fixed(const ConvArguments& g, int64_t column) const {
    return tap_place(g, (uint32_t)column, g.x_channel);
  }
  PADDLE_DEVICE Moving moving(const ConvArguments& g, int64_t k) const {
    return window_place(g, (uint32_t)k);
  }
  PADDLE_DEVICE C value(const ConvArguments& g, const Fixed& column, const Moving& k) const {
    return input_at<C>(g, x, k, column);
  }
};

/// Where results go.
struct ForwardOutput {
  static constexpr bool kRowsAreContiguous = true;
  PADDLE_DEVICE static int64_t place(const ConvArguments& g, int64_t group, int64_t row,
                                     int64_t column) {
    int at[3];
    int64_t out = (int64_t)split_place((uint32_t)row, g.y_size, at) * g.y_batch +
                  (group * g.group_out + column) * g.y_channel;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) out += at[axis] * g.y_axis[axis];
    return out;
  }
};
struct InputGradOutput {
  static constexpr bool kRowsAreContiguous = true;
  PADDLE_DEVICE static int64_t place(const ConvArguments& g, int64_t group, int64_t row,
                                     int64_t column) {
    int at[3];
    int64_t out = (int64_t)split_place((uint32_t)row, g.x_size, at) * g.x_batch +
                  (group * g.group_in + column) * g.x_channel;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) out += at[axis] * g.x_axis[axis];
    return out;
  }
};
struct WeightGradOutput {
  static constexpr bool kRowsAreContiguous = false;
  PADDLE_DEVICE static int64_t place(const ConvArguments& g, int64_t group, int64_t row,
                                     int64_t column) {
    return (group * g.group_out + row) * g.columns + column;
  }
};

constexpr int kConvTile = 64, kConvDepth = 16;

/// Brings 64 rows (or columns) and 16 places of the depth into shared memory, as tile[depth][row];
/// 0 outside. What belongs to a thread's rows is looked up once.
template <class C, class Operand>
struct ConvLoader {
  static constexpr int kEach = kConvTile * kConvDepth / kBlockThreads;
  static constexpr int kRows = Operand::kDepthFirst ? kEach : 1;
  typename Operand::Fixed rows[kRows];
  bool inside[kRows];

  PADDLE_DEVICE static int row_of(int i) {
    const int at = (int)threadIdx.x + i * kBlockThreads;
    return Operand::kDepthFirst ? at / kConvDepth : at % kConvTile;
  }
  PADDLE_DEVICE static int depth_of(int i) {
    const int at = (int)threadIdx.x + i * kBlockThreads;
    return Operand::kDepthFirst ? at % kConvDepth : at / kConvTile;
  }
  PADDLE_DEVICE ConvLoader(const ConvArguments& g, const Operand& operand, int64_t first,
                           int64_t count) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int64_t row = first + row_of(i);
      inside[i] = row < count;
      rows[i] = operand.fixed(g, inside[i] ? row : 0);
    }
  }
  PADDLE_DEVICE void load(const ConvArguments& g, const Operand& operand, int64_t k, int64_t k_end,
                          C (*tile)[kConvTile + 4]) const {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int which = Operand::kDepthFirst ? i : 0;
      const int64_t at = k + depth_of(i);
      C value = (C)0;
      if (inside[which] && at < k_end) value = operand.value(g, rows[which], operand.moving(g, at));
      tile[depth_of(i)][row_of(i)] = value;
    }
  }
};

/// C: type of the sums; Rows, Columns: the operands; Output: where results go; O, B: types of the
/// result and the bias.
template <class C, class Rows, class Columns, class Output, class O, class B>
PADDLE_DEVICE void conv_tile(const ConvArguments& g) {
  __shared__ C row_tile[kConvDepth][kConvTile + 4];
  __shared__ C column_tile[kConvDepth][kConvTile + 4];
  const int64_t column_tiles = (g.columns + kConvTile - 1) / kConvTile;
  const int64_t row0 = (int64_t)blockIdx.x / column_tiles * kConvTile;
  const int64_t column0 = (int64_t)blockIdx.x % column_tiles * kConvTile;
  const int64_t chunk = (int64_t)blockIdx.y % g.chunks, group = (int64_t)blockIdx.y / g.chunks;
  const int64_t k_begin = chunk * g.chunk, k_limit = k_begin + g.chunk;
  const int64_t k_end = k_limit < g.depth ? k_limit : g.depth;
  const Rows rows(g, group);
  const Columns columns(g, group);
  const ConvLoader<C, Rows> row_loader(g, rows, row0, g.rows);
  const ConvLoader<C, Columns> column_loader(g, columns, column0, g.columns);
  const int low = (int)threadIdx.x % 16 * 4, high = (int)threadIdx.x / 16 * 4;
  const int thread_row = Output::kRowsAreContiguous ? low : high;
  const int thread_column = Output::kRowsAreContiguous ? high : low;
  C sums[4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) sums[i][j] = (C)0;
  for (int64_t k = k_begin; k < k_end; k += kConvDepth) {
    row_loader.load(g, rows, k, k_end, row_tile);
    column_loader.load(g, columns, k, k_end, column_tile);
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kConvDepth; ++d) {
      C a[4], b[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        a[i] = row_tile[d][thread_row + i];
        b[i] = column_tile[d][thread_column + i];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] += a[i] * b[j];
    }
    __syncthreads();
  }
  const int64_t size = g.groups * g.rows * g.columns;
  C* const partial = (C*)g.partial + group * g.rows * g.columns;
  if (g.chunks > 1) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int64_t row = row0 + thread_row + i, column = column0 + thread_column + j;
        if (row < g.rows && column < g.columns)
          partial[chunk * size + row * g.columns + column] = sums[i][j];
      }
    uint32_t* const counter = g.counters + group * gridDim.x + blockIdx.x;
    if (!is_last_block(counter, (uint32_t)g.chunks)) return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t row = row0 + thread_row + i, column = column0 + thread_column + j;
      if (row >= g.rows || column >= g.columns) continue;
      C value = sums[i][j];
      if (g.chunks > 1) {
        value = (C)0;
        for (int64_t other = 0; other < g.chunks; ++other)
          value += partial[other * size + row * g.columns + column];
      }
      if (g.bias) value += convert<C>(((const B*)g.bias)[group * g.columns + column]);
      ((O*)g.out)[Output::place(g, group, row, column)] = convert<O>(value);
    }
}

/// One thread per result, for groups of few channels. Neighboring threads have neighboring rows.
template <class C, class Rows, class Columns, class Output, class O, class B>
PADDLE_DEVICE void conv_direct(const ConvArguments& g) {
  const int64_t group = (int64_t)blockIdx.y / g.columns, column = (int64_t)blockIdx.y % g.columns;
  const Rows rows(g, group);
  const Columns columns(g, group);
  const typename Columns::Fixed weight = columns.fixed(g, column);
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t row = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; row < g.rows; row += step) {
    const typename Rows::Fixed place = rows.fixed(g, row);
    C sum = (C)0;
    for (int64_t k = 0; k < g.depth; ++k)
      sum +=
          rows.value(g, place, rows.moving(g, k)) * columns.value(g, weight, columns.moving(g, k));
    if (g.bias) sum += convert<C>(((const B*)g.bias)[group * g.columns + column]);
    ((O*)g.out)[Output::place(g, group, row, column)] = convert<O>(sum);
  }
}

/// One block per weight, for groups of few channels.
template <class C, class Rows, class Columns, class O>
PADDLE_DEVICE void conv_weight(const ConvArguments& g) {
  const int64_t size = g.groups * g.rows * g.columns;
  for (int64_t i = blockIdx.x; i < size; i += gridDim.x) {
    const int64_t channel = i / g.columns, column = i - channel * g.columns;
    const int64_t group = channel / g.rows;
    const Rows rows(g, group);
    const Columns columns(g, group);
    const typename Rows::Fixed row = rows.fixed(g, channel - group * g.rows);
    const typename Columns::Fixed tap = columns.fixed(g, column);
    C sum = (C)0;
    for (int64_t k = threadIdx.x; k < g.depth; k += kBlockThreads)
      sum += rows.value(g, row, rows.moving(g, k)) * columns.value(g, tap, columns.moving(g, k));
    sum = fold_block(sum, FoldSum());
    if (threadIdx.x == 0) ((O*)g.out)[i] = convert<O>(sum);
  }
}
