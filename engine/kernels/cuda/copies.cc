#include "kernels/cuda/copies.h"

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "kernels/common/convert.h"
#include "kernels/common/strided_window.h"
#include "kernels/cuda/create.h"
#include "kernels/cuda/prepare.h"
#include "ops/generated/creation.h"
#include "ops/generated/shape.h"
#include "tensor/strided_copy.h"

namespace paddle::cuda {
namespace {

constexpr size_t kMaxCopyAxes = 12;

/// As in device/copy.cuh.
struct CopyArguments {
  const void* from;
  void* to;
  int64_t size, axes;
  int64_t shape[kMaxCopyAxes], from_strides[kMaxCopyAxes], to_strides[kMaxCopyAxes];
};
constexpr size_t kMaxJoinedCopies = 10;
struct JoinArguments {
  CopyArguments copies[kMaxJoinedCopies];
};
struct FillArguments {
  void* to;
  int64_t size;
  uint64_t low, high;
};

std::shared_ptr<Program> copy_program(const KernelRequest& request) {
  return start_program(request, program_text({"copy"}, ""));
}

/// A box of elements in two windows.
struct Box {
  Dims shape, from, to;
  int64_t from_offset = 0, to_offset = 0;  ///< in elements

  int64_t size() const { return element_count(std::span<const int64_t>(shape)); }
  void merge() {
    Dims merged_shape, merged_from, merged_to;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 1) continue;
      if (!merged_shape.empty() && merged_from.back() == from[axis] * shape[axis] &&
          merged_to.back() == to[axis] * shape[axis]) {
        merged_shape.back() *= shape[axis];
        merged_from.back() = from[axis];
        merged_to.back() = to[axis];
        continue;
      }
      merged_shape.push_back(shape[axis]);
      merged_from.push_back(from[axis]);
      merged_to.push_back(to[axis]);
    }
    shape = std::move(merged_shape);
    from = std::move(merged_from);
    to = std::move(merged_to);
  }
};

/// A copy of one box, whose addresses follow from those of the operands.
class BoxCopy {
 public:
  BoxCopy(const KernelRequest& request, Box box, int64_t item) {
    box.merge();
    fits_ = box.shape.size() <= kMaxCopyAxes;
    if (!fits_) return;
    arguments_.size = box.size();
    arguments_.axes = static_cast<int64_t>(box.shape.size());
    std::copy(box.shape.begin(), box.shape.end(), arguments_.shape);
    std::copy(box.from.begin(), box.from.end(), arguments_.from_strides);
    std::copy(box.to.begin(), box.to.end(), arguments_.to_strides);
    from_bytes_ = box.from_offset * item;
    to_bytes_ = box.to_offset * item;
    entry_ = Entry(copy_program(request), str("copy_", is_large() ? "large_" : "", item));
  }
  bool fits() const { return fits_; }
  bool is_large() const { return arguments_.size >= int64_t{1} << 31; }
  int64_t size() const { return arguments_.size; }
  CopyArguments at(const void* from, void* to) const {
    CopyArguments out = arguments_;
    out.from = static_cast<const std::byte*>(from) + from_bytes_;
    out.to = static_cast<std::byte*>(to) + to_bytes_;
    return out;
  }
  void launch(paddle_stream stream, const void* from, void* to) const {
    if (arguments_.size == 0) return;
    const CopyArguments arguments = at(from, to);
    entry_.launch(stream, element_blocks(arguments.size), &arguments);
  }

 private:
  Entry entry_;
  CopyArguments arguments_{};
  int64_t from_bytes_ = 0, to_bytes_ = 0;
  bool fits_ = true;
};

