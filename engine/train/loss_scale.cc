#include "train/loss_scale.h"

#include <algorithm>
#include <set>

namespace paddle::train {
namespace {

/// What a value's numbers are multiplied by when the batch is repeated: a power of the repeats.
struct Growth {
  enum class Kind { kConstant, kPower, kUnknown };
  Kind kind = Kind::kPower;
  int power = 0;
};

const Growth kConstant = {Growth::Kind::kConstant, 0};
const Growth kUnknown = {Growth::Kind::kUnknown, 0};

class GrowthReader {
 public:
  explicit GrowthReader(const ir::Function& function) {
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      const Shape& shape = function.body.arguments[i]->type.shape;
      if (function.inputs[i].kind == ir::PortKind::kValue && !shape.empty() && shape[0].is_symbol())
        batch_.insert(shape[0].text());
    }
    for (const auto& operation : function.body.operations) {
      const Growth growth = of(*operation);
      for (const ir::Value* result : operation->results) known_[result] = growth;
    }
  }

  Growth of(const ir::Value* value) const {
    if (value->constant) return kConstant;
    const auto found = known_.find(value);
    return found == known_.end() ? Growth{} : found->second;
  }

 private:
  /// Whether a dim counts samples; how many elements a mask leaves does too.
  bool counts(const Dim& dim) const {
    std::vector<std::string> names;
    dim.collect_symbols(names);
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return batch_.contains(name) || name.starts_with('$');
    });
  }
  bool holds_samples(const ir::Value* value) const {
    const Shape& shape = value->type.shape;
    return std::any_of(shape.begin(), shape.end(), [&](const Dim& dim) { return counts(dim); });
  }

  /// The growth that all operands from `first` on share.
  Growth common(const ir::Operation& operation, size_t first = 0) const {
    Growth out = kConstant;
    for (size_t i = first; i < operation.operands.size(); ++i) {
      if (!operation.operands[i]) continue;
      const Growth growth = of(operation.operands[i]);
      if (growth.kind == Growth::Kind::kConstant) continue;
      if (growth.kind == Growth::Kind::kUnknown) return kUnknown;
      if (out.kind == Growth::Kind::kPower && out.power != growth.power) return kUnknown;
      out = growth;
    }
    return out;
  }

  Growth product(const ir::Operation& operation, int sign) const {
    const Growth x = of(operation.operands[0]), y = of(operation.operands[1]);
    if (x.kind == Growth::Kind::kUnknown || y.kind == Growth::Kind::kUnknown) return kUnknown;
    const bool constant = x.kind == Growth::Kind::kConstant && y.kind == Growth::Kind::kConstant;
    return constant ? kConstant : Growth{Growth::Kind::kPower, x.power + sign * y.power};
  }

  /// `growth` with one power more if the operation adds up over the samples.
  Growth summed(const ir::Operation& operation, Growth growth) const {
    const bool samples =
        std::any_of(operation.operands.begin(), operation.operands.end(),
                    [&](const ir::Value* operand) { return operand && holds_samples(operand); });
    if (!samples || holds_samples(operation.results[0]) || growth.kind == Growth::Kind::kUnknown)
      return growth;
    return {Growth::Kind::kPower, growth.power + 1};
  }

  Growth of(const ir::Operation& operation) const {
    static const std::set<std::string, std::less<>> kHomogeneous = {"maximum", "minimum", "clip",
                                                                    "abs", "relu"};
    const std::string_view name = operation.op->name();
    if (name == "dim_value")
      return counts(operation.attrs[0].as_dim()) ? Growth{Growth::Kind::kPower, 1} : kConstant;
    if (name == "multiply") return product(operation, 1);
    if (name == "divide") return product(operation, -1);
    if (name == "matmul") return summed(operation, product(operation, 1));
    if (name == "sum") return summed(operation, common(operation));
    if (name == "where") return common(operation, 1);
    const Growth growth = common(operation);
    if (operation.op->has(kLinear) || kHomogeneous.contains(name)) return growth;
    if (operation.op->has(kStopGradient) || growth.kind == Growth::Kind::kConstant) return growth;
    return growth.kind == Growth::Kind::kPower && growth.power == 0 ? growth : kUnknown;
  }

  std::set<std::string> batch_;
  std::map<const ir::Value*, Growth> known_;
};

}  // namespace

LossScale loss_scale(const ir::Function& function, const ir::Value& loss) {
  const Growth growth = GrowthReader(function).of(&loss);
  if (growth.kind == Growth::Kind::kUnknown) return LossScale::kNeither;
  if (growth.power == 0) return LossScale::kMean;
  return growth.power == 1 ? LossScale::kSum : LossScale::kNeither;
}

}  // namespace paddle::train
