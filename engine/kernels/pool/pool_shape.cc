#include "kernels/pool/pool_shape.h"

#include "ops/nn/window.h"

namespace paddle::cpu {

PoolShape::PoolShape(const Dims& input, const Dims& output, bool last) : channels_last(last) {
  const size_t channel = last ? 3 : 1, first = last ? 1 : 2;
  batch = input[0];
  channels = input[channel];
  height = input[first];
  width = input[first + 1];
  out_height = output[first];
  out_width = output[first + 1];
}

void PoolShape::windows(const AttrValue& kernel_size, const AttrValue& stride,
                        const AttrValue& padding, std::string_view op) {
  const std::string what(op);
  const auto kernel = window_sizes(kernel_size, 2, what);
  const auto step = stride.is_none() ? kernel : window_sizes(stride, 2, what);
  const auto pads = window_padding(padding, to_shape(Dims{height, width}), kernel, step, {1, 1},
                                   channels_last, what);
  kernel_height = kernel[0];
  kernel_width = kernel[1];
  stride_height = step[0];
  stride_width = step[1];
  top = pads[0];
  bottom = pads[1];
  left = pads[2];
  right = pads[3];
}

PoolWindow Average::at(const PoolShape& s, int64_t row, int64_t column) const {
  const int64_t h0 = row * s.stride_height - s.top, w0 = column * s.stride_width - s.left;
  // Windows that ceil_mode adds count only elements of the padded input.
  const int64_t h1 = std::min(h0 + s.kernel_height, s.height + s.bottom);
  const int64_t w1 = std::min(w0 + s.kernel_width, s.width + s.right);
  PoolWindow w{std::max<int64_t>(0, h0), std::min(s.height, h1), std::max<int64_t>(0, w0),
               std::min(s.width, w1), divisor};
  if (divisor == 0) {
    const int64_t inside =
        std::max<int64_t>(0, w.last_h - w.first_h) * std::max<int64_t>(0, w.last_w - w.first_w);
    w.divisor = static_cast<double>(exclusive ? inside : (h1 - h0) * (w1 - w0));
  }
  return w;
}

}  // namespace paddle::cpu
