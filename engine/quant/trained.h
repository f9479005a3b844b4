#pragma once
// Models that were trained with quantization: functions with quantize and dequantize around layers,
// whose weights are still floats.

#include <memory>

#include "quant/quantize.h"

namespace paddle::quant {

/// Whether a function quantizes some of its parameters.
bool is_trained_with_quantization(const ir::Function& function);

/// The function with integers in place of these parameters: the same values, to the last bit.
QuantizedFunction with_stored_integers(const ir::Function& function,
                                       const std::function<Array(const std::string&)>& weight);

/// The function in floats: the model as it would be without quantization.
std::shared_ptr<ir::Function> without_quantization(const ir::Function& function);

/// The layers of a function from `with_stored_integers`, for reports.
std::vector<Layer> trained_layers(const QuantizedFunction& trained);

}  // namespace paddle::quant
