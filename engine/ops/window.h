#pragma once
// Geometry of sliding windows (convolution, pooling): strides, dilations and the many forms of
// padding that the public functions take, brought to one.

#include "ops/attrs.h"
#include "tensor/dim.h"

namespace paddle {

/// `n` numbers from one or a list. Throws kUsage, naming `what`.
std::vector<int64_t> window_numbers(const AttrValue& value, size_t n, const std::string& what);

/// Borders of the spatial axes: [before_0, after_0, before_1, after_1, …]. Accepts a number, one
/// per axis, two per axis, pairs for every axis of the tensor, "SAME" and "VALID" (`SAME` needs
/// known sizes when a stride is above 1).
std::vector<int64_t> window_padding(const AttrValue& padding, const Shape& spatial,
                                    const std::vector<int64_t>& kernel,
                                    const std::vector<int64_t>& stride,
                                    const std::vector<int64_t>& dilation, bool channels_last,
                                    const std::string& what);

/// Number of window positions along one axis.
Dim window_count(const Dim& size, int64_t before, int64_t after, int64_t kernel, int64_t stride,
                 int64_t dilation, bool ceil_mode);

}  // namespace paddle
