#pragma once
// Merges low-rank adapters (LoRA: Hu et al., 2021), as PEFT saves them, into the weights of a
// model: W + scale * B A.

#include <optional>
#include <string>
#include <vector>

#include "quant/progress.h"

namespace paddle::quant {

struct MergeJob {
  std::string model;            ///< a folder with safetensors files, or one such file
  std::string adapter;          ///< a folder with adapter_config.json and adapter_model.safetensors
  std::string output;           ///< a folder, or a file if `model` is one
  std::optional<double> scale;  ///< in place of the adapter's alpha / rank
  bool overwrite = false;
};

struct MergedWeight {
  std::string name;
  int64_t rank = 0;
  double change = 0;      ///< relative size of what was added
  double rounding = 0;    ///< what storing in the weight's type loses, relative to what was added
  bool replaced = false;  ///< the adapter has the whole tensor
};

struct MergeReport {
  std::vector<MergedWeight> weights;
};

/// Files of the model that hold no weights are copied. kModel if a tensor of the adapter fits no
/// weight of the model.
MergeReport merge_lora(const MergeJob& job, const Progress& progress);
/// One line.
std::string merge_json(const MergeJob& job, const MergeReport& report);

}  // namespace paddle::quant
