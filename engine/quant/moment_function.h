#pragma once
// Functions that compute, besides the results of a model, the second moments of the inputs of its
// layers.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "quant/layers.h"

namespace paddle::quant {

/// Whether the input of a layer can be taken as rows of features.
bool has_moments(const Quantizable& model, size_t layer);

/// The model's function with, for each of these layers, three further outputs: the product of its
/// input's rows of features with themselves [features, features], their sum [features], and their
/// number.
std::shared_ptr<ir::Function> with_moments(const Quantizable& model,
                                           const std::vector<size_t>& layers);

/// The model in floats and quantized in one function, whose only outputs are three for each of
/// these layers: the product of the rows of its input in the quantized model with themselves, that
/// of the rows in the float model with those in the quantized one, both [features, features], and
/// the number of rows. `weights` gets the parameters of the quantized part. Layers that the model
/// keeps float are float in both.
std::shared_ptr<ir::Function> with_paired_moments(const Quantizable& model,
                                                  const std::vector<size_t>& layers,
                                                  std::map<std::string, Array>& weights);

}  // namespace paddle::quant
