// concat, pad and strided_slice_scatter: kernels that copy operands into parts of the result.

#include <algorithm>
#include <array>
#include <cstring>

#include "base/parallel.h"
#include "kernels/common/strided_window.h"
#include "kernels/elementwise/elementwise.h"
#include "ops/core/size_limits.h"
#include "ops/generated/shape.h"
#include "tensor/strided_copy.h"

namespace paddle::cpu {
namespace {

/// Writes contiguous elements of `item` bytes to addresses `stride` elements apart.
void scatter(const std::byte* source, std::byte* target, int64_t item, int64_t stride, int64_t n) {
  const auto copy = [&]<class T>(T) {
    const T* const in = reinterpret_cast<const T*>(source);
    T* const out = reinterpret_cast<T*>(target);
    for (int64_t i = 0; i < n; ++i) out[i * stride] = in[i];
  };
  visit_unsigned_of_size(item, copy, [&] {
    for (int64_t i = 0; i < n; ++i)
      std::memcpy(target + i * stride * item, source + i * item, static_cast<size_t>(item));
  });
}

/// A box of a contiguous tensor that an operand fills: rows of `inner` elements.
struct Box {
  Dims shape, strides;
  int64_t offset = 0;

  /// Copies all elements of `reader` in order into the box.
  void fill(const StridedReader& reader, const void* operand, std::byte* target,
            int64_t item) const {
    int64_t rows = 1;
    const size_t rank = shape.size();
    const int64_t inner = rank == 0 ? 1 : shape[rank - 1];
    for (size_t i = 0; i + 1 < rank; ++i) rows *= shape[i];
    if (inner == 0 || rows == 0) return;
    const int64_t inner_stride = rank == 0 ? 1 : strides[rank - 1];
    if (rank == 2 && inner_stride == 1 && reader.is_direct())
      return copy_rows(static_cast<const std::byte*>(operand), rows, inner * item,
                       target + offset * item, strides[0] * item);
    const int64_t run = std::min(kRun, inner), runs = (inner + run - 1) / run;
    parallel_for(rows * runs, std::max<int64_t>(1, 16384 / run), [&](int64_t first, int64_t last) {
      alignas(64) std::byte buffer[kRun * 16];
      for (int64_t i = first; i < last; ++i) {
        const int64_t row = i / runs, done = i % runs * run, n = std::min(run, inner - done);
        int64_t at = offset + done * inner_stride, remaining = row;
        for (size_t axis = rank; axis-- > 1;) {
          at += remaining % shape[axis - 1] * strides[axis - 1];
          remaining /= shape[axis - 1];
        }
        const void* const values = reader.read(operand, row * inner + done, n, buffer);
        std::byte* const out = target + at * item;
        if (inner_stride == 1)
          std::memcpy(out, values, static_cast<size_t>(n * item));
        else
          scatter(static_cast<const std::byte*>(values), out, item, inner_stride, n);
      }
    });
  }

 private:
  static constexpr int64_t kRun = 1024;

