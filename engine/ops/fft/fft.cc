// Rules of fft.yaml.

#include <algorithm>

#include "ops/core/compose.h"
#include "ops/generated/complex.h"
#include "ops/generated/creation.h"
#include "ops/generated/fft.h"
#include "ops/generated/fft_rules.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"
#include "tensor/complex.h"

namespace paddle::rules {
namespace {

/// Axes counted from 0, in their order; none may occur twice or be empty.
Axes checked_axes(InferContext& c, const Axes& axes) {
  c.check(!axes.empty(), "axes is empty");
  Axes out;
  for (const int64_t a : axes) {
    c.check(a >= -c.rank(0) && a < c.rank(0), "axis ", a, " is out of range for ", c.type(0));
    out.push_back(a < 0 ? a + c.rank(0) : a);
    c.check(std::count(out.begin(), out.end(), out.back()) == 1, "axis ", a, " is given twice");
    c.check(c.shape(0)[static_cast<size_t>(out.back())].less(1) != true, "axis ", a, " of ",
            c.type(0), " is empty");
  }
  return out;
}

/// The normalization with which the opposite direction has the same factor.
std::string opposite(const std::string& normalization) {
  if (normalization == "ortho") return normalization;
  return normalization == "forward" ? "backward" : "forward";
}

Dim half_of(const Dim& n) { return floor_divide(n, 2) + 1; }

}  // namespace

void infer_fft_c2c(InferContext& c) {
  checked_axes(c, c.attrs_as<FftC2cAttrs>().axes);
  c.result(c.dtype(0), c.shape(0));
}

Tensors vjp_fft_c2c(VjpContext& c) {
  const auto a = c.attrs_as<FftC2cAttrs>();
  return {ops::fft_c2c(c.cotangent(), a.axes, opposite(a.normalization), !a.forward)};
}

void infer_fft_r2c(InferContext& c) {
  const auto a = c.attrs_as<FftR2cAttrs>();
  Shape shape = c.shape(0);
  Dim& last = shape[static_cast<size_t>(checked_axes(c, a.axes).back())];
  if (a.onesided) last = half_of(last);
  c.result(complex_type(c.dtype(0)), shape);
}

Tensors vjp_fft_r2c(VjpContext& c) {
  const auto a = c.attrs_as<FftR2cAttrs>();
  const Tensor& x = c.plain_operand(0);
  Tensor g = c.cotangent();
  if (a.onesided) {  // what is not given has no gradient
    const int64_t axis = a.axes.back() < 0 ? a.axes.back() + x.ndim() : a.axes.back();
    Shape rest = g.shape();
    rest[static_cast<size_t>(axis)] = x.dim(axis) - g.dim(axis);
    g = ops::concat({g, full_of(rest, 0, g.dtype())}, axis);
  }
  return {ops::real(ops::fft_c2c(g, a.axes, opposite(a.normalization), !a.forward))};
}

void infer_fft_c2r(InferContext& c) {
  const auto a = c.attrs_as<FftC2rAttrs>();
  Shape shape = c.shape(0);
  Dim& last = shape[static_cast<size_t>(checked_axes(c, a.axes).back())];
  const Dim size = a.last_dim_size.equals(0) == true ? (last - 1) * 2 : a.last_dim_size;
  c.check(size.less(1) != true, "the result would have ", size, " elements along the last axis");
  c.require_equal(last, half_of(size),
                  str("x ", c.type(0), " does not hold the first half of ", size, " numbers"));
  last = size;
  c.result(real_type(c.dtype(0)), shape);
}

Tensors vjp_fft_c2r(VjpContext& c) {
  const auto a = c.attrs_as<FftC2rAttrs>();
  const Tensor& g = c.cotangent();
  const int64_t axis = a.axes.back() < 0 ? a.axes.back() + g.ndim() : a.axes.back();
  // Each number but the first, and the middle one of an even size, stands for two.
  const Dim n = g.dim(axis), bins = half_of(n);
  const DType real = g.dtype();
  const Tensor weights = ops::concat({full_of({Dim(1)}, 1, real), full_of({n - bins}, 2, real),
                                      full_of({bins * 2 - 1 - n}, 1, real)},
                                     0);
  Shape along(g.shape().size(), Dim(1));
  along[static_cast<size_t>(axis)] = bins;
  return {ops::fft_r2c(g, a.axes, opposite(a.normalization), !a.forward) *
          ops::reshape(weights, along)};
}

namespace {

/// Real input of a complex transform, or complex input of a real one, in the right kind; integers
/// are float32.
Tensor as_complex_type(const Tensor& x) {
  return is_complex(x.dtype()) ? x : ops::cast(x, complex_type(x.dtype()));
}
Tensor as_real_type(std::string_view op, const Tensor& x) {
  if (is_complex(x.dtype())) reject(op, "x must be real, not ", x.type());
  return x.dtype() == DType::kF64 ? x : ops::cast(x, DType::kF32);
}

/// x cropped or padded with zeros at the end of an axis.
Tensor resized(std::string_view op, const Tensor& x, int64_t axis, const Dim& n) {
  if (n.less(1) == true) reject(op, "a transform of ", n, " numbers");
  if (n.is_constant() && n.value() > int64_t{1} << 30) reject(op, n, " numbers are too many");
  const Dim size = x.dim(axis);
  if (size.equals(n) == true) return x;
  if (n.less(size) == true) return slice_axis(x, axis, 0, n);
  if (size.less(n) != true)
    reject(op, "whether ", n, " is above the size of ", x.type(), " depends on the input");
  Shape rest = x.shape();
  rest[static_cast<size_t>(axis)] = n - size;
  return ops::concat({x, full_of(rest, 0, x.dtype())}, axis);
}

struct Sizes {
  Axes axes;               ///< counted from 0
  std::vector<Dim> sizes;  ///< of the transform along each
};

/// Sizes along the axes; those of `s`, or of x where s has none or -1.
Sizes sizes_of(std::string_view op, const Tensor& x, const std::optional<Shape>& s,
               const std::optional<Axes>& axes) {
  Sizes out;
  if (axes) {
    for (const int64_t a : *axes) out.axes.push_back(axis_of(op, a, x.ndim()));
  } else {
    const auto count = s ? static_cast<int64_t>(s->size()) : x.ndim();
    if (count > x.ndim()) reject(op, "s has more sizes than x ", x.type(), " has axes");
    for (int64_t i = x.ndim() - count; i < x.ndim(); ++i) out.axes.push_back(i);
  }
  if (out.axes.empty()) reject(op, "expected at least one axis to transform");
  if (s && s->size() != out.axes.size())
    reject(op, "s has ", s->size(), " sizes for ", out.axes.size(), " axes");
  for (size_t i = 0; i < out.axes.size(); ++i) {
    const bool given = s && (*s)[i].equals(-1) != true;
    out.sizes.push_back(given ? (*s)[i] : x.dim(out.axes[i]));
  }
  return out;
}

Tensor complex_transform(std::string_view op, const Tensor& given, const std::optional<Shape>& s,
                         const std::optional<Axes>& axes, const std::string& norm, bool forward) {
  const bool complex = is_complex(given.dtype());
  Tensor x = complex ? given : as_real_type(op, given);
  const Sizes sizes = sizes_of(op, x, s, axes);
  for (size_t i = 0; i < sizes.axes.size(); ++i) x = resized(op, x, sizes.axes[i], sizes.sizes[i]);
  return complex ? ops::fft_c2c(x, sizes.axes, norm, forward)
                 : ops::fft_r2c(x, sizes.axes, norm, forward, false);
}

Tensor real_transform(std::string_view op, const Tensor& given, const std::optional<Shape>& s,
                      const std::optional<Axes>& axes, const std::string& norm, bool forward) {
  Tensor x = as_real_type(op, given);
  const Sizes sizes = sizes_of(op, x, s, axes);
  for (size_t i = 0; i < sizes.axes.size(); ++i) x = resized(op, x, sizes.axes[i], sizes.sizes[i]);
  return ops::fft_r2c(x, sizes.axes, norm, forward, true);
}

Tensor hermitian_transform(std::string_view op, const Tensor& given, const std::optional<Shape>& s,
                           const std::optional<Axes>& axes, const std::string& norm, bool forward) {
  Tensor x = as_complex_type(given);
  Sizes sizes = sizes_of(op, x, s, axes);
  if (!s || s->back().equals(-1) == true) sizes.sizes.back() = (x.dim(sizes.axes.back()) - 1) * 2;
  const Dim last = sizes.sizes.back();
  if (last.less(1) == true) reject(op, "the result would have ", last, " numbers");
  if (last.is_constant() && last.value() > int64_t{1} << 30)
    reject(op, last, " numbers are too many");
  for (size_t i = 0; i < sizes.axes.size(); ++i) {
    const bool is_last = i + 1 == sizes.axes.size();
    x = resized(op, x, sizes.axes[i], is_last ? half_of(last) : sizes.sizes[i]);
  }
  return ops::fft_c2r(x, sizes.axes, norm, forward, last);
}

using Transform = Tensor (*)(std::string_view, const Tensor&, const std::optional<Shape>&,
                             const std::optional<Axes>&, const std::string&, bool);

/// The forms with one axis have a size and an axis, the others lists of them.
template <class Attrs>
Tensors one_axis(CallContext& c, Transform transform, bool forward) {
  const auto a = c.attrs_as<Attrs>();
  std::optional<Shape> s;
  if (a.n) s = Shape{*a.n};
  return {transform(c.op().name(), c.operand(0), s, Axes{a.axis}, a.norm, forward)};
}
template <class Attrs>
Tensors several_axes(CallContext& c, Transform transform, bool forward) {
  const auto a = c.attrs_as<Attrs>();
  return {transform(c.op().name(), c.operand(0), a.s, a.axes, a.norm, forward)};
}

}  // namespace

Tensors decompose_fft(CallContext& c) { return one_axis<FftAttrs>(c, complex_transform, true); }
Tensors decompose_fft2(CallContext& c) {
  return several_axes<Fft2Attrs>(c, complex_transform, true);
}
Tensors decompose_fftn(CallContext& c) {
  return several_axes<FftnAttrs>(c, complex_transform, true);
}
Tensors decompose_ifft(CallContext& c) { return one_axis<IfftAttrs>(c, complex_transform, false); }
Tensors decompose_ifft2(CallContext& c) {
  return several_axes<Ifft2Attrs>(c, complex_transform, false);
}
Tensors decompose_ifftn(CallContext& c) {
  return several_axes<IfftnAttrs>(c, complex_transform, false);
}
Tensors decompose_rfft(CallContext& c) { return one_axis<RfftAttrs>(c, real_transform, true); }
Tensors decompose_rfft2(CallContext& c) {
  return several_axes<Rfft2Attrs>(c, real_transform, true);
}
Tensors decompose_rfftn(CallContext& c) {
  return several_axes<RfftnAttrs>(c, real_transform, true);
}
Tensors decompose_ihfft(CallContext& c) { return one_axis<IhfftAttrs>(c, real_transform, false); }
Tensors decompose_ihfft2(CallContext& c) {
  return several_axes<Ihfft2Attrs>(c, real_transform, false);
}
Tensors decompose_ihfftn(CallContext& c) {
  return several_axes<IhfftnAttrs>(c, real_transform, false);
}
Tensors decompose_irfft(CallContext& c) {
  return one_axis<IrfftAttrs>(c, hermitian_transform, false);
}
Tensors decompose_irfft2(CallContext& c) {
  return several_axes<Irfft2Attrs>(c, hermitian_transform, false);
}
Tensors decompose_irfftn(CallContext& c) {
  return several_axes<IrfftnAttrs>(c, hermitian_transform, false);
}
Tensors decompose_hfft(CallContext& c) { return one_axis<HfftAttrs>(c, hermitian_transform, true); }
Tensors decompose_hfft2(CallContext& c) {
  return several_axes<Hfft2Attrs>(c, hermitian_transform, true);
}
Tensors decompose_hfftn(CallContext& c) {
  return several_axes<HfftnAttrs>(c, hermitian_transform, true);
}

namespace {

/// Multiples of 1 / (n d): 0 to `positive` - 1, then from `negative` up to -1.
Tensor frequencies(std::string_view op, int64_t n, double d, int64_t positive, int64_t negative,
                   std::optional<DType> dtype) {
  if (n < 1 || n > int64_t{1} << 31) reject(op, "n must be positive and at most 2^31, not ", n);
  if (d == 0) reject(op, "d is 0");
  const Tensor front = ops::arange(AttrValue(0), AttrValue(positive), AttrValue(1), DType::kF64);
  const Tensor whole =
      negative == 0
          ? front
          : ops::concat(
                {front, ops::arange(AttrValue(-negative), AttrValue(0), AttrValue(1), DType::kF64)},
                0);
  return ops::cast(whole / (static_cast<double>(n) * d), dtype.value_or(DType::kF32));
}

Tensors shifted(CallContext& c, const std::optional<Axes>& given, bool back) {
  const Tensor& x = c.operand(0);
  Axes axes;
  if (given)
    for (const int64_t a : *given) axes.push_back(axis_of(c.op().name(), a, x.ndim()));
  else
    for (int64_t i = 0; i < x.ndim(); ++i) axes.push_back(i);
  // The two halves change places.
  Tensor out = x;
  for (const int64_t axis : axes) {
    const Dim n = x.dim(axis), half = floor_divide(n, 2), cut = back ? half : n - half;
    out = ops::concat({slice_axis(out, axis, cut, n), slice_axis(out, axis, 0, cut)}, axis);
  }
  return {axes.empty() ? ops::assign(x) : out};
}

}  // namespace

Tensors decompose_fftfreq(CallContext& c) {
  const auto a = c.attrs_as<FftfreqAttrs>();
  return {frequencies("fftfreq", a.n, a.d, a.n - a.n / 2, a.n / 2, a.dtype)};
}

Tensors decompose_rfftfreq(CallContext& c) {
  const auto a = c.attrs_as<RfftfreqAttrs>();
  return {frequencies("rfftfreq", a.n, a.d, a.n / 2 + 1, 0, a.dtype)};
}

Tensors decompose_fftshift(CallContext& c) {
  return shifted(c, c.attrs_as<FftshiftAttrs>().axes, false);
}

Tensors decompose_ifftshift(CallContext& c) {
  return shifted(c, c.attrs_as<IfftshiftAttrs>().axes, true);
}

}  // namespace paddle::rules
