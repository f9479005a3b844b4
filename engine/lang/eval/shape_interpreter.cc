#include "lang/eval/shape_interpreter.h"

#include <algorithm>

#include "lang/eval/shape_scope.h"
#include "lang/eval/value_forms.h"

namespace paddle::lang {
namespace {

struct Nothing : Content {};

}  // namespace

Tensor abstract_tensor(TensorType type) {
  static const auto nothing = std::make_shared<const Nothing>();
  return Tensor(std::move(type), nothing);
}

Tensors ShapeInterpreter::apply(const OpCall& call) {
  Tensors out;
  for (const TensorType& type : call.results) out.push_back(abstract_tensor(type));
  return out;
}

Tensors ShapeInterpreter::branch(const Tensor&, const TensorFn& then_fn, const TensorFn& else_fn) {
  const Tensors a = then_fn({}), b = else_fn({});
  Tensors out;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    out.push_back(abstract_tensor(merged_type(a[i].type(), b[i].type())));
  }
  return out;
}

Tensors ShapeInterpreter::loop(const TensorFn& condition, const TensorFn& body,
                               const Tensors& carried, int64_t) {
  Tensors inside;
  for (const Tensor& tensor : carried) inside.push_back(abstract_tensor(tensor.type()));
  condition(inside);
  Tensors out;
  for (const Tensor& tensor : body(inside)) out.push_back(abstract_tensor(tensor.type()));
  return out;
}

Value Evaluation::evaluate_abstract(const Expr& expr, const Frame& frame) {
  const ShapeScope dry(*this);
  Frame copy = Copier().copy(frame);
  return evaluate(expr, copy);
}

}  // namespace paddle::lang
