#include "paddle/ops.h"

#include <unordered_map>

#include "api/access.h"
#include "api/eager_scope.h"
#include "autograd/autograd.h"
#include "ops/core/call.h"
#include "runtime/execute.h"

namespace paddle::v0 {
namespace {

/// Where the random operations of a thread are.
struct RandomPosition {
  uint64_t seed = 0, calls = 0;
};
thread_local RandomPosition random_position;

/// Computes under the eager executor, with a tape above it.
template <class Body>
auto eagerly(Body&& body) {
  return translated([&] {
    const EagerScope scope(random_position.seed, ++random_position.calls);
    return body();
  });
}

/// get_op; a thread looks up a name once.
const Op& operation_named(const std::string& name) {
  thread_local std::unordered_map<std::string, const Op*> known;
  const auto found = known.find(name);
  if (found != known.end()) return *found->second;
  const Op& op = get_op(name);
  known.emplace(name, &op);
  return op;
}

Tensors engine_tensors(const std::vector<Tensor>& tensors) {
  Tensors out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) out.push_back(Access::engine(t));
  return out;
}

paddle::Argument engine_argument(const Argument& argument) {
  return std::visit(
      [](const auto& value) -> paddle::Argument {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Tensor>)
          return Access::engine(value);
        else if constexpr (std::is_same_v<T, std::vector<Tensor>>)
          return engine_tensors(value);
        else
          return AttrValue(value);
      },
      argument.value());
}

std::vector<Tensor> handles(Tensors tensors) {
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  // No view of a variable: set_value changes only the variable.
  for (paddle::Tensor& t : tensors)
    out.push_back(Access::handle(t.is_view() ? t.fresh_cell() : std::move(t)));
  return out;
}

}  // namespace

paddle::Tensor Access::engine(const Tensor& tensor) {
  return tensor.impl_ ? tensor.impl_->tensor : paddle::Tensor();
}

Tensor Access::handle(paddle::Tensor tensor) {
  Tensor out;
  if (tensor.defined()) out.impl_ = std::make_shared<Tensor::Impl>(Tensor::Impl{std::move(tensor)});
  return out;
}

Tensor::Tensor() = default;
Tensor::Tensor(const Array& value)
    : impl_(std::make_shared<Impl>(Impl{paddle::Tensor(Access::engine(value))})) {}
Tensor::~Tensor() = default;
Tensor::Tensor(const Tensor&) noexcept = default;
Tensor::Tensor(Tensor&&) noexcept = default;
Tensor& Tensor::operator=(const Tensor&) noexcept = default;
Tensor& Tensor::operator=(Tensor&&) noexcept = default;

bool Tensor::defined() const noexcept { return impl_ != nullptr; }
bool Tensor::requires_gradient() const { return impl_ && impl_->tensor.requires_grad(); }

namespace {

const paddle::Array& value_of(const Tensor& tensor) {
  if (!tensor.defined()) throw UsageError(ErrorCode::kUsage, "the tensor is undefined");
  const paddle::Tensor engine = Access::engine(tensor);
  return engine.array();  // owned by the cell, which `tensor` keeps alive
}

}  // namespace

DType Tensor::dtype() const {
  return translated([&] { return public_dtype(value_of(*this).dtype, "the tensor"); });
}
std::vector<int64_t> Tensor::shape() const {
  return translated([&] { return value_of(*this).shape; });
}
Array Tensor::array() const {
  return eagerly([&] {
    const paddle::Array& value = value_of(*this);
    const paddle::DType held = engine_dtype(public_dtype(value.dtype, "the tensor"));
    return Access::handle(held == value.dtype ? runtime::copied(value)
                                              : runtime::cast_array(value, held));
  });
}

