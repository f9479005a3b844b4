#pragma once
// The number formats of a layer, and the rules by which a configuration gives them to layers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "quant_common/weights.h"
#include "tensor/dtype.h"

namespace paddle {
struct Op;
}

namespace paddle::quant {

enum class ActivationMode : uint8_t {
  kNone,     ///< float activations: only the weights are integers
  kStatic,   ///< uint8 with a scale from calibration
  kDynamic,  ///< uint8 with the scale of each run
  kToken,    ///< int8 with a scale for each row of features, of each run
};

struct LayerFormat {
  ActivationMode activations = ActivationMode::kStatic;
  WeightFormat weights;
  std::optional<DType> half;  ///< float16 or bfloat16 in place of integers
  /// "int8", "int8_dynamic", "int8_token", "int8_weights", "int4_weights", "float16" or "bf16".
  std::string text() const;
};

/// A line of `layers:`; later ones win.
struct LayerRule {
  std::vector<std::string> match;  ///< patterns of layer names; empty: all
  std::string op;                  ///< only layers of this operation; "": any
  bool keep_float = false;
  std::optional<WeightFormat> weights;
  SourceLocation where;
  std::string option;  ///< the command line option that it comes from, for messages

  bool matches(const std::string& layer, std::string_view layer_op) const;
};

/// Whether the second operand of a call of this operation can be the weight of a layer.
bool is_layer_op(const Op& op);
/// Whether the first operand of such an operation is what the weight multiplies: not the indices of
/// an embedding, nor the gates of a recurrent layer, whose weight multiplies its states.
bool has_quantized_input(std::string_view op);
/// Whether the output channels of a layer's weight are its first axis (convolutions, embeddings,
/// recurrent layers), else its last one.
bool has_channels_first(std::string_view op);
/// The name of the layer with a weight of this path: the path without ".weight".
std::string layer_name(const std::string& weight);

/// Why a rule applies to none of these layers, with the nearest name.
Error unmatched(const LayerRule& rule, const std::vector<std::string>& layers);

/// Halves groups until they divide the features of a weight [features, …]; one scale for each
/// channel if that ends below 16. `features` is 0 where the weight has no such axis.
void fit_groups(WeightFormat& format, int64_t features);

}  // namespace paddle::quant
