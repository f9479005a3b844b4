#pragma once
// Packing: copies a strided window to row-major order. Transposed windows are copied in tiles, so
// that whole cache lines are read and written.

#include <cstdint>

#include "tensor/dim.h"

namespace paddle {

/// Drops axes of size 1 and merges adjacent axes with compatible strides. An empty tensor keeps one
/// axis, because the other sizes may be anything.
void merge_axes(Dims& shape, Dims& strides);

class StridedCopy {
 public:
  /// Elements of `item` bytes (1, 2, 4, 8 or 16). Strides are in elements and may be 0 or negative.
  StridedCopy(Dims shape, Dims strides, int64_t item);

  /// Copies from the window whose first element is at `from`, on all threads. The windows must not
  /// overlap.
  void run(const void* from, void* to) const;

 private:
  Dims shape_, strides_;  ///< merged; for tiles without the two tiled axes
  Dims places_;           ///< with tiles: strides of the outer axes in the result
  int64_t item_, size_;
  bool tiled_ = false;
  int64_t rows_ = 0, row_stride_ = 0;  ///< of tiles: the axis that is contiguous in the source
  int64_t columns_ = 0, column_stride_ = 0;  ///< and the last axis; strides in result and source

  template <class T>
  void copy_rows(const T* from, T* to, int64_t begin, int64_t end) const;
  template <class T>
  void copy_tiles(const T* from, T* to, int64_t begin, int64_t end) const;
  template <class T>
  void run_as(const T* from, T* to) const;
};

}  // namespace paddle
