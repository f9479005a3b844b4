#include "tensor/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/parallel.h"
#include "base/parallel_copy.h"
#include "tensor/tensor.h"

namespace paddle {
namespace {

constexpr int64_t kTile = 16;
constexpr int64_t kBand = 32;  ///< rows of a band of tiles: two cache lines of each column in turn
constexpr int64_t kElementsPerThread = 32768;

struct Bytes16 {
  uint64_t low, high;
};

/// Walks the positions of axes in row-major order with the offsets of two tensors.
class Walk {
 public:
  Walk(const Dims& shape, const Dims& first, const Dims& second, size_t rank, int64_t at)
      : shape_(shape), first_(first), second_(second), rank_(rank) {
    for (size_t axis = rank; axis-- > 0;) {
      index_[axis] = at % shape[axis];
      at /= shape[axis];
      a += index_[axis] * first[axis];
      b += index_[axis] * second[axis];
    }
  }
  void next() {
    for (size_t axis = rank_; axis-- > 0;) {
      a += first_[axis];
      b += second_[axis];
      if (++index_[axis] < shape_[axis]) return;
      a -= shape_[axis] * first_[axis];
      b -= shape_[axis] * second_[axis];
      index_[axis] = 0;
    }
  }
  int64_t a = 0, b = 0;  ///< the offsets

 private:
  const Dims &shape_, &first_, &second_;
  size_t rank_;
  std::array<int64_t, 64> index_;  // at most 62 axes have two elements or more
};

/// A square of `n` rows and columns, transposed; full tiles of 2 and 4 bytes in vector registers.
template <class T>
void transpose_tile(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                    int64_t columns) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[i * to_stride + j] = from[j * from_stride + i];
}

using Four = uint32_t __attribute__((vector_size(16)));

Four load(const uint32_t* from) {
  Four out;
  std::memcpy(&out, from, sizeof out);
  return out;
}
void store(Four values, uint32_t* to) { std::memcpy(to, &values, sizeof values); }

Four reversed(Four values) { return __builtin_shufflevector(values, values, 3, 2, 1, 0); }

void transpose_4x4(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride) {
  const Four a = load(from), b = load(from + from_stride), c = load(from + 2 * from_stride),
             d = load(from + 3 * from_stride);
  const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
             cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7),
             cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store(__builtin_shufflevector(ab, cd, 0, 1, 4, 5), to);
  store(__builtin_shufflevector(ab, cd, 2, 3, 6, 7), to + to_stride);
  store(__builtin_shufflevector(ab2, cd2, 0, 1, 4, 5), to + 2 * to_stride);
  store(__builtin_shufflevector(ab2, cd2, 2, 3, 6, 7), to + 3 * to_stride);
}

/// rows × columns of the result at `to`, whose rows are columns of the source.
template <class T>
void transpose(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
               int64_t columns) {
  if constexpr (sizeof(T) == 4) {
    const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
    for (int64_t i = 0; i < whole_rows; i += 4)
      for (int64_t j = 0; j < whole_columns; j += 4)
        transpose_4x4(from + j * from_stride + i, from_stride, to + i * to_stride + j, to_stride);
    transpose_tile(from + whole_columns * from_stride, from_stride, to + whole_columns, to_stride,
                   whole_rows, columns - whole_columns);
    transpose_tile(from + whole_rows, from_stride, to + whole_rows * to_stride, to_stride,
                   rows - whole_rows, columns);
  } else {
    transpose_tile(from, from_stride, to, to_stride, rows, columns);
  }
}

/// to[i] = from[-i]. The next row, `row_stride` elements from this one, is brought into the cache
/// at the same time: the hardware stops prefetching at the end of each row that is read backwards.
template <class T>
void copy_backwards(const T* from, T* to, int64_t n, int64_t row_stride) {
  constexpr int64_t kLine = 64 / sizeof(T);
  int64_t i = 0;
  for (; i + kLine <= n; i += kLine) {
    __builtin_prefetch(from - i + row_stride);
    if constexpr (sizeof(T) == 4)
      for (int64_t k = 0; k < kLine; k += 4) store(reversed(load(from - i - k - 3)), to + i + k);
    else
      for (int64_t k = 0; k < kLine; ++k) to[i + k] = from[-i - k];
  }
  for (; i < n; ++i) to[i] = from[-i];
}

