// Rules of images.yaml.

#include "ops/core/call.h"
#include "ops/core/compose.h"
#include "ops/generated/legacy.h"
#include "ops/generated/legacy_rules.h"
#include "ops/generated/nn.h"
#include "ops/generated/shape.h"
#include "ops/generated/vision.h"
#include "ops/nn/channels.h"
#include "ops/vision/resample.h"

namespace paddle::rules {
namespace {

void check_images(CallContext& c, int64_t rank) {
  check_rank(std::string(c.op().name()).c_str(), c.operand(0), rank);
}

/// pool2d for rank 4, pool3d for rank 5.
template <class PoolAttrs>
Tensor pool_images(CallContext& c, int64_t rank) {
  const auto a = c.attrs_as<PoolAttrs>();
  check_images(c, rank);
  const Tensor& x = c.operand(0);
  const bool mean = a.pooling_type == "avg", plane = rank == 4;
  if (a.global_pooling || a.adaptive) {
    const AttrValue size = a.global_pooling ? AttrValue(1) : a.kernel_size;
    const bool last = channels_last(a.data_format);
    const Tensor in = last ? first_channels(x) : x;
    const Tensor out =
        plane ? (mean ? ops::adaptive_avg_pool2d(in, size) : ops::adaptive_max_pool2d(in, size)[0])
              : (mean ? ops::adaptive_avg_pool3d(in, size) : ops::adaptive_max_pool3d(in, size)[0]);
    return last ? last_channels(out) : out;
  }
  const AttrValue step(a.strides);
  const AttrValue border =
      a.padding_algorithm == "EXPLICIT" ? a.paddings : AttrValue(a.padding_algorithm);
  if (mean)
    return plane ? ops::avg_pool2d(x, a.kernel_size, step, border, a.ceil_mode, a.exclusive, {},
                                   a.data_format)
                 : ops::avg_pool3d(x, a.kernel_size, step, border, a.ceil_mode, a.exclusive, {},
                                   a.data_format);
  return plane
             ? ops::max_pool2d(x, a.kernel_size, step, border, false, a.ceil_mode, a.data_format)[0]
             : ops::max_pool3d(x, a.kernel_size, step, border, false, a.ceil_mode,
                               a.data_format)[0];
}

/// max_pool2d_with_index for rank 4, max_pool3d_with_index for rank 5.
template <class PoolAttrs>
Tensors pool_with_index(CallContext& c, int64_t rank) {
  const auto a = c.attrs_as<PoolAttrs>();
  check_images(c, rank);
  const Tensor& x = c.operand(0);
  const bool plane = rank == 4;
  if (a.global_pooling || a.adaptive) {
    const AttrValue size = a.global_pooling ? AttrValue(1) : a.kernel_size;
    return plane ? ops::adaptive_max_pool2d(x, size, true)
                 : ops::adaptive_max_pool3d(x, size, true);
  }
  const AttrValue step(a.strides), border(a.paddings);
  return plane ? ops::max_pool2d(x, a.kernel_size, step, border, true, a.ceil_mode)
               : ops::max_pool3d(x, a.kernel_size, step, border, true, a.ceil_mode);
}

}  // namespace

Tensors decompose_pool2d(CallContext& c) { return {pool_images<Pool2dAttrs>(c, 4)}; }
Tensors decompose_pool3d(CallContext& c) { return {pool_images<Pool3dAttrs>(c, 5)}; }

Tensors decompose_max_pool2d_with_index(CallContext& c) {
  return pool_with_index<MaxPool2dWithIndexAttrs>(c, 4);
}

Tensors decompose_max_pool3d_with_index(CallContext& c) {
  return pool_with_index<MaxPool3dWithIndexAttrs>(c, 5);
}

/// The five interpolations, whose attributes are the same.
Tensors decompose_interp(CallContext& c) {
  const auto a = c.attrs_as<BilinearInterpV2Attrs>();
  const std::string_view op = c.op().name();
  const Tensor& x = c.operand(0);
  const int64_t axes = x.ndim() - 2;
  if (axes < 1 || axes > 3) reject(op, "x must have 3 to 5 dimensions, not ", x.type());
  const auto is_given = [](const AttrValue& v) {
    return !v.is_none() && !(v.is_list() && v.as_list().empty());
  };
  AttrValue size = is_given(a.out_size) ? a.out_size : AttrValue(), scale;
  if (size.is_none() && is_given(a.scale)) scale = a.scale;
  if (size.is_none() && scale.is_none()) {
    const std::vector<int64_t> all = {a.out_d, a.out_h, a.out_w};
    const std::vector<int64_t> own(all.end() - axes, all.end());
    for (const int64_t each : own)
      if (each < 1)
        reject(op, "out_size, scale or the ", axes, " last of out_d, out_h, out_w must be given");
    size = AttrValue(own);
  }
  const std::string format = axes == 1   ? (channels_last(a.data_format) ? "NWC" : "NCW")
                             : axes == 2 ? (channels_last(a.data_format) ? "NHWC" : "NCHW")
                                         : (channels_last(a.data_format) ? "NDHWC" : "NCDHW");
  const Op& interpolate = get_op("interpolate");
  Attrs attrs = default_attrs(interpolate);
  const auto set = [&](const char* name, AttrValue value) {
    const int index = interpolate.attr_index(name);
    const AttrDef& def = interpolate.attrs()[static_cast<size_t>(index)];
    attrs[static_cast<size_t>(index)] = convert_attr(def, value, str(op, ": "));
  };
  set("size", size);
  set("scale_factor", scale);
  set("mode", a.interp_method);
  set("align_corners", a.align_corners);
  set("align_mode", a.align_mode);
  set("data_format", format);
  return {resample(x, InterpolateAttrs(attrs))};
}

Tensors decompose_pad2d(CallContext& c) {
  const auto a = c.attrs_as<Pad2dAttrs>();
  check_images(c, 4);
  const auto& p = a.paddings;
  if (p.size() != 4) reject("pad2d", "paddings must be [top, bottom, left, right]");
  return {ops::pad(c.operand(0), Axes{p[2], p[3], p[0], p[1]},
                   a.mode == "edge" ? "replicate" : a.mode, a.pad_value, a.data_format)};
}

}  // namespace paddle::rules
