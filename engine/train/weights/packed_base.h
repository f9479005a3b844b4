#pragma once
// `lora.weights_as`: matrices of the initial weights that a run with adapters keeps in packed rows,
// blocks of a GGUF file or 16-bit floats, and products that read them there.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/named_weights.h"
#include "program/parameter_store.h"
#include "tensor/interpreter.h"

namespace paddle::train {

/// A parameter that is kept as rows of packed weights.
struct PackedMatrix {
  Dims shape;                ///< of the model's matrix
  convert::PackedForm form;  ///< of what is kept
  bool transposed = false;   ///< the model's matrix is [features, rows]
};

class PackedBase {
 public:
  /// `file` and `rules` as `init:` has them. kUsage, kModel, kConfig as NamedWeights.
  PackedBase(const std::string& file, const std::string& rules, convert::WeightType type)
      : weights_(file, rules), type_(type) {}

  /// How the matrix is kept; nothing for one that is not in the file, and for one that stays in
  /// float32.
  std::optional<PackedMatrix> find(const std::string& name) const;
  /// All of the file.
  const convert::NamedWeights& weights() const { return weights_; }
  /// Its rows.
  Array read(const std::string& name) const { return weights_.read_packed(name, type_).rows; }

 private:
  convert::NamedWeights weights_;
  convert::WeightType type_;
};

/// The matrix in float32.
Tensor unpacked(const PackedMatrix& matrix, const Tensor& rows);
/// Numbers in all parameters, those in packed rows as what they stand for.
int64_t parameter_count(const program::ParameterStore& store, const PackedBase* base);

/// A packed matrix of a step, and the adapter that is added to it, if any.
struct PackedOperand {
  Tensor value;  ///< what the model multiplies with, in float32
  Tensor rows;
  PackedMatrix matrix;
  Tensor down, up;   ///< [matrix.shape[0], rank] and [rank, matrix.shape[1]], or undefined
  double scale = 1;  ///< of their product
};

/// Computes products with packed matrices, and lookups in them, from their rows: what was a matrix
/// in float32 is then not used.
class PackedProducts final : public ForwardingInterpreter {
 public:
  /// `operands` may grow while this interpreter is installed.
  explicit PackedProducts(const std::vector<PackedOperand>& operands) : operands_(operands) {}
  Tensors apply(const OpCall& call) override;

 private:
  const PackedOperand* find(const Tensor& operand) const;
  const std::vector<PackedOperand>& operands_;
};

}  // namespace paddle::train
