#include "train/weights/packed_base.h"

#include <algorithm>

#include "ops/core/op.h"
#include "ops/core/operators.h"
#include "ops/generated/generation.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/shape.h"

namespace paddle::train {
namespace {

/// A product of x with a matrix of weights, or a lookup in one.
struct Use {
  bool lookup = false;
  bool transposed = false;  ///< a product with the transpose
};

std::optional<Use> use_of(const OpCall& call) {
  const std::string_view op = call.op.name();
  if (op == "linear") return Use{};
  if (op == "embedding" && !EmbeddingAttrs(call.attrs).padding_idx) return Use{.lookup = true};
  if (op != "matmul" || call.operands[0].ndim() < 2) return std::nullopt;
  const MatmulAttrs attrs(call.attrs);
  if (attrs.transpose_x) return std::nullopt;
  return Use{.transposed = attrs.transpose_y};
}

/// x times the matrix, or its transpose, from its rows.
Tensor product(const PackedOperand& w, const Tensor& x, bool transposed) {
  return ops::packed_matmul(x, w.rows, w.matrix.form.format, w.matrix.form.features,
                            w.matrix.transposed == transposed);
}

}  // namespace

std::optional<PackedMatrix> PackedBase::find(const std::string& name) const {
  if (!weights_.contains(name)) return std::nullopt;
  PackedMatrix out{weights_.shape(name), {}, weights_.is_transposed(name)};
  if (out.shape.size() != 2) return std::nullopt;
  out.form = weights_.packed_form(name, type_);
  if (out.form.dtype != DType::kU8 && out.form.dtype != DType::kBF16 &&
      out.form.dtype != DType::kF16)
    return std::nullopt;
  return out;
}

Tensor unpacked(const PackedMatrix& matrix, const Tensor& rows) {
  const Tensor all = ops::packed_rows(rows, Tensor(), matrix.form.format, matrix.form.features);
  return matrix.transposed ? ops::transpose(all, {1, 0}) : all;
}

int64_t parameter_count(const program::ParameterStore& store, const PackedBase* base) {
  int64_t count = store.parameter_count();
  if (!base) return count;
  for (const auto& [name, parameter] : store.parameters)
    if (const auto matrix = base->find(name))
      if (parameter.value.dtype == matrix->form.dtype)
        count += element_count(std::span(matrix->shape)) - parameter.value.size();
  return count;
}

const PackedOperand* PackedProducts::find(const Tensor& operand) const {
  const auto it = std::find_if(operands_.begin(), operands_.end(), [&](const PackedOperand& w) {
    return operand.is_same_cell(w.value);
  });
  return it == operands_.end() ? nullptr : &*it;
}

Tensors PackedProducts::apply(const OpCall& call) {
  const auto use = use_of(call);
  const PackedOperand* const w = use ? find(call.operands[1]) : nullptr;
  // Rows of a lookup are rows of the matrix.
  if (!w || (use->lookup && w->matrix.transposed)) return next().apply(call);
  const ScopedInterpreter below(next());
  const Tensor& x = call.operands[0];
  Tensor out;
  if (use->lookup) {
    out = ops::packed_rows(w->rows, x, w->matrix.form.format, w->matrix.form.features);
    if (w->down.defined()) out = out + ops::matmul(ops::embedding(x, w->down), w->up) * w->scale;
    return {out};
  }
  out = product(*w, x, use->transposed);
  if (w->down.defined()) {
    const Tensor narrow =
        use->transposed ? ops::matmul(x, w->up, false, true) : ops::matmul(x, w->down);
    const Tensor added =
        use->transposed ? ops::matmul(narrow, w->down, false, true) : ops::matmul(narrow, w->up);
    out = out + ops::cast(added * w->scale, DType::kF32);
  }
  if (call.op.name() == "linear" && call.operands[2].defined()) out = out + call.operands[2];
  return {out};
}

}  // namespace paddle::train
