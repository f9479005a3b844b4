#include "train/step/step_minimize.h"

#include "autograd/minimize.h"
#include "ops/core/operators.h"
#include "ops/generated/math.h"

namespace paddle::train {
namespace {

int64_t count_of(const std::string& callee, const std::string& name, const lang::Value& value,
                 int64_t least) {
  constexpr int64_t kMax = 1'000'000;
  if (!value.is<int64_t>() || value.integer() < least || value.integer() > kMax)
    fail(ErrorCode::kConfig, callee, ": ", name, "= takes an integer from ", least, " to ", kMax,
         ", found ", value.describe());
  return value.integer();
}

double positive(const std::string& callee, const std::string& name, const lang::Value& value) {
  if (!value.is_number() || !(value.number() >= 0))
    fail(ErrorCode::kConfig, callee, ": ", name, "= takes a number from 0, found ",
         value.describe());
  return value.number();
}

autograd::MinimizeOptions options_of(const std::string& callee, bool limited_memory,
                                     const lang::NamedValues& named) {
  autograd::MinimizeOptions o;
  o.limited_memory = limited_memory;
  if (limited_memory) o.tolerance_grad = o.tolerance_change = 1e-8;
  for (const auto& [name, value] : named) {
    if (name == "history_size" && limited_memory) {
      o.history = count_of(callee, name, value, 1);
    } else if (name == "max_iters") {
      o.iterations = count_of(callee, name, value, 0);
    } else if (name == "max_line_search_iters") {
      o.search_iterations = count_of(callee, name, value, 1);
    } else if (name == "tolerance_grad") {
      o.tolerance_grad = positive(callee, name, value);
    } else if (name == "tolerance_change") {
      o.tolerance_change = positive(callee, name, value);
    } else if (name == "initial_step_length") {
      o.step_length = positive(callee, name, value);
    } else if (name == "initial_inverse_hessian_estimate" && value.is_tensor()) {
      o.inverse_hessian = value.tensor();
    } else {
      std::vector<std::string> known = {"max_iters",
                                        "tolerance_grad",
                                        "tolerance_change",
                                        "initial_inverse_hessian_estimate",
                                        "max_line_search_iters",
                                        "initial_step_length"};
      if (limited_memory) known.emplace_back("history_size");
      fail(ErrorCode::kConfig, callee, ": unknown argument '", name, "'",
           did_you_mean(name, known));
    }
  }
  return o;
}

}  // namespace

lang::HostFunction minimize_function(bool limited_memory) {
  const std::string callee = limited_memory ? "minimize_lbfgs" : "minimize_bfgs";
  return [=](std::vector<lang::Value> positional, lang::NamedValues named,
             const config::SourcePosition& where) {
    const auto* const target =
        positional.size() == 2 ? positional[0].get<lang::Callable>() : nullptr;
    if (!target || !target->host || !positional[1].is_tensor())
      fail(ErrorCode::kConfig, callee,
           " takes a model that gives one number, and the tensor that "
           "the search starts from: ",
           callee, "(model, x)");
    const TensorFn objective = [&](const Tensors& x) -> Tensors {
      const lang::Value value = (*target->host)({lang::Value(x[0])}, {}, where);
      if (!value.is_tensor())
        fail(ErrorCode::kConfig, callee, ": ", target->name, " gives ", value.describe(),
             "; expected one number");
      return {value.tensor()};
    };
    const autograd::Minimum found = autograd::minimize(objective, positional[1].tensor(),
                                                       options_of(callee, limited_memory, named));
    lang::ValueList out = {found.converged, found.evaluations, found.position, found.value,
                           found.gradient};
    if (!limited_memory) out.emplace_back(found.inverse_hessian);
    return lang::Value::tuple(std::move(out));
  };
}

}  // namespace paddle::train
