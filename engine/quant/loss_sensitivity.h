#pragma once
// Sensitivity of layers by gradients: how much the loss of the run changes, to first order, when a
// layer takes integers. One pass over the data serves all layers.

#include <optional>
#include <string>
#include <vector>

#include "quant/function_runner.h"
#include "quant/layers.h"
#include "quant/quant_job.h"

namespace paddle::quant {

/// kConfig, in one line, if the loss that the model was trained with is not known, or the
/// calibration data is not a part of a config, with labels.
void check_has_loss(const QuantJob& job);

/// For each layer the mean over samples of |sum of gradient of the loss for its result * change of
/// its result when only this layer takes integers|, on the calibration data. Layers that stay
/// float and those in control flow have none. `job.calibration` must be settled; kConfig as above.
std::vector<std::optional<double>> loss_changes(const QuantJob& job, const Quantizable& model,
                                                const WeightSource& weight,
                                                const Progress& progress);

}  // namespace paddle::quant
