#pragma once
// Shared by the rules of schema/vision.yaml.

#include <string>
#include <vector>

#include "ops/compose.h"

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

}  // namespace paddle::rules
