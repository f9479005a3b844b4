#include "lang/eval/derivatives.h"

#include <algorithm>
#include <array>

#include "autograd/autograd.h"
#include "autograd/derivatives.h"
#include "ops/core/operators.h"

namespace paddle::lang {
namespace {

using Positional = std::vector<Value>;

struct TensorArgument {
  Tensors tensors;
  bool list = false;
};

/// A tensor or a list of tensors.
TensorArgument tensors_of(std::string_view callee, const Value& value) {
  TensorArgument out;
  out.list = value.items() != nullptr;
  for (const Value& item : out.list ? *value.items() : ValueList{value}) {
    if (!item.is_tensor())
      fail(ErrorCode::kConfig, callee, ": expected a tensor, found ", item.describe());
    out.tensors.push_back(item.tensor());
  }
  return out;
}

Value as_value(const Tensors& tensors, bool list) {
  if (!list) return Value(tensors[0]);
  ValueList out;
  for (const Tensor& t : tensors) out.emplace_back(t);
  return Value::list(std::move(out));
}

/// The vectors of a product, which have the shapes of `like`.
Tensors vectors_of(std::string_view callee, const Value& value, const Tensors& like,
                   std::string_view of_what) {
  Tensors out = tensors_of(callee, value).tensors;
  if (out.size() != like.size())
    fail(ErrorCode::kConfig, callee, ": expected ", like.size(), " vectors, one for each tensor ",
         of_what, ", found ", out.size());
  for (size_t i = 0; i < out.size(); ++i)
    if (!same_shape(out[i].shape(), like[i].shape()) || out[i].dtype() != like[i].dtype())
      fail(ErrorCode::kConfig, callee, ": a vector is ", out[i].type(), ", the tensor ", of_what,
           " is ", like[i].type());
  return out;
}

void require_arguments(std::string_view callee, const Positional& positional,
                       const NamedValues& named, size_t count, std::string_view form) {
  if (positional.size() != count || !named.empty())
    fail(ErrorCode::kConfig, callee, " is called as ", form);
}

Tensors gradients_or_zeros(const Tensors& y, const Tensors& x, const Tensors& cotangents) {
  Tensors out = autograd::grad(y, x, cotangents);
  for (size_t i = 0; i < x.size(); ++i)
    if (!out[i].defined()) out[i] = zeros_like(x[i]);
  return out;
}

/// `grad(y, x)`: the gradient of the sum of y, by a tensor or a list of them.
Value gradient(const Positional& positional, const NamedValues& named) {
  if (positional.size() != 2 || !named.empty() || !positional[0].is_tensor())
    fail(ErrorCode::kConfig, "grad takes a tensor and what to differentiate it by: grad(y, x)");
  const auto [x, list] = tensors_of("grad", positional[1]);
  return as_value(gradients_or_zeros({positional[0].tensor()}, x, {}), list);
}

/// `vjp(y, x, v)`: the gradient of the sum of v * y. y and v are tensors or lists, as x is.
Value vector_jacobian(const Positional& positional, const NamedValues& named) {
  require_arguments("vjp", positional, named, 3, "vjp(y, x, v), with v of the shape of y");
  const Tensors y = tensors_of("vjp", positional[0]).tensors;
  const auto [x, list] = tensors_of("vjp", positional[1]);
  return as_value(gradients_or_zeros(y, x, vectors_of("vjp", positional[2], y, "y")), list);
}

/// `jvp(y, x, v)`: the derivative of y along v.
Value jacobian_vector(const Positional& positional, const NamedValues& named) {
  require_arguments("jvp", positional, named, 3, "jvp(y, x, v), with v of the shape of x");
  const auto [y, list] = tensors_of("jvp", positional[0]);
  const Tensors x = tensors_of("jvp", positional[1]).tensors;
  return as_value(autograd::forward_products(y, x, vectors_of("jvp", positional[2], x, "x")), list);
}

/// `jacobian(y, x, batch_axis=0)` and `hessian(y, x, batch_axis=0)`.
Value matrix(const std::string& callee, const Positional& positional, const NamedValues& named) {
  if (positional.size() != 2 || !positional[0].is_tensor() || !positional[1].is_tensor())
    fail(ErrorCode::kConfig, callee, " takes two tensors: ", callee, "(y, x)");
  bool batched = false;
  for (const auto& [name, value] : named) {
    if (name != "batch_axis")
      fail(ErrorCode::kConfig, callee, ": unknown argument '", name, "'",
           did_you_mean(name, std::vector<std::string>{"batch_axis"}));
    const bool none = value.is_none();
    if (!none && (!value.is<int64_t>() || value.integer() != 0))
      fail(ErrorCode::kConfig, callee, ": batch_axis= takes 0 or none, found ", value.describe());
    batched = !none;
  }
  const Tensor &y = positional[0].tensor(), &x = positional[1].tensor();
  if (batched && (y.ndim() == 0 || x.ndim() == 0 || y.dim(0).equals(x.dim(0)) == false))
    fail(ErrorCode::kConfig, callee, ": with batch_axis=0, y and x have the same first axis; y is ",
         y.type(), ", x is ", x.type());
  if (callee == "jacobian") return Value(autograd::jacobian_between(y, x, batched));
  const Shape of_sample(y.shape().begin() + (batched ? 1 : 0), y.shape().end());
  if (element_count(std::span<const Dim>(of_sample)).equals(1) != true)
    fail(ErrorCode::kConfig, "hessian: y must be one number", batched ? " per sample" : "",
         ", found ", y.type());
  return Value(autograd::hessian_between(y, x, batched));
}

using Derivative = Value (*)(const Positional&, const NamedValues&);
constexpr std::array<std::pair<std::string_view, Derivative>, 5> kDerivatives = {
    {{"grad", gradient},
     {"vjp", vector_jacobian},
     {"jvp", jacobian_vector},
     {"jacobian",
      [](const Positional& p, const NamedValues& n) { return matrix("jacobian", p, n); }},
     {"hessian",
      [](const Positional& p, const NamedValues& n) { return matrix("hessian", p, n); }}}};

}  // namespace

bool is_derivative_word(std::string_view name) {
  return std::any_of(kDerivatives.begin(), kDerivatives.end(),
                     [&](const auto& each) { return each.first == name; });
}

std::vector<std::string> derivative_words() {
  std::vector<std::string> out;
  for (const auto& [name, function] : kDerivatives) out.emplace_back(name);
  return out;
}

Value call_derivative(std::string_view name, const Positional& positional,
                      const NamedValues& named) {
  const auto found = std::find_if(kDerivatives.begin(), kDerivatives.end(),
                                  [&](const auto& each) { return each.first == name; });
  return found->second(positional, named);
}

bool differentiates(const Code& code) {
  return std::any_of(code.sites.begin(), code.sites.end(),
                     [](const CallSite& site) { return is_derivative_word(site.callee); });
}

bool differentiates(const Program& program) {
  return differentiates(program.model.code) ||
         std::any_of(program.functions.begin(), program.functions.end(),
                     [](const EntryPoint& entry) { return differentiates(entry.code); }) ||
         std::any_of(program.blocks.begin(), program.blocks.end(),
                     [](const auto& block) { return differentiates(block->code); });
}

}  // namespace paddle::lang
