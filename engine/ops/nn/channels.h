#pragma once
// Helpers of the rules of convolution, pooling and image operations: data formats and 1-D windows
// in terms of 2-D ones.

#include <string>
#include <vector>

#include "ops/core/compose.h"

namespace paddle::rules {

void check_rank(const char* op, const Tensor& x, int64_t rank);
/// Whether a data format has its channels last.
bool channels_last(const std::string& format);
/// Transposes channels last to channels first, and back.
Tensor first_channels(const Tensor& x);
Tensor last_channels(const Tensor& x);
/// A vector of one value per channel, reshaped to broadcast over a tensor of `rank`.
Tensor per_channel(const Tensor& v, int64_t rank, bool last);
/// Multiplies an axis by a matrix [out, in].
Tensor map_axis(const Tensor& x, int64_t axis, const std::vector<double>& matrix, int64_t out,
                int64_t in);
/// The same with a matrix that depends on sizes known at run time.
Tensor map_axis(const Tensor& x, int64_t axis, const Tensor& matrix);

/// [a, b], for 1-D operations in terms of 2-D ones of height 1.
AttrValue pair_of(int64_t a, int64_t b);
/// The padding of a 1-D operation along `axis` for its 2-D form: [0, 0, before, after].
AttrValue line_padding(const AttrValue& padding, const Tensor& x, int64_t axis, int64_t kernel,
                       int64_t stride, int64_t dilation, bool last, const char* what);
AttrValue int_list(const Axes& numbers);

/// Between the data format of a 3-D operation and NCDHW.
Tensor to_channels_first(const Tensor& x, const std::string& format);
Tensor from_channels_first(const Tensor& x, const std::string& format);
/// Operand 0 of a 3-D operation as NCDHW; throws kUsage unless it is 5-D.
Tensor volume_operand(CallContext& c, const std::string& format);

}  // namespace paddle::rules
