#pragma once
// The part of a job that searches: layers go back to floats until the model is accepted.

#include <functional>
#include <optional>
#include <vector>

#include "quant/output.h"
#include "quant/quant_job.h"
#include "quant/search.h"

namespace paddle::quant {

/// Fills in the sensitivities of the quantized layers: by the noise of the output on `inputs`, in
/// `seconds` as far as they suffice, or by gradients of the loss on the calibration data.
void measure_sensitivity(const QuantJob& job, Sensitivity by, Quantizable& model,
                         const std::vector<Array>& inputs, const WeightSource& weight,
                         const Progress& progress, std::optional<double> seconds = {});

/// The search that an interrupted job has begun. Layers are then those that it began with.
std::optional<SearchProgress> begun_search(const QuantJob& job, const Paths& paths,
                                           Quantizable& model);

/// Returns layers to floats, the most sensitive first, until the model is accepted. `write` writes
/// the model and fills in the report. Without `state` the model in `paths.partial` is the first
/// trial. `inputs`: a batch, for sensitivities.
void search_layers(const QuantJob& job, const SearchOptions& options, const Paths& paths,
                   Quantizable& model, const std::vector<Array>& inputs, const WeightSource& weight,
                   const std::function<void()>& write, std::optional<SearchProgress> state,
                   QuantReport& report, const Progress& progress);

}  // namespace paddle::quant
