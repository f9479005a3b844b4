#pragma once
// Geometry of sliding windows (convolution, pooling): normalizes strides, dilations and the forms
// of padding that the operations accept.

#include "ops/core/attrs.h"
#include "tensor/dim.h"

namespace paddle {

/// `n` values from a single one or a list. Throws kUsage, naming `what`.
std::vector<int64_t> window_sizes(const AttrValue& value, size_t n, const std::string& what);

/// Padding of the spatial axes: [before_0, after_0, before_1, after_1, …]. Accepts a number, one or
/// two per spatial axis, pairs for every axis of the tensor, "SAME" and "VALID" ("SAME" needs
/// constant sizes if a stride is above 1).
std::vector<int64_t> window_padding(const AttrValue& padding, const Shape& spatial,
                                    const std::vector<int64_t>& kernel,
                                    const std::vector<int64_t>& stride,
                                    const std::vector<int64_t>& dilation, bool channels_last,
                                    const std::string& what);

/// The border that a transposed convolution cuts off, in the same form. SAME is that of a
/// convolution of its input: ceil(size / stride) windows, of constant sizes.
std::vector<int64_t> transposed_padding(const AttrValue& padding, const Shape& spatial,
                                        const std::vector<int64_t>& kernel,
                                        const std::vector<int64_t>& stride,
                                        const std::vector<int64_t>& dilation, bool channels_last,
                                        const std::string& what);

/// Number of window positions along one axis.
Dim window_count(const Dim& size, int64_t before, int64_t after, int64_t kernel, int64_t stride,
                 int64_t dilation, bool ceil_mode);

/// The padding of max pooling. As in PaddlePaddle, SAME pads nothing where the mask is asked for.
AttrValue max_pool_padding(const AttrValue& padding, bool return_mask);

}  // namespace paddle
