// Rows of tables by index, and the gradient of a table.

struct GatherArguments {
  const void *indices, *table;  ///< for the gradient, `table` is the gradient of the looked-up rows
  void* out;
  uint8_t* used;  ///< by row of the table: whether an index names it
  int64_t count, rows, width, padding;
  DataError* error;
  int64_t site;
};

/// Item: an unsigned type of an element's size.
template <class Index, class Item>
PADDLE_DEVICE void gather_rows(const GatherArguments& arguments) {
  const int64_t size = arguments.count * arguments.width;
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < size; i += step) {
    const int64_t which = i / arguments.width, column = i - which * arguments.width;
    int64_t row = (int64_t)((const Index*)arguments.indices)[which];
    if (row < 0 || row >= arguments.rows) {
      if (column == 0) record_error(arguments.error, arguments.site, row);
      row = 0;
    }
    Item value = ((const Item*)arguments.table)[row * arguments.width + column];
    if (row == arguments.padding) value = Item{};
    ((Item*)arguments.out)[i] = value;
  }
}

/// Marks the rows that indices name.
template <class Index>
PADDLE_DEVICE void mark_rows(const GatherArguments& arguments) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < arguments.count;
       i += step) {
    const int64_t row = (int64_t)((const Index*)arguments.indices)[i];
    if (row == arguments.padding) continue;
    if (row < 0 || row >= arguments.rows)
      record_error(arguments.error, arguments.site, row);
    else
      store_same(arguments.used + row, (uint8_t)1);
  }
}

/// Sums the gradients of each row of the table in the order of the indices, so that every run gives
/// the same bits. A block makes a row.
template <class C, class Index, class T>
PADDLE_DEVICE void sum_rows(const GatherArguments& arguments) {
  __shared__ bool found[kBlockThreads];
  __shared__ int any;
  const T* const grad = (const T*)arguments.table;
  const int thread = (int)threadIdx.x;
  for (int64_t row = blockIdx.x; row < arguments.rows; row += gridDim.x) {
    T* const out = (T*)arguments.out + row * arguments.width;
    if (!arguments.used[row]) {
      for (int64_t column = thread; column < arguments.width; column += kBlockThreads)
        out[column] = convert<T>((C)0);
      continue;
    }
    for (int64_t first = 0; first < arguments.width; first += kBlockThreads) {
      const int64_t column = first + thread;
      C sum = (C)0;
      for (int64_t begin = 0; begin < arguments.count; begin += kBlockThreads) {
        const int64_t which = begin + thread;
        if (thread == 0) any = 0;
        __syncthreads();
        const bool mine =
            which < arguments.count && (int64_t)((const Index*)arguments.indices)[which] == row;
        found[thread] = mine;
        if (mine) store_same(&any, 1);
        __syncthreads();
        if (any != 0 && column < arguments.width)
          for (int i = 0; i < kBlockThreads; ++i)
            if (found[i]) sum += convert<C>(grad[(begin + i) * arguments.width + column]);
        __syncthreads();
      }
      if (column < arguments.width) out[column] = convert<T>(sum);
    }
  }
}
