#pragma once
// Shapes of convolutions for kernel tests.

#include <cstdint>

#include "kernels/conv/conv_shape.h"

namespace paddle::testing_support {

/// No dilation.
struct Convolution {
  int64_t batch, in, out, height, width, kernel_height, kernel_width;
  int64_t stride_height = 1, stride_width = 1;
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  bool channels_last = false;
  int64_t groups = 1;

  cpu::ConvShape shape() const {
    cpu::ConvShape s{};
    s.batch = batch;
    s.in_channels = in;
    s.out_channels = out;
    s.groups = groups;
    s.dilation_height = s.dilation_width = 1;
    s.height = height;
    s.width = width;
    s.kernel_height = kernel_height;
    s.kernel_width = kernel_width;
    s.stride_height = stride_height;
    s.stride_width = stride_width;
    s.top = top;
    s.bottom = bottom;
    s.left = left;
    s.right = right;
    s.out_height = (height + top + bottom - kernel_height) / stride_height + 1;
    s.out_width = (width + left + right - kernel_width) / stride_width + 1;
    s.channels_last = channels_last;
    return s;
  }
};

/// An activation loop for epilogues: params[0] x + params[1].
inline void multiply_and_add(const void* const* in, void* out, int64_t n, const double* params) {
  const float* const x = static_cast<const float*>(in[0]);
  float* const y = static_cast<float*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(params[0] * x[i] + params[1]);
}

}  // namespace paddle::testing_support
