#pragma once
// Losses that align labels with the steps of an output (CTC): whether the labels of a sample fit is
// known from lengths only, which the data gives, before anything is trained.

#include <vector>

#include "ir/module.h"

namespace paddle::train {

/// The operands of an alignment that its lengths are read from.
struct Alignment {
  const ir::Value* labels = nullptr;         ///< [samples, most]
  const ir::Value* input_lengths = nullptr;  ///< [samples]
  const ir::Value* label_lengths = nullptr;  ///< [samples]
};

/// The alignments by CTC of a traced function whose labels and lengths are computed from the data
/// only. Those in branches and loops are left out.
std::vector<Alignment> alignments_of(const ir::Function& function);
/// Makes their operands the outputs of the function, three for each.
void add_alignment_outputs(ir::Function& function);

}  // namespace paddle::train