template <class T>
void copy_run(const T* from, int64_t stride, T* to, int64_t n, int64_t row_stride) {
  if (stride == -1) {
    copy_backwards(from, to, n, row_stride);
  } else if (stride != 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
  } else if (n * static_cast<int64_t>(sizeof(T)) <= 64) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  } else {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  }
}

void remove_axis(Dims& dims, size_t axis) {
  dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
}

}  // namespace

void merge_axes(Dims& shape, Dims& strides) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) {
    shape = {0};
    strides = {1};
    return;
  }
  size_t kept = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (kept > 0 && strides[kept - 1] == strides[i] * shape[i]) {
      shape[kept - 1] *= shape[i];
      strides[kept - 1] = strides[i];
    } else {
      shape[kept] = shape[i];
      strides[kept] = strides[i];
      ++kept;
    }
  }
  shape.resize(kept);
  strides.resize(kept);
}

StridedCopy::StridedCopy(Dims shape, Dims strides, int64_t item)
    : shape_(std::move(shape)), strides_(std::move(strides)), item_(item) {
  merge_axes(shape_, strides_);
  if (shape_.empty()) {
    shape_ = {1};
    strides_ = {1};
  }
  size_ = std::accumulate(shape_.begin(), shape_.end(), int64_t{1}, std::multiplies<>());
  places_ = contiguous_strides(shape_);
  const size_t last = shape_.size() - 1;
  if (strides_[last] == 1 || shape_[last] < 4) return;
  for (size_t axis = 0; axis < last && !tiled_; ++axis) {
    if (strides_[axis] != 1 || shape_[axis] < 4) continue;
    tiled_ = true;
    rows_ = shape_[axis];
    row_stride_ = places_[axis];
    columns_ = shape_[last];
    column_stride_ = strides_[last];
    for (Dims* dims : {&shape_, &strides_, &places_}) {
      remove_axis(*dims, last);
      remove_axis(*dims, axis);
    }
  }
}

template <class T>
void StridedCopy::copy_rows(const T* from, T* to, int64_t begin, int64_t end) const {
  const size_t last = shape_.size() - 1;
  const int64_t n = shape_[last], stride = strides_[last],
                row_stride = last > 0 ? strides_[last - 1] : 0;
  Walk walk(shape_, strides_, places_, last, begin);
  for (int64_t row = begin; row < end; ++row, walk.next())
    copy_run(from + walk.a, stride, to + row * n, n, row_stride);
}

template <class T>
void StridedCopy::copy_tiles(const T* from, T* to, int64_t begin, int64_t end) const {
  const int64_t bands = (rows_ + kBand - 1) / kBand;
  Walk walk(shape_, strides_, places_, shape_.size(), begin / bands);
  for (int64_t task = begin; task < end; ++task) {
    const int64_t row = task % bands * kBand, rows = std::min(kBand, rows_ - row);
    for (int64_t column = 0; column < columns_; column += kTile)
      transpose(from + walk.a + row + column * column_stride_, column_stride_,
                to + walk.b + row * row_stride_ + column, row_stride_, rows,
                std::min(kTile, columns_ - column));
    if (row + kBand >= rows_) walk.next();
  }
}

template <class T>
void StridedCopy::run_as(const T* from, T* to) const {
  if (tiled_) {
    const int64_t bands = (rows_ + kBand - 1) / kBand;
    const int64_t tasks = size_ / (rows_ * columns_) * bands;
    parallel_for(tasks, std::max<int64_t>(1, kElementsPerThread / (kBand * columns_)),
                 [&](int64_t begin, int64_t end) { copy_tiles(from, to, begin, end); });
    return;
  }
  const int64_t n = shape_.back();
  if (n == size_ && strides_.back() == 1)
    return parallel_copy(to, from, size_ * item_, kElementsPerThread * item_);
  parallel_for(size_ / n, std::max<int64_t>(1, kElementsPerThread / n),
               [&](int64_t begin, int64_t end) { copy_rows(from, to, begin, end); });
}

void StridedCopy::run(const void* from, void* to) const {
  if (size_ == 0) return;
  const auto as = [&]<class T>(T) { run_as(static_cast<const T*>(from), static_cast<T*>(to)); };
  switch (item_) {
    case 1:
      return as(uint8_t());
    case 2:
      return as(uint16_t());
    case 4:
      return as(uint32_t());
    case 8:
      return as(uint64_t());
    case 16:
      return as(Bytes16());
    default:
      fail(ErrorCode::kInternal, "elements of ", item_, " bytes cannot be copied");
  }
}

}  // namespace paddle