bool is_copied_size(int64_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

/// False for types whose elements are parts of a byte.
bool is_copied(DType type) { return info(type).bits >= 8 && is_copied_size(item_size(type)); }

/// A fill with the bytes of an element.
class Fill {
 public:
  Fill(const KernelRequest& request, const Layout& result, const void* element) {
    const int64_t item = item_size(result.dtype);
    arguments_.size = result.size();
    uint64_t words[2] = {};
    std::memcpy(words, element, static_cast<size_t>(item));
    arguments_.low = words[0];
    arguments_.high = words[1];
    entry_ = Entry(copy_program(request), str("fill_", item));
  }
  void launch(paddle_stream stream, void* to) const {
    if (arguments_.size == 0) return;
    FillArguments arguments = arguments_;
    arguments.to = to;
    entry_.launch(stream, element_blocks(arguments.size / 4), &arguments);
  }

 private:
  Entry entry_;
  FillArguments arguments_{};
};

/// A scalar's bytes in a type, keeping all 64 bits of an integer.
std::array<std::byte, 16> element_of(const AttrValue& number, DType type) {
  std::array<std::byte, 16> out{};
  if (is_complex(type)) {
    const std::complex<double> wide = number.as_complex();
    const std::complex<float> narrow(wide);
    if (type == DType::kC128)
      std::memcpy(out.data(), &wide, sizeof wide);
    else
      std::memcpy(out.data(), &narrow, sizeof narrow);
  } else if (number.is_bool()) {
    const bool value = number.as_bool();
    cpu::convert_fn(DType::kBool, type)(&value, 1, out.data(), 1);
  } else if (number.is_int()) {
    const int64_t value = number.as_int();
    cpu::convert_fn(DType::kI64, type)(&value, 1, out.data(), 1);
  } else {
    const double value = number.as_double();
    cpu::convert_fn(DType::kF64, type)(&value, 1, out.data(), 1);
  }
  return out;
}

std::unique_ptr<Kernel> fill_kernel(const KernelRequest& request, const AttrValue& value) {
  const Layout& result = request.results[0];
  if (!is_copied(result.dtype)) return nullptr;
  const auto element = element_of(value, result.dtype);
  const Fill fill(request, result, element.data());
  return make_kernel([fill](const RunContext& context, void* const*,
                            void* const* results) { fill.launch(context.stream, results[0]); },
                     0, "cuda:fill");
}

}  // namespace

std::unique_ptr<Kernel> prepare_strided_copy(const KernelRequest& request, const Layout& source) {
  if (!is_copied(source.dtype)) return nullptr;
  Box box{source.shape, source.strides, contiguous_strides(source.shape), source.offset, 0};
  BoxCopy copy(request, std::move(box), item_size(source.dtype));
  if (!copy.fits()) return nullptr;
  return make_kernel(
      [copy](const RunContext& context, void* const* operands, void* const* results) {
        copy.launch(context.stream, operands[0], results[0]);
      },
      0, "cuda:copy");
}

std::unique_ptr<Kernel> prepare_concat(const KernelRequest& request) {
  const Layout& result = request.results[0];
  if (!is_copied(result.dtype)) return nullptr;
  int64_t axis = ConcatAttrs(request.attrs).axis;
  if (axis < 0) axis += static_cast<int64_t>(result.shape.size());
  const Dims steps = contiguous_strides(result.shape);
  std::vector<BoxCopy> copies;
  int64_t offset = 0;
  for (const Layout& operand : request.operands) {
    if (!operand.present || operand.dtype != result.dtype ||
        operand.shape.size() != result.shape.size())
      return nullptr;
    copies.emplace_back(
        request,
        Box{operand.shape, operand.strides, steps, 0, offset * steps[static_cast<size_t>(axis)]},
        item_size(result.dtype));
    if (!copies.back().fits()) return nullptr;
    offset += operand.shape[static_cast<size_t>(axis)];
  }
  const bool large = std::ranges::any_of(copies, &BoxCopy::is_large);
  const Entry entry(copy_program(request),
                    str("join_", large ? "large_" : "", item_size(result.dtype)));
  return make_kernel(
      [=, copies = std::move(copies)](const RunContext& context, void* const* operands,
                                      void* const* results) {
        for (size_t first = 0; first < copies.size(); first += kMaxJoinedCopies) {
          const size_t count = std::min(kMaxJoinedCopies, copies.size() - first);
          JoinArguments arguments{};
          int64_t largest = 0;
          for (size_t i = 0; i < count; ++i) {
            arguments.copies[i] = copies[first + i].at(operands[first + i], results[0]);
            largest = std::max(largest, copies[first + i].size());
          }
          if (largest > 0)
            entry.launch(context.stream, element_blocks(largest), static_cast<int64_t>(count),
                         &arguments);
        }
      },
      0, "cuda:copy");
}

