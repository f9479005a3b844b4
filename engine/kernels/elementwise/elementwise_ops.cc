// Kernels of elementwise operations and copies: the loop with the operation's name, with its
// numeric attributes as parameters.

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "base/parallel.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/storage_cast.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "tensor/strided_copy.h"

namespace paddle::cpu {
namespace {

/// Bools, integers and floats among the attributes, in schema order.
std::vector<double> numeric_attributes(const Attrs& attrs) {
  std::vector<double> values;
  for (const AttrValue& value : attrs.values) {
    if (value.is_bool()) values.push_back(value.as_bool() ? 1 : 0);
    if (value.is_int() || value.is_float()) values.push_back(value.as_double());
  }
  return values;
}

/// Interleaves the planes of a few channels into pixels.
template <class T>
void interleave_channels(const T* source, int64_t plane_stride, int64_t channels, int64_t n,
                         T* out) {
  if (channels == 3) {  // RGB
    for (int64_t i = 0; i < n; ++i)
      for (int64_t c = 0; c < 3; ++c) out[i * 3 + c] = source[c * plane_stride + i];
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < channels; ++c) out[i * channels + c] = source[c * plane_stride + i];
}

/// Copies NCHW images with few channels to NHWC; null for other layouts.
template <class T>
std::unique_ptr<Kernel> interleave_kernel(const Layout& source) {
  constexpr int64_t kMaxChannels = 8;
  const Dims &shape = source.shape, &strides = source.strides;
  if (shape.size() != 4 || shape[3] < 2 || shape[3] > kMaxChannels || strides[2] != 1 ||
      shape[2] < 16)
    return nullptr;
  const int64_t rows = shape[1], columns = shape[2], channels = shape[3];
  return make_kernel([=, base_offset = source.offset](const RunContext&, void* const* operands,
                                                      void* const* results) {
    const T* const from = static_cast<const T*>(operands[0]) + base_offset;
    parallel_for(shape[0] * rows, std::max<int64_t>(1, 32768 / (columns * channels)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r)
                     interleave_channels(from + r / rows * strides[0] + r % rows * strides[1],
                                         strides[3], channels, columns,
                                         static_cast<T*>(results[0]) + r * columns * channels);
                 });
  });
}

/// Copies `source` (a layout of the first operand's memory with as many elements as the result) to
/// contiguous form, converting the type.
std::unique_ptr<Kernel> copy_kernel(const KernelRequest& request, const Layout& source) {
  const Layout& result = request.results[0];
  if (source.dtype == result.dtype) {
    std::unique_ptr<Kernel> images;
    if (item_size(source.dtype) == 1) images = interleave_kernel<uint8_t>(source);
    if (item_size(source.dtype) == 4) images = interleave_kernel<uint32_t>(source);
    if (images) return images;
    return make_kernel([copy = StridedCopy(source.shape, source.strides, item_size(source.dtype)),
                        base_offset = source.offset * item_size(source.dtype)](
                           const RunContext&, void* const* operands, void* const* results) {
      const std::byte* const from = static_cast<const std::byte*>(operands[0]) + base_offset;
      if (from != results[0]) copy.run(from, results[0]);
    });
  }
  StridedReader reader(source, source.shape, result.dtype);
  return make_kernel([reader = std::move(reader), size = result.size(),
                      bytes = item_size(result.dtype),
                      base_offset = source.offset * item_size(source.dtype)](
                         const RunContext&, void* const* operands, void* const* results) {
    parallel_for(size, 32768, [&](int64_t begin, int64_t end) {
      std::byte* const out = static_cast<std::byte*>(results[0]) + begin * bytes;
      const void* const base = static_cast<const std::byte*>(operands[0]) + base_offset;
      const void* const in = reader.read(base, begin, end - begin, out);
      if (in != out) std::memcpy(out, in, static_cast<size_t>((end - begin) * bytes));
    });
  });
}

struct TruncatedQuotient {
  template <class T>
  T operator()(T a, T b) const {
    return std::trunc(a / b);
  }
};

}  // namespace

std::unique_ptr<Kernel> prepare_cast(const KernelRequest& request) {
  Layout source = request.operands[0];
  source.offset = 0;
  const DType from = source.dtype, to = request.results[0].dtype;
  const auto has_loops = [](DType d) { return info(d).has_kernels || is_complex(d); };
  const bool stored_only = !has_loops(from) || !has_loops(to);
  if (stored_only && (from != to || info(from).bits < 8)) return prepare_storage_cast(request);
  return copy_kernel(request, source);
}

