// Rules of roi.yaml.

#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/detection.h"
#include "ops/generated/detection_rules.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"
#include "ops/nn/window.h"

namespace paddle::rules {
namespace {

/// Operands of a region pooling whose regions are counted per image.
struct Regions {
  Tensor x, boxes, images;
  Axes size;

  Regions(CallContext& c, const AttrValue& output_size) {
    const std::string_view op = c.op().name();
    x = c.operand(0);
    boxes = c.operand(1);
    const Tensor& count = c.operand(2);
    if (x.ndim() != 4) reject(op, "x must be [batch, channels, height, width], not ", x.type());
    if (boxes.ndim() != 2 || boxes.dim(1).equals(4) == false)
      reject(op, "boxes must be [regions, 4], not ", boxes.type());
    if (count.ndim() != 1 || count.dim(0).equals(x.dim(0)) == false)
      reject(op, "boxes_num must have a number for each image of x ", x.type(), ", not ",
             count.type());
    size = window_sizes(output_size, 2, str(op, ": output_size"));
    if (x.dtype() == DType::kF16 || x.dtype() == DType::kBF16) x = ops::cast(x, DType::kF32);
    boxes = ops::cast(boxes, x.dtype());
    const Tensor ends = ops::cumsum(ops::cast(count, DType::kI64), int64_t{0});
    // An index beyond the last image is rejected by the kernel.
    images = ops::searchsorted(ends, range_of(boxes.dim(0), DType::kI64), false, true);
  }
};

}  // namespace

/// x, boxes [r, 4] and images [r] of the operations that the public ones are made of.
void infer_roi_pooling(InferContext& c) {
  const auto size = c.attrs()[static_cast<size_t>(c.op().attr_index("output_size"))].as_ints();
  c.check(c.rank(0) == 4, "x must be [batch, channels, height, width], not ", c.type(0));
  c.check(c.rank(1) == 2 && c.shape(1)[1].equals(4) != false && c.dtype(1) == c.dtype(0),
          "boxes must be ", text(c.dtype(0)), " [regions, 4], not ", c.type(1));
  c.check(c.rank(2) == 1, "images must be [regions], not ", c.type(2));
  c.require_equal(c.shape(1)[0], c.shape(2)[0], "boxes and images differ in length");
  c.check(size.size() == 2 && size[0] > 0 && size[1] > 0 && size[0] < 1 << 16 && size[1] < 1 << 16,
          "output_size must be two sizes from 1 to 65535");
  Dim channels = c.shape(0)[1];
  if (c.op().name() == "psroi_pool_of") {
    const int64_t bins = size[0] * size[1];
    c.check(!channels.is_constant() || channels.value() % bins == 0, "the ", channels,
            " channels of x are not a multiple of ", bins, " bins");
    channels = floor_divide(channels, bins);
  }
  c.result(c.dtype(0), {c.shape(1)[0], channels, Dim(size[0]), Dim(size[1])});
  if (c.op().name() == "roi_pool_of")
    c.result(DType::kI64, {c.shape(1)[0], channels, Dim(size[0]), Dim(size[1])});
}

void infer_roi_pooling_grad(InferContext& c) {
  const Shape shape = c.attrs()[static_cast<size_t>(c.op().attr_index("input_shape"))].as_dims();
  c.check(c.rank(0) == 4 && shape.size() == 4,
          "grad must have 4 dimensions, like input_shape, not ", c.type(0));
  check_shape(c, shape);
  c.check(c.rank(1) == 2 && c.shape(1)[1].equals(4) != false && c.dtype(1) == c.dtype(0),
          "boxes must be ", text(c.dtype(0)), " [regions, 4], not ", c.type(1));
  c.check(c.rank(2) == 1, "images must be [regions], not ", c.type(2));
  c.require_equal(c.shape(0)[0], c.shape(1)[0], "grad and boxes differ in length");
  c.require_equal(c.shape(1)[0], c.shape(2)[0], "boxes and images differ in length");
  Dim channels = c.shape(0)[1];
  if (c.op().name() == "psroi_pool_grad") channels = channels * c.shape(0)[2] * c.shape(0)[3];
  c.require_equal(channels, shape[1], "grad and input_shape differ in channels");
  c.result(c.dtype(0), shape);
}

Tensors decompose_roi_align(CallContext& c) {
  const auto a = c.attrs_as<RoiAlignAttrs>();
  const Regions r(c, a.output_size);
  return {ops::cast(ops::roi_align_of(r.x, r.boxes, r.images, r.size, a.spatial_scale,
                                      a.sampling_ratio, a.aligned),
                    c.operand(0).dtype())};
}

Tensors vjp_roi_align_of(VjpContext& c) {
  const auto a = c.attrs_as<RoiAlignOfAttrs>();
  if (a.mode != "avg") reject("roi_align_of", "mode max has no gradient");
  Tensors out = c.gradients();
  if (c.needs(0))
    out[0] = ops::roi_align_grad(c.cotangent(), c.operand(1), c.operand(2), c.operand(0).shape(),
                                 a.spatial_scale, a.sampling_ratio, a.aligned);
  return out;
}

Tensors vjp_roi_align_grad(VjpContext& c) {
  const auto a = c.attrs_as<RoiAlignGradAttrs>();
  Tensors out = c.gradients();
  const Tensor& g = c.operand(0);
  if (c.needs(0))
    out[0] = ops::roi_align_of(c.cotangent(), c.operand(1), c.operand(2),
                               {g.dim(2).value(), g.dim(3).value()}, a.spatial_scale,
                               a.sampling_ratio, a.aligned);
  return out;
}

Tensors decompose_roi_pool(CallContext& c) {
  const auto a = c.attrs_as<RoiPoolAttrs>();
  const Regions r(c, a.output_size);
  return {ops::cast(ops::roi_pool_of(r.x, r.boxes, r.images, r.size, a.spatial_scale),
                    c.operand(0).dtype())};
}

Tensors vjp_roi_pool_of(VjpContext& c) {
  Tensors out = c.gradients();
  if (!c.needs(0)) return out;
  // Places are indices into the flattened x, -1 for empty bins.
  const Tensor place = flat(c.result(1));
  const Tensor kept = mask_of(ops::greater_equal(place, integer(0)), c.cotangent());
  const Shape& shape = c.operand(0).shape();
  const Tensor none =
      full_of({element_count(std::span<const Dim>(shape))}, 0, c.cotangent().dtype());
  out[0] = ops::reshape(
      ops::index_add(none, ops::maximum(place, integer(0)), 0, flat(c.cotangent()) * kept), shape);
  return out;
}

Tensors decompose_psroi_pool(CallContext& c) {
  const auto a = c.attrs_as<PsroiPoolAttrs>();
  const Regions r(c, a.output_size);
  return {ops::cast(ops::psroi_pool_of(r.x, r.boxes, r.images, r.size, a.spatial_scale),
                    c.operand(0).dtype())};
}

Tensors vjp_psroi_pool_of(VjpContext& c) {
  const auto a = c.attrs_as<PsroiPoolOfAttrs>();
  Tensors out = c.gradients();
  if (c.needs(0))
    out[0] = ops::psroi_pool_grad(c.cotangent(), c.operand(1), c.operand(2), c.operand(0).shape(),
                                  a.spatial_scale);
  return out;
}

Tensors vjp_psroi_pool_grad(VjpContext& c) {
  const auto a = c.attrs_as<PsroiPoolGradAttrs>();
  Tensors out = c.gradients();
  const Tensor& g = c.operand(0);
  if (c.needs(0))
    out[0] = ops::psroi_pool_of(c.cotangent(), c.operand(1), c.operand(2),
                                {g.dim(2).value(), g.dim(3).value()}, a.spatial_scale);
  return out;
}

}  // namespace paddle::rules
