#pragma once
// Losses that align labels with the steps of an output (CTC): whether the labels of a sample fit is
// known from lengths only, which the data gives, before anything is trained.

#include <cstdint>
#include <span>
#include <vector>

#include "ir/module.h"
#include "tensor/tensor.h"

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

/// A row of a batch whose labels cannot be aligned: they need more steps than the output has.
struct LongLabels {
  int64_t row = 0;
  int64_t labels = 0, repeated = 0;  ///< repeated: equal to the one before, with a blank between
  int64_t steps = 0;                 ///< of the output
};
/// Those of a batch, in rising order of rows. `values`: those outputs, on the host, contiguous.
std::vector<LongLabels> long_labels(std::span<const Array> values);

}  // namespace paddle::train
