#include "onnx/export/tables.h"

#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/core/operators.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"

namespace paddle::onnx {
namespace {

class Tables final : public ForwardingInterpreter {
 public:
  Tensors apply(const OpCall& call) override {
    static const Op& select = get_op("index_select");
    if (&call.op != &select || !is_table(call.operands[0]) ||
        IndexSelectAttrs(call.attrs).axis != 0 || call.operands[1].ndim() != 1)
      return next().apply(call);
    const ScopedInterpreter below(next());
    const Tensor& table = call.operands[0];
    const Tensor indices = ops::cast(call.operands[1], DType::kI64);
    const Tensor zero(Array::scalar(int64_t{0})), rows(Array::scalar(table.dim(0).value()));
    const Tensor wrapped = ops::where(ops::less_than(indices, zero), indices + rows, indices);
    return {ops::embedding(wrapped, table)};
  }

 private:
  /// A constant or an input of the function.
  static bool is_table(const Tensor& x) {
    if (x.ndim() != 2 || !is_float(x.dtype()) || !x.dim(0).is_constant()) return false;
    const ir::Value* const value = ir::traced_value(x);
    return x.is_concrete() || (value && !value->producer);
  }
};

}  // namespace

std::unique_ptr<ir::Function> tables_as_embeddings(const ir::Function& function) {
  Tables tables;
  return ir::retraced(function, tables);
}

const ir::Value* unwrapped_indices(const ir::Value& indices) {
  const ir::Operation* const where = indices.producer;
  if (!where || where->op->name() != "where") return nullptr;
  const ir::Operation* const less = where->operands[0]->producer;
  const ir::Value* const given = where->operands[2];
  const bool wraps = less && less->op->name() == "less_than" && less->operands[0] == given &&
                     less->operands[1]->constant && less->operands[1]->constant->size() == 1 &&
                     less->operands[1]->constant->number(0) == 0;
  return wraps ? given : nullptr;
}

}  // namespace paddle::onnx
