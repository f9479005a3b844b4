#pragma once
// A convolution of images or volumes as oneDNN describes it. For the .cc files of this folder only.

#include <algorithm>

#include "kernels/conv/conv_shape.h"
#include "kernels/onednn/program.h"

namespace paddle::onednn {

/// The layouts of a convolution's operands and its window: weights as they are given, images and
/// volumes with channels last or first.
struct ConvGeometry {
  using Desc = dnnl::memory::desc;
  using Type = dnnl::memory::data_type;

  ConvGeometry(const cpu::ConvShape& s, Type input_type, Type weight_type, Type output_type) {
    using Tag = dnnl::memory::format_tag;
    const bool volume = s.has_planes(), grouped = s.groups != 1;
    const auto dims = [&](Dims first, int64_t planes, int64_t rows, int64_t columns) {
      if (volume) first.push_back(planes);
      first.insert(first.end(), {rows, columns});
      return first;
    };
    const Tag images = volume ? (s.channels_last ? Tag::ndhwc : Tag::ncdhw)
                              : (s.channels_last ? Tag::nhwc : Tag::nchw);
    input = Desc(dims({s.batch, s.in_channels}, s.planes, s.height, s.width), input_type, images);
    output = Desc(dims({s.batch, s.out_channels}, s.out_planes, s.out_height, s.out_width),
                  output_type, images);
    const Dims channels = grouped ? Dims{s.groups, s.group_outputs(), s.group_inputs()}
                                  : Dims{s.out_channels, s.in_channels};
    const Tag windows =
        volume ? (grouped ? Tag::goidhw : Tag::oidhw) : (grouped ? Tag::goihw : Tag::oihw);
    weight = Desc(dims(channels, s.kernel_planes, s.kernel_height, s.kernel_width), weight_type,
                  windows);
    strides = dims({}, s.stride_planes, s.stride_height, s.stride_width);
    dilations = dims({}, s.dilation_planes - 1, s.dilation_height - 1, s.dilation_width - 1);
    before = dims({}, s.front, s.top, s.left);
    after = dims({}, s.back, s.bottom, s.right);
    const int64_t room = s.width - 1 + s.left - (s.kernel_width - 1) * s.dilation_width;
    const int64_t whole = room < 0 ? 0 : room / s.stride_width + 1;
    beyond = s.out_width - std::min(whole, s.out_width);
  }

  /// oneDNN's first choice for a convolution of this geometry among the codes that compute it
  /// right; empty if there is none.
  dnnl::convolution_forward::primitive_desc describe(const dnnl::convolution_forward::desc& wanted,
                                                     const dnnl::primitive_attr& attributes) const;

  /// The same values in a layout that oneDNN chooses.
  static Desc any(const Desc& desc) {
    return Desc(desc.dims(), desc.data_type(), dnnl::memory::format_tag::any);
  }

  Desc input, output, weight;
  Dims strides, dilations, before, after;
  int64_t beyond;  ///< results of a row whose window ends beyond the right edge
};

/// So many values in float32 of this layout, one behind the other along a first axis.
dnnl::memory::desc stacked(const dnnl::memory::desc& one, int64_t count);

}  // namespace paddle::onednn
