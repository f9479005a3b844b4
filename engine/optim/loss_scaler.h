#pragma once
// Loss scaling: gradients in float16 are computed of the loss times a factor, so that small ones do
// not vanish, and divided by it before they are used. A dynamic scale falls when gradients overflow
// and grows after a number of updates without an overflow; the rules and the defaults are those of
// PaddlePaddle's GradScaler. The scale and its counters are tensors, so that a compiled step reads
// and writes them like any state.

#include <cstdint>

#include "tensor/tensor.h"

namespace paddle::optim {

struct LossScaling {
  bool dynamic = true;
  double initial = 65536;       ///< the scale of the first update; of all, unless dynamic
  double growth_factor = 2;     ///< after growth_interval updates in a row without an overflow
  double backoff_factor = 0.5;  ///< after backoff_interval updates in a row with one
  int64_t growth_interval = 2000;
  int64_t backoff_interval = 1;
  static constexpr double kMinimum = 1;  ///< a dynamic scale falls no further
};

/// 0-D tensors: the scale in float32, the rest int64.
struct ScalerState {
  Tensor scale;
  Tensor good, bad;  ///< updates in a row without and with an overflow, until the scale changes
  Tensor updates;    ///< done, those that were skipped left out
  Tensor skipped;    ///< updates that an overflow skipped
};

/// The state after an update whose gradients were all finite, or not.
ScalerState next_state(const ScalerState& state, const Tensor& finite, const LossScaling& options);
/// True if none of these (gradients, or their sums of squares) has an element that is infinite or
/// NaN; undefined ones do not count.
Tensor all_finite(const Tensors& values);

}  // namespace paddle::optim
