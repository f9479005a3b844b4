#include "train/session/alignment.h"

#include <algorithm>
#include <optional>

#include "train/step/batch_dependence.h"

namespace paddle::train {

std::vector<Alignment> alignments_of(const ir::Function& function) {
  std::vector<Alignment> out;
  std::optional<BatchDependence> dependence;
  for (const auto& operation : function.body.operations) {
    if (operation->op->name() != "ctc_alignment") continue;
    if (!dependence) dependence.emplace(function);
    const Alignment found{operation->operands[1], operation->operands[2], operation->operands[3]};
    const ir::Value* const values[] = {found.labels, found.input_lengths, found.label_lengths};
    if (std::all_of(std::begin(values), std::end(values), [&](const ir::Value* value) {
          const Dependence d = dependence->of(value);
          return d.kind == Dependence::Kind::kFixed || d.from_data;
        }))
      out.push_back(found);
  }
  return out;
}

void add_alignment_outputs(ir::Function& function) {
  size_t number = 0;
  for (const Alignment& each : alignments_of(function))
    for (const ir::Value* value : {each.labels, each.input_lengths, each.label_lengths})
      function.add_output({ir::PortKind::kValue, str("alignment.", number++)},
                          const_cast<ir::Value*>(value));
}

std::vector<LongLabels> long_labels(std::span<const Array> values) {
  std::vector<LongLabels> out;
  for (size_t i = 0; i + 2 < values.size(); i += 3) {
    const Array &labels = values[i], &steps = values[i + 1], &lengths = values[i + 2];
    const int64_t width = labels.shape[1];
    for (int64_t row = 0; row < labels.shape[0]; ++row) {
      LongLabels found{.row = row, .labels = lengths.integer(row), .steps = steps.integer(row)};
      const int64_t last = std::min(found.labels, width);
      for (int64_t at = 1; at < last; ++at)
        found.repeated += labels.integer(row * width + at) == labels.integer(row * width + at - 1);
      if (found.labels + found.repeated > found.steps) out.push_back(found);
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const LongLabels& a, const LongLabels& b) { return a.row < b.row; });
  const auto same = [](const LongLabels& a, const LongLabels& b) { return a.row == b.row; };
  out.erase(std::unique(out.begin(), out.end(), same), out.end());
  return out;
}

}  // namespace paddle::train