std::unique_ptr<Kernel> prepare_unary(const KernelRequest& request) {
  const std::string_view name = request.op.name();
  if (name == "assign" || name == "detach") return prepare_cast(request);
  if (name == "gelu")
    return map(request, GeluAttrs(request.attrs).approximate ? "gelu_tanh" : "gelu", {}, 16);
  if (name == "round" && RoundAttrs(request.attrs).decimals != 0 &&
      is_float(request.operands[0].dtype))
    return map(request, "round_digits", numeric_attributes(request.attrs), 8);
  if (name == "clip") {
    const ClipAttrs attrs(request.attrs);
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return map(request, name,
               {attrs.min.is_none() ? -kInfinity : attrs.min.as_double(),
                attrs.max.is_none() ? kInfinity : attrs.max.as_double()});
  }
  if (name == "scale" && is_complex(request.operands[0].dtype)) {
    const ScaleAttrs attrs(request.attrs);
    const std::complex<double> scale = attrs.scale.as_complex();
    return map(request, name,
               {scale.real(), scale.imag(), attrs.bias, attrs.bias_after_scale ? 1.0 : 0.0});
  }
  const bool transcendental = request.op.has(kFloatInputs);
  return map(request, name, numeric_attributes(request.attrs), transcendental ? 8 : 1);
}

std::unique_ptr<Kernel> prepare_binary(const KernelRequest& request) {
  return map(request, request.op.name(), numeric_attributes(request.attrs));
}

std::unique_ptr<Kernel> prepare_divide_rounded(const KernelRequest& request) {
  if (DivideRoundedAttrs(request.attrs).rounding_mode == "floor")
    return map(request, "floor_divide");
  const DType type = compute_type(request.operands[0].dtype);
  if (!is_float(type)) return map(request, "divide");
  const Loop loop = type == DType::kF64 ? &scalar_loop<double, double, 2, TruncatedQuotient>
                                        : &scalar_loop<float, float, 2, TruncatedQuotient>;
  return elementwise(request, loop, {type, type}, type, {}, 1, "truncated_quotient");
}

std::unique_ptr<Kernel> prepare_bitwise(const KernelRequest& request) {
  return map(request, request.op.name());
}

std::unique_ptr<Kernel> prepare_shift(const KernelRequest& request) {
  // A logical right shift is that of the unsigned type.
  const bool arithmetic = BitwiseRightShiftAttrs(request.attrs).is_arithmetic;
  const DType type = request.operands[0].dtype;
  DType compute = type;
  if (!arithmetic) {
    if (type == DType::kI8) compute = DType::kU8;
    if (type == DType::kI16) compute = DType::kU16;
    if (type == DType::kI32) compute = DType::kU32;
    if (type == DType::kI64) compute = DType::kU64;
  }
  const Loop loop = integer_loop(request.op.name(), compute);
  const bool is_left = request.op.name() == "bitwise_left_shift";
  const char* const name = is_left           ? "bitwise_left_shift"
                           : compute == type ? "bitwise_right_shift"
                                             : "logical_right_shift";
  return loop ? elementwise(request, loop, {type, type}, type, {}, 1, name) : nullptr;
}

std::unique_ptr<Kernel> prepare_compare(const KernelRequest& request) {
  return predicate(request, request.op.name());
}

std::unique_ptr<Kernel> prepare_predicate(const KernelRequest& request) {
  return predicate(request, request.op.name());
}

// For operations that are views: copies the view, or, where there is none (a reshape of a
// transposed tensor), the elements in order.
std::unique_ptr<Kernel> prepare_copy(const KernelRequest& request) {
  Layout source = request.operands[0];
  source.offset = 0;  // pointers include the offset
  if (request.op.def->view) {
    const Layout view = request.op.def->view(source, request.attrs, request.results[0].shape);
    if (view.present) return copy_kernel(request, view);
  }
  return copy_kernel(request, source);
}

std::unique_ptr<Kernel> prepare_view_dtype(const KernelRequest& request) {
  const auto bytes = static_cast<size_t>(request.results[0].size()) *
                     static_cast<size_t>(item_size(request.results[0].dtype));
  return make_kernel([bytes](const RunContext&, void* const* operands, void* const* results) {
    if (bytes) std::memcpy(results[0], operands[0], bytes);
  });
}

std::unique_ptr<Kernel> prepare_where(const KernelRequest& request) {
  const DType type = request.results[0].dtype;
  const Loop loop = select_loop(item_size(type));
  if (!loop) return nullptr;
  return elementwise(request, loop, {DType::kBool, type, type}, type, {}, 1, "where");
}

}  // namespace paddle::cpu