void Tensor::backward(const Tensor& weight) const {
  const paddle::DType dtype = value_of(*this).dtype;
  if (!requires_gradient())
    throw UsageError(ErrorCode::kUsage, "backward: the tensor depends on no variable");
  if (weight.defined() && (value_of(weight).dtype != dtype || weight.shape() != shape()))
    throw UsageError(ErrorCode::kUsage, str("backward: the weight is ", dtype_name(weight.dtype()),
                                            str(weight.shape()), ", the tensor ",
                                            dtype_name(this->dtype()), str(shape())));
  eagerly([&] {
    autograd::backward_to_leaves({impl_->tensor},
                                 weight.defined() ? Tensors{Access::engine(weight)} : Tensors{});
  });
}
bool Tensor::is_variable() const { return impl_ && autograd::is_leaf(impl_->tensor); }
Tensor Tensor::gradient() const {
  value_of(*this);
  return translated([&] { return Access::handle(autograd::leaf_gradient(impl_->tensor)); });
}
void Tensor::clear_gradient() const {
  value_of(*this);
  translated([&] { autograd::set_leaf_gradient(impl_->tensor, paddle::Tensor()); });
}
void Tensor::set_value(const Array& value) const {
  value_of(*this);
  translated([&] {
    autograd::set_leaf_value(impl_->tensor, paddle::Tensor(Access::engine(value.clone())));
  });
}

NoGradientScope::NoGradientScope() : before_(autograd::is_recording()) {
  autograd::set_recording(false);
}
NoGradientScope::~NoGradientScope() { autograd::set_recording(before_); }

std::vector<Tensor> call_all(const std::string& operation, const std::vector<Argument>& arguments,
                             const std::vector<Named>& named) {
  return eagerly([&] {
    std::vector<paddle::Argument> positional;
    positional.reserve(arguments.size());
    for (const Argument& a : arguments) positional.push_back(engine_argument(a));
    std::vector<std::pair<std::string, paddle::Argument>> by_name;
    for (const auto& [name, a] : named) by_name.emplace_back(name, engine_argument(a));
    Bound bound =
        bind_arguments(operation_named(operation), std::move(positional), std::move(by_name));
    return handles(call_visible(*bound.op, std::move(bound.operands), std::move(bound.attrs)));
  });
}

Tensor call(const std::string& operation, const std::vector<Argument>& arguments,
            const std::vector<Named>& named) {
  std::vector<Tensor> results = call_all(operation, arguments, named);
  return results.empty() ? Tensor() : std::move(results[0]);
}

Tensor variable(const Array& value) {
  const paddle::Array& array = Access::engine(value);
  if (!is_differentiable(array.dtype))
    throw UsageError(ErrorCode::kUsage, str("variable: a gradient needs floats, found ",
                                            paddle::text(array.dtype), str(array.shape)));
  return translated([&] { return Access::handle(autograd::variable(paddle::Tensor(array))); });
}

std::vector<Tensor> gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& weights) {
  const auto require_defined = [](const std::vector<Tensor>& tensors, const char* what) {
    for (size_t i = 0; i < tensors.size(); ++i)
      if (!tensors[i].defined())
        throw UsageError(ErrorCode::kUsage, str("gradients: ", what, " ", i, " is undefined"));
  };
  require_defined(outputs, "output");
  require_defined(inputs, "input");
  require_defined(weights, "weight");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].requires_gradient())
      throw UsageError(ErrorCode::kUsage,
                       str("gradients: input ", i,
                           " is a constant; make it with variable() or compute it from one"));
  if (!weights.empty() && weights.size() != outputs.size())
    throw UsageError(ErrorCode::kUsage, str("gradients: ", outputs.size(), " outputs and ",
                                            weights.size(), " weights"));
  for (size_t i = 0; i < weights.size(); ++i)
    if (weights[i].shape() != outputs[i].shape() || weights[i].dtype() != outputs[i].dtype())
      throw UsageError(ErrorCode::kUsage,
                       str("gradients: weight ", i, " is ", dtype_name(weights[i].dtype()),
                           str(weights[i].shape()), ", output ", i, " is ",
                           dtype_name(outputs[i].dtype()), str(outputs[i].shape())));
  return eagerly([&] {
    return handles(
        autograd::grad(engine_tensors(outputs), engine_tensors(inputs), engine_tensors(weights)));
  });
}

std::vector<std::string> operations() { return op_names(); }

std::string signature(const std::string& operation) {
  return translated([&] { return std::string(get_op(operation).def->signature); });
}

void set_random_seed(uint64_t seed) { random_position = {seed, 0}; }

}  // namespace paddle::v0
