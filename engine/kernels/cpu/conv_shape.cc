#include "kernels/cpu/conv_shape.h"

#include "ops/window.h"

namespace paddle::cpu {

ConvShape ConvShape::of(const Op& op, const Attrs& attrs, const Dims& input, const Dims& weight,
                        const Dims& output) {
  const auto attr = [&](const char* name) -> const AttrValue& {
    return attrs[static_cast<size_t>(op.attr_index(name))];
  };
  const std::string what(op.name());
  ConvShape s;
  s.channels_last = attr("data_format").as_string() == "NHWC";
  const size_t channel = s.channels_last ? 3 : 1, first = s.channels_last ? 1 : 2;
  s.batch = input[0];
  s.in_channels = input[channel];
  s.height = input[first];
  s.width = input[first + 1];
  s.out_channels = output[channel];
  s.out_height = output[first];
  s.out_width = output[first + 1];
  s.kernel_height = weight[2];
  s.kernel_width = weight[3];
  s.groups = attr("groups").as_int();
  const std::vector<int64_t> kernel = {s.kernel_height, s.kernel_width};
  const auto stride = window_numbers(attr("stride"), 2, what);
  const auto dilation = window_numbers(attr("dilation"), 2, what);
  const auto padding = window_padding(attr("padding"), to_shape(Dims{s.height, s.width}), kernel,
                                      stride, dilation, s.channels_last, what);
  s.stride_height = stride[0];
  s.stride_width = stride[1];
  s.dilation_height = dilation[0];
  s.dilation_width = dilation[1];
  s.top = padding[0];
  s.bottom = padding[1];
  s.left = padding[2];
  s.right = padding[3];
  return s;
}

}  // namespace paddle::cpu