  static void copy_rows(const std::byte* from, int64_t rows, int64_t bytes, std::byte* to,
                        int64_t row_stride) {
    // Smaller copies finish before a second thread wakes up.
    constexpr int64_t kMinBytesPerThread = int64_t{1} << 20;
    parallel_for(
        rows, std::max<int64_t>(1, kMinBytesPerThread / bytes), [&](int64_t first, int64_t last) {
          for (int64_t row = first; row < last; ++row)
            std::memcpy(to + row * row_stride, from + row * bytes, static_cast<size_t>(bytes));
        });
  }
};

}  // namespace

std::unique_ptr<Kernel> prepare_concat(const KernelRequest& request) {
  const Layout& result = request.results[0];
  if (result.size() == 0) return make_kernel([](const RunContext&, void* const*, void* const*) {});
  int64_t axis = ConcatAttrs(request.attrs).axis;
  if (axis < 0) axis += static_cast<int64_t>(result.shape.size());
  struct Input {
    Box box;
    StridedReader reader;
  };
  std::vector<Input> inputs;
  int64_t offset = 0;
  for (const Layout& operand : request.operands) {
    const Dims strides = contiguous_strides(result.shape);
    inputs.push_back({{operand.shape, strides, offset * strides[static_cast<size_t>(axis)]},
                      StridedReader(operand, operand.shape, result.dtype)});
    offset += operand.shape[static_cast<size_t>(axis)];
  }
  for (Input& input : inputs) merge_axes(input.box.shape, input.box.strides);
  return make_kernel([inputs = std::move(inputs), item = item_size(result.dtype)](
                         const RunContext&, void* const* operands, void* const* results) {
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs[i].box.fill(inputs[i].reader, operands[i], static_cast<std::byte*>(results[0]), item);
  });
}

std::unique_ptr<Kernel> prepare_strided_slice_scatter(const KernelRequest& request) {
  const StridedSliceScatterAttrs attrs(request.attrs);
  const Layout& result = request.results[0];
  if (result.size() == 0) return make_kernel([](const RunContext&, void* const*, void* const*) {});
  StridedWindow window = strided_window(result.shape, attrs);
  Box box{std::move(window.shape), std::move(window.strides), window.offset};
  StridedReader operand_reader(request.operands[0], result.shape, result.dtype);
  StridedReader value_reader(request.operands[1], box.shape, result.dtype);
  merge_axes(box.shape, box.strides);
  return make_kernel([operand_reader = std::move(operand_reader),
                      value_reader = std::move(value_reader), box, size = result.size(),
                      item = item_size(result.dtype)](const RunContext&, void* const* operands,
                                                      void* const* results) {
    std::byte* const out = static_cast<std::byte*>(results[0]);
    if (operands[0] != results[0])
      parallel_for(size, 32768, [&](int64_t begin, int64_t end) {
        std::byte* const target = out + begin * item;
        const void* const in = operand_reader.read(operands[0], begin, end - begin, target);
        if (in != target) std::memcpy(target, in, static_cast<size_t>((end - begin) * item));
      });
    box.fill(value_reader, operands[1], out, item);
  });
}

namespace {

constexpr size_t kMaxPadRank = 64;

/// Fills the rows of a padded result of at least two axes; `sources` holds, for each axis, the
/// index in x of each result index, or -1 for the border. Elements [run_first, run_last) of a row
/// are contiguous in x.
template <class T>
void pad_rows(const T* x, const Dims& strides, const std::vector<std::vector<int64_t>>& sources,
              int64_t run_first, int64_t run_last, T border, const Dims& shape, T* out) {
  const size_t last = shape.size() - 1, across = last - 1;
  const int64_t inner = shape[last], step = strides[last];
  const int64_t* const columns = sources[last].data();
  const int64_t run_source = run_last > run_first ? columns[run_first] : 0;
  int64_t rows = inner == 0 ? 0 : 1;
  for (size_t axis = 0; axis < last; ++axis) rows *= shape[axis];
  const auto fill_row = [&](const T* from, T* target) {
    const auto copy = [&](int64_t first, int64_t stop) {
      for (int64_t i = first; i < stop; ++i)
        target[i] = columns[i] < 0 ? border : from[columns[i] * step];
    };
    copy(0, run_first);
    if (run_last > run_first)
      std::memcpy(target + run_first, from + run_source,
                  static_cast<size_t>(run_last - run_first) * sizeof(T));
    copy(run_last, inner);
  };
  parallel_for(rows, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, inner)),
               [&](int64_t begin, int64_t end) {
                 std::array<int64_t, kMaxPadRank> index{};
                 int64_t rest = begin;
                 for (size_t axis = last; axis-- > 0;) {
                   index[axis] = rest % shape[axis];
                   rest /= shape[axis];
                 }
                 for (int64_t row = begin; row < end;) {
                   int64_t offset = 0;
                   bool outside = false;
                   for (size_t axis = 0; axis < across; ++axis) {
                     const int64_t at = sources[axis][static_cast<size_t>(index[axis])];
                     outside |= at < 0;
                     offset += at * strides[axis];
                   }
                   const int64_t stop = std::min(end, row + shape[across] - index[across]);
                   const int64_t* source = sources[across].data() + index[across];
                   for (; row < stop; ++row, ++source) {
                     if (outside || *source < 0)
                       std::fill_n(out + row * inner, inner, border);
                     else
                       fill_row(x + offset + *source * strides[across], out + row * inner);
                   }
                   index[across] = 0;
                   for (size_t axis = across; axis-- > 0;) {
                     if (++index[axis] < shape[axis]) break;
                     index[axis] = 0;
                   }
                 }
               });
}

}  // namespace

