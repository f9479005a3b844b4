#pragma once
// `quant.train.teacher:`: a trained model in floats whose outputs a run with quantization learns
// from besides its labels (Hinton et al., "Distilling the Knowledge in a Neural Network", 2015).

#include <memory>
#include <optional>
#include <string>

#include "config/schema.h"
#include "program/model_config.h"
#include "tensor/tensor.h"

namespace paddle::train {

struct Distillation {
  /// The scope of the teacher's parameters.
  static constexpr const char* kName = "teacher";
  double weight = 0.5;  ///< of the distance in the sum with the loss; that of the loss is the rest
  double temperature = 1;  ///< by which logits are divided, for kl
  bool squared = false;    ///< mean squared distance of the first outputs; else their divergence
  program::NamedModel model;
};

/// Whether a parameter or state of this path is the teacher's.
bool is_of_teacher(const std::string& path);

/// Of a resolved config; nullopt without a teacher. kConfig or kModel for one that does not open.
std::optional<Distillation> read_distillation(const config::Section& config);

/// The distance of the first outputs: temperature² KL(softmax(teacher / t) ‖ softmax(student / t))
/// over the last axis, or the mean squared difference; a mean over samples. kConfig if their shapes
/// differ.
Tensor distance(const Distillation& distillation, const Tensor& student, const Tensor& teacher);

}  // namespace paddle::train
