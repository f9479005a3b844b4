#pragma once
// The steps before the integers of a model are final: methods that change float weights,
// calibration, and methods that choose integers.

#include <string>
#include <vector>

#include "quant/calibration.h"
#include "quant/quant_job.h"

namespace paddle::quant {

/// equalize, smooth and awq, which change float weights.
void scale_weights(const QuantConfig& config, Quantizable& model, CalibrationData& data,
                   const WeightSource& weight, const Progress& progress,
                   std::vector<std::string>& warnings);

/// Calibration and the methods. The file `begun` keeps statistics while they are made. Returns the
/// number of samples; 0 where no ranges are needed.
int64_t prepare(const QuantJob& job, Quantizable& model, const program::Model& source,
                const WeightSource& weight, const CalibrationData::Deadline& deadline,
                const Progress& progress, std::vector<std::string>& warnings,
                const std::string& begun = "");

}  // namespace paddle::quant
