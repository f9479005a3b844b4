#pragma once
// A convolution as oneDNN describes it. Only for .cc files of kernels/: it exposes oneDNN types.

#include <algorithm>

#include "kernels/conv/conv_shape.h"
#include "kernels/onednn/program.h"

namespace paddle::onednn {

/// Memory descriptors of a convolution's operands as they lie in memory, and its window.
struct ConvDescriptors {
  using Desc = dnnl::memory::desc;
  using Type = dnnl::memory::data_type;

  ConvDescriptors(const cpu::ConvShape& s, Type input_type, Type weight_type, Type output_type) {
    using Tag = dnnl::memory::format_tag;
    const bool volume = s.is_3d(), grouped = s.groups != 1;
    const auto dims = [&](Dims first, int64_t planes, int64_t rows, int64_t columns) {
      if (volume) first.push_back(planes);
      first.insert(first.end(), {rows, columns});
      return first;
    };
    const Tag images = volume ? (s.channels_last ? Tag::ndhwc : Tag::ncdhw)
                              : (s.channels_last ? Tag::nhwc : Tag::nchw);
    input = Desc(dims({s.batch, s.in_channels}, s.depth, s.height, s.width), input_type, images);
    output = Desc(dims({s.batch, s.out_channels}, s.out_depth, s.out_height, s.out_width),
                  output_type, images);
    const Dims channels = grouped ? Dims{s.groups, s.group_out_channels(), s.group_in_channels()}
                                  : Dims{s.out_channels, s.in_channels};
    const Tag windows =
        volume ? (grouped ? Tag::goidhw : Tag::oidhw) : (grouped ? Tag::goihw : Tag::oihw);
    weight =
        Desc(dims(channels, s.kernel_depth, s.kernel_height, s.kernel_width), weight_type, windows);
    strides = dims({}, s.stride_depth, s.stride_height, s.stride_width);
    dilations = dims({}, s.dilation_depth - 1, s.dilation_height - 1, s.dilation_width - 1);
    padding_before = dims({}, s.front, s.top, s.left);
    padding_after = dims({}, s.back, s.bottom, s.right);
    const int64_t last_start = s.width - 1 + s.left - (s.kernel_width - 1) * s.dilation_width;
    const int64_t unpadded = last_start < 0 ? 0 : last_start / s.stride_width + 1;
    right_padded_outputs = s.out_width - std::min(unpadded, s.out_width);
  }

  /// oneDNN's first choice among the implementations that compute this convolution correctly; empty
  /// if there is none.
  dnnl::convolution_forward::primitive_desc select_implementation(
      const dnnl::convolution_forward::desc& desc, const dnnl::primitive_attr& attributes) const;

  /// The same tensor in a layout that oneDNN chooses.
  static Desc any(const Desc& desc) {
    return Desc(desc.dims(), desc.data_type(), dnnl::memory::format_tag::any);
  }

  Desc input, output, weight;
  Dims strides, dilations, padding_before, padding_after;
  int64_t right_padded_outputs;  ///< outputs of a row whose window ends in right padding
};

/// `count` float32 tensors of this layout, stacked along a new first axis.
dnnl::memory::desc stack_descs(const dnnl::memory::desc& one, int64_t count);

}  // namespace paddle::onednn
