#pragma once
// Low-rank adapters (LoRA: Hu et al., 2021) as PEFT saves them: a folder with adapter_config.json
// and adapter_model.safetensors.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/safetensors.h"

namespace paddle::formats {

class PeftAdapter {
 public:
  /// The part of an adapter for one weight of the model: W + scale * B A, or a tensor in its place.
  struct Delta {
    const SafetensorsEntry *down = nullptr, *up = nullptr;  ///< A [rank, in], B [out, rank]
    const SafetensorsEntry* whole = nullptr;
    bool is_table = false;  ///< of an embedding, whose rows are the features: (B A)ᵀ
  };

  /// kUsage if this is not a folder, kModel for files that are damaged or not of LoRA.
  explicit PeftAdapter(const std::string& folder);
  PeftAdapter(const PeftAdapter&) = delete;
  PeftAdapter& operator=(const PeftAdapter&) = delete;

  const std::string& path() const { return tensors_.path(); }  ///< of the tensors
  /// By the names of the model's weights.
  const std::map<std::string, Delta>& deltas() const { return deltas_; }
  /// Weights are [in, out].
  bool input_first() const { return input_first_; }
  /// Of the product of a weight's A and B.
  double scale_of(const std::string& weight) const;
  Array read(const SafetensorsEntry& entry) const { return tensors_.read(entry); }

 private:
  /// Values of the layers whose paths match an expression; the first one of the file counts.
  class Patterns {
   public:
    void add(const std::string& expression, double value);
    double of(const std::string& layer, double fallback) const;

   private:
    struct Compiled;
    std::vector<std::pair<std::shared_ptr<const Compiled>, double>> entries_;
  };
  void read_config(const std::string& path);

  double rank_ = 8, alpha_ = 8;
  bool root_scale_ = false;  ///< rsLoRA: alpha / sqrt(rank)
  bool input_first_ = false;
  Patterns ranks_, alphas_;
  SafetensorsReader tensors_;
  std::map<std::string, Delta> deltas_;
};

/// An adapter that is to be written.
struct PeftOutput {
  struct Factors {
    std::string weight;  ///< of the model, such as "model.layers.0.self_attn.q_proj.weight"
    Array down, up;      ///< A: float32 [rank, in], B: float32 [out, rank]
  };
  std::vector<Factors> factors;
  std::vector<std::string> weights;  ///< all of the model
  std::string base;                  ///< the folder or name of the model
  int64_t rank = 8;
  double alpha = 8;
  bool input_first = false;  ///< the model's weights are [in, out]
};
/// Writes adapter_config.json and adapter_model.safetensors into the folder, which is made.
void write_peft(const std::string& folder, const PeftOutput& adapter);

}  // namespace paddle::formats