std::unique_ptr<Kernel> prepare_pad(const KernelRequest& request) {
  const PadAttrs attrs(request.attrs);
  const Layout &x = request.operands[0], &result = request.results[0];
  const size_t rank = x.shape.size();
  if (rank > kMaxPadRank)
    fail(ErrorCode::kUsage, "pad: x has ", rank, " axes, at most ", kMaxPadRank, " are supported");
  if (result.size() == 0) return make_kernel([](const RunContext&, void* const*, void* const*) {});
  std::vector<int64_t> before(rank, 0);
  const size_t count = attrs.pad.size();
  if (count == 2 * rank && attrs.mode == "constant") {
    for (size_t i = 0; i < rank; ++i)
      before[attrs.pad_from_left_axis ? i : rank - 1 - i] = attrs.pad[2 * i];
  } else {
    const bool channels_last = attrs.data_format && attrs.data_format->ends_with('C');
    const size_t last = rank - (channels_last && rank > 2 ? 1 : 0);
    for (size_t i = 0; i < count / 2; ++i) before[last - 1 - i] = attrs.pad[2 * i];
  }
  std::vector<std::vector<int64_t>> sources(rank);  // offsets in x, or -1
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t size = x.shape[axis], places = result.shape[axis];
    check_index_count("pad", places);
    sources[axis].reserve(static_cast<size_t>(places));
    for (int64_t i = 0; i < places; ++i) {
      int64_t at = i - before[axis];
      if (at < 0 || at >= size) {
        if (attrs.mode == "reflect" && size > 1) {
          const int64_t period = 2 * (size - 1);
          at = ((at % period) + period) % period;
          at = at < size ? at : period - at;
        } else if (attrs.mode == "replicate" && size > 0) {
          at = std::clamp<int64_t>(at, 0, size - 1);
        } else if (attrs.mode == "circular" && size > 0) {
          at = ((at % size) + size) % size;
        } else {
          at = -1;
        }
      }
      sources[axis].push_back(at);
    }
  }
  // The part of a row that is a contiguous copy of x.
  int64_t run_first = 0, run_last = 0;
  if (rank > 0 && x.strides[rank - 1] == 1) {
    run_first = std::clamp<int64_t>(before[rank - 1], 0, result.shape[rank - 1]);
    run_last = std::clamp(before[rank - 1] + x.shape[rank - 1], run_first, result.shape[rank - 1]);
  }
  std::array<std::byte, 16> border{};
  convert_fn(DType::kF64, result.dtype)(&attrs.value, 1, border.data(), 1);
  Dims shape = result.shape, strides = x.strides;
  if (rank == 1) {  // a row
    shape.insert(shape.begin(), 1);
    strides.insert(strides.begin(), 0);
    sources.insert(sources.begin(), {0});
  }
  if (rank == 0)
    return make_kernel([item = item_size(result.dtype)](const RunContext&, void* const* operands,
                                                        void* const* results) {
      std::memcpy(results[0], operands[0], static_cast<size_t>(item));
    });
  const auto kernel = [&]<class T>(T) {
    T outside;
    std::memcpy(&outside, border.data(), sizeof outside);
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      pad_rows(static_cast<const T*>(operands[0]), strides, sources, run_first, run_last, outside,
               shape, static_cast<T*>(results[0]));
    });
  };
  return visit_unsigned_of_size(item_size(result.dtype), kernel,
                                []() -> std::unique_ptr<Kernel> { return nullptr; });
}

}  // namespace paddle::cpu
