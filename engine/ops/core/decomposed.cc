// Inference for operations that are nothing but their decomposition: the decomposition runs under
// an interpreter that knows types only.

#include "ops/core/rules.h"
#include "tensor/interpreter.h"

namespace paddle::rules {
namespace {

/// Shape inference for decompositions: runs them on tensors without values and collects constraints
/// on dims.
class ShapeInterpreter final : public Interpreter {
 public:
  explicit ShapeInterpreter(std::vector<DimConstraint>& constraints) : constraints_(constraints) {}

  Tensors apply(const OpCall& call) override {
    constraints_.insert(constraints_.end(), call.constraints.begin(), call.constraints.end());
    Tensors out;
    for (const TensorType& type : call.results) out.emplace_back(type, nullptr);
    return out;
  }
  Tensors branch(const Tensor&, const TensorFn& then_fn, const TensorFn&) override {
    return then_fn({});
  }
  Tensors loop(const TensorFn&, const TensorFn&, const Tensors& carried, int64_t) override {
    return carried;
  }
  bool traces() const override { return true; }

 private:
  std::vector<DimConstraint>& constraints_;
};

}  // namespace

/// The rule `infer: decomposed`. The decomposition must not ask for its result types.
void infer_decomposed(InferContext& c) {
  ShapeInterpreter types(c.constraints());
  const InterpreterScope scope(types);
  const std::vector<TensorType> none;
  CallContext call(c.op(), c.attrs(), c.operands(), none);
  try {
    for (const Tensor& t : c.op().def->decompose(call)) c.result(t.type());
  } catch (const Error& error) {
    // An inner operation names itself; the caller's name says more.
    const std::string own = str(c.op().name(), ": ");
    if (error.code() != ErrorCode::kUsage || error.message().rfind(own, 0) == 0) throw;
    throw Error(error.code(), own + error.message(), error.location());
  }
}

}  // namespace paddle::rules
