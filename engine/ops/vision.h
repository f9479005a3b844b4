#pragma once
// What the rules of schema/vision.yaml share; vision*.cc include it.

#include <string>
#include <vector>

#include "ops/compose.h"

namespace paddle::rules {

void check_rank(const char* op, const Tensor& x, int64_t rank);
/// Whether a data format has its channels last.
bool channels_last(const std::string& format);
/// Channels to axis 1, and back to the end.
Tensor first_channels(const Tensor& x);
Tensor last_channels(const Tensor& x);
/// One number for each channel, broadcast over a tensor of `rank`.
Tensor per_channel(const Tensor& v, int64_t rank, bool last);
/// A linear map along an axis: matrix is [out, in].
Tensor map_axis(const Tensor& x, int64_t axis, const std::vector<double>& matrix, int64_t out,
                int64_t in);

}  // namespace paddle::rules
