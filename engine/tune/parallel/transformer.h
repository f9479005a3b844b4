#pragma once
// The shape of a transformer, which is all that planning a parallel strategy needs of a model.

#include <cstdint>
#include <string>

namespace paddle::tune {

/// Sizes are multiplied as floating numbers, since their products may not fit in integers.
inline double real(int64_t value) { return static_cast<double>(value); }

struct Transformer {
  std::string name = "transformer";
  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_size = 0;
  int64_t ffn = 0;     ///< width between the products of a feed-forward block, or of one expert
  bool gated = false;  ///< three products in a feed-forward block instead of two
  int64_t vocabulary = 0, sequence = 0;
  bool tied = true;                            ///< the output layer's weight is the embedding
  int64_t experts = 0, experts_per_token = 1;  ///< 0 experts: dense
  int64_t batch = 0;                           ///< sequences of a step, over all devices
  std::string precision = "bfloat16";          ///< of products: bfloat16, float16, float8, float32

  double attention_parameters() const;     ///< of a layer
  double feed_forward_parameters() const;  ///< of a layer: one block or one expert
  double dense_parameters() const;         ///< all but the experts'
  double expert_parameters() const;
  /// Bytes of an activation, and of what travels between devices.
  double item_bytes() const { return precision == "float32" ? 4 : 2; }
  double parameters() const { return dense_parameters() + expert_parameters(); }
};

/// Reads `transformer:`, `batch` and `precision` of a YAML file. kConfig with the place if
/// something is missing or contradicts.
Transformer read_transformer(const std::string& path);

}  // namespace paddle::tune
