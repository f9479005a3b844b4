// Dense copies of strided operands.

#include "kernels/onednn/strided_operand.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "base/parallel.h"

namespace paddle::onednn {
namespace {

/// kMemory: axes by decreasing stride; broadcast axes, which a copy expands, come first.
std::vector<size_t> ordered(const Layout& layout, AxisOrder how) {
  std::vector<size_t> order(layout.shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (how == AxisOrder::kLogical) return order;
  const auto size = [&](size_t axis) {
    const int64_t stride = std::abs(layout.strides[axis]);
    return stride == 0 ? std::numeric_limits<int64_t>::max() : stride;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return size(a) > size(b); });
  return order;
}

void copy_run(const std::byte* from, int64_t stride, int64_t item, std::byte* to, int64_t n,
              uint8_t xor_mask) {
  if (item == 1 && stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i] ^ std::byte{xor_mask};
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const std::byte* const source = from + i * stride * item;
    for (int64_t k = 0; k < item; ++k) to[i * item + k] = source[k] ^ std::byte{xor_mask};
  }
}

}  // namespace

bool normalize_strides(int64_t rows, int64_t columns, int64_t& row, int64_t& column) {
  if (rows == 1 && columns == 1) {
    row = column = 1;
  } else if (rows == 1) {
    if (column == 1)
      row = columns;
    else
      row = 1;
  } else if (columns == 1) {
    if (row == 1)
      column = rows;
    else
      column = 1;
  }
  if (column == 1) return row >= columns;
  if (row == 1) return column >= rows;
  return false;
}

dnnl::memory::desc matrix_desc(dnnl::memory::data_type type, const Dims& batch,
                               const Dims& batch_strides, int64_t rows, int64_t columns,
                               int64_t row, int64_t column) {
  Dims dims = batch, steps = batch_strides;
  for (size_t i = 0; i < dims.size(); ++i)
    if (batch_strides[i] == 0) {
      dims[i] = 1;
      steps[i] = std::max(rows * row, columns * column);
    }
  dims.insert(dims.end(), {rows, columns});
  steps.insert(steps.end(), {row, column});
  return dnnl::memory::desc(dims, type, steps);
}

DenseOperand make_dense(Program& program, size_t operand, const Layout& layout, AxisOrder how,
                        uint8_t xor_mask) {
  const std::vector<size_t> order = ordered(layout, how);
  DenseOperand out{{MemoryRef::kOperand, operand}, layout.strides};
  bool dense = true;
  int64_t size = 1;
  for (size_t i = order.size(); i-- > 0;) {
    dense = dense && (layout.strides[order[i]] == size || layout.shape[order[i]] == 1);
    out.strides[order[i]] = size;
    size *= layout.shape[order[i]];
  }
  if (dense && xor_mask == 0) return out;
  const int64_t item = item_size(layout.dtype);
  out.slot = program.scratch(
      dnnl::memory::desc({size * item}, dnnl::memory::data_type::u8, dnnl::memory::format_tag::a));
  // A dense operand is one run; others are copied in runs along the innermost axis.
  Dims shape, strides;
  for (const size_t axis : order) {
    shape.push_back(layout.shape[axis]);
    strides.push_back(layout.strides[axis]);
  }
  if (dense) {
    shape = {size};
    strides = {1};
  }
  program.add({operand}, [slot = out.slot, operand, item, xor_mask, shape, strides, size](
                             const RunContext& context, void* const* operands,
                             void* const* results) {
    const auto* const from = static_cast<const std::byte*>(operands[operand]);
    auto* const to = static_cast<std::byte*>(Program::address(slot, context, operands, results));
    const int64_t run = shape.empty() ? 1 : shape.back(), step = shape.empty() ? 1 : strides.back();
    parallel_for(size, 16384, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end;) {
        int64_t remaining = at / run, offset = at % run * step;
        const int64_t n = std::min(end - at, run - at % run);
        for (size_t axis = shape.size(); axis-- > 1;) {
          offset += remaining % shape[axis - 1] * strides[axis - 1];
          remaining /= shape[axis - 1];
        }
        copy_run(from + offset * item, step, item, to + at * item, n, xor_mask);
        at += n;
      }
    });
  });
  return out;
}

}  // namespace paddle::onednn
