#include "quant_common/layer_format.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "ops/core/op.h"

namespace paddle::quant {

std::string LayerFormat::text() const {
  if (half) return *half == DType::kF16 ? "float16" : "bf16";
  std::string out = str("int", weights.storage_bits());
  if (activations == ActivationMode::kDynamic) return out + "_dynamic";
  if (activations == ActivationMode::kToken) return out + "_token";
  return activations == ActivationMode::kNone ? out + "_weights" : out;
}

bool LayerRule::matches(const std::string& layer, std::string_view layer_op) const {
  const bool named = match.empty() || std::any_of(match.begin(), match.end(), [&](const auto& p) {
                       return matches_pattern(p, layer);
                     });
  return named && (op.empty() || op == layer_op);
}

bool is_layer_op(const Op& op) {
  static const std::set<std::string_view> names = {"conv2d", "conv3d",    "linear",
                                                   "matmul", "embedding", "recurrent_scan"};
  return names.contains(op.name());
}

bool has_quantized_input(std::string_view op) {
  return op != "embedding" && op != "recurrent_scan";
}

bool has_channels_first(std::string_view op) { return op != "linear" && op != "matmul"; }

std::string layer_name(const std::string& weight) {
  return weight.ends_with(".weight") ? weight.substr(0, weight.size() - 7) : weight;
}

Error unmatched(const LayerRule& rule, const std::vector<std::string>& layers) {
  const std::string pattern = join(rule.match, ", ");
  return Error(
      ErrorCode::kConfig,
      str(rule.option.empty() ? "quant.layers" : "--keep-float", ": no layer matches '", pattern,
          rule.op.empty() ? "" : " (" + rule.op + ")", "'", did_you_mean(pattern, layers),
          layers.empty() ? "" : "; layers are " + join(layers, ", ")),
      rule.where);
}

void fit_groups(WeightFormat& format, int64_t features) {
  if (format.per != Granularity::kGroup) return;
  while (format.group > 16 && (features == 0 || features % format.group != 0)) format.group /= 2;
  if (features == 0 || features % format.group != 0) format.per = Granularity::kChannel;
}

}  // namespace paddle::quant