std::unique_ptr<Kernel> prepare_strided_slice_scatter(const KernelRequest& request) {
  const StridedSliceScatterAttrs attrs(request.attrs);
  const Layout &x = request.operands[0], &value = request.operands[1], &result = request.results[0];
  if (!is_copied(result.dtype) || x.dtype != result.dtype || value.dtype != result.dtype)
    return nullptr;
  cpu::StridedWindow written = cpu::strided_window(result.shape, attrs);
  Box window{std::move(written.shape), {}, std::move(written.strides), 0, written.offset};
  window.from.assign(window.shape.size(), 0);
  if (value.shape.size() > window.shape.size()) return nullptr;
  for (size_t i = 0; i < value.shape.size(); ++i) {  // the value broadcasts
    const size_t axis = window.shape.size() - value.shape.size() + i;
    if (value.shape[i] != 1) window.from[axis] = value.strides[i];
  }
  Box whole{result.shape, Dims(result.shape.size(), 0), contiguous_strides(result.shape)};
  for (size_t i = 0; i < x.shape.size(); ++i) {
    const size_t axis = result.shape.size() - x.shape.size() + i;
    if (x.shape[i] != 1) whole.from[axis] = x.strides[i];
  }
  const int64_t item = item_size(result.dtype);
  BoxCopy base(request, std::move(whole), item);
  BoxCopy part(request, std::move(window), item);
  if (!base.fits() || !part.fits()) return nullptr;
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        if (operands[0] != results[0]) base.launch(context.stream, operands[0], results[0]);
        part.launch(context.stream, operands[1], results[0]);
      },
      0, "cuda:copy");
}

std::unique_ptr<Kernel> prepare_pad(const KernelRequest& request) {
  const PadAttrs attrs(request.attrs);
  const Layout &x = request.operands[0], &result = request.results[0];
  const size_t rank = x.shape.size(), count = attrs.pad.size();
  if (attrs.mode != "constant") return prepare_pad_border(request);
  if (!is_copied(result.dtype) || x.dtype != result.dtype) return nullptr;
  std::vector<int64_t> before(rank, 0);
  if (count == 2 * rank) {
    for (size_t i = 0; i < rank; ++i)
      before[attrs.pad_from_left_axis ? i : rank - 1 - i] = attrs.pad[2 * i];
  } else {
    const bool channels_last = attrs.data_format && attrs.data_format->ends_with('C');
    const size_t last = rank - (channels_last && rank > 2 ? 1 : 0);
    for (size_t i = 0; i < count / 2; ++i) before[last - 1 - i] = attrs.pad[2 * i];
  }
  Box box{x.shape, x.strides, contiguous_strides(result.shape)};
  for (size_t axis = 0; axis < rank; ++axis) {  // negative padding cuts
    const int64_t first = std::max<int64_t>(0, -before[axis]);
    const int64_t last = std::min(x.shape[axis], result.shape[axis] - before[axis]);
    box.shape[axis] = std::max<int64_t>(0, last - first);
    box.from_offset += first * x.strides[axis];
    box.to_offset += (first + before[axis]) * box.to[axis];
  }
  std::array<std::byte, 16> border{};
  cpu::convert_fn(DType::kF64, result.dtype)(&attrs.value, 1, border.data(), 1);
  BoxCopy copy(request, std::move(box), item_size(result.dtype));
  if (!copy.fits()) return nullptr;
  const Fill fill(request, result, border.data());
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        fill.launch(context.stream, results[0]);
        copy.launch(context.stream, operands[0], results[0]);
      },
      0, "cuda:copy");
}

std::unique_ptr<Kernel> prepare_full(const KernelRequest& request) {
  return fill_kernel(request, FullAttrs(request.attrs).fill_value);
}

std::unique_ptr<Kernel> prepare_dim_value(const KernelRequest& request) {
  return fill_kernel(request, DimValueAttrs(request.attrs).dim.value());
}

}  // namespace paddle::cuda
