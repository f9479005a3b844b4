#include "conformance/passes.h"

#include <algorithm>

#include "conformance/modules.h"
#include "conformance/results.h"
#include "inspect/both_modes.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle::conformance {
namespace {

std::shared_ptr<ir::Function> traced(const Example& example) {
  runtime::register_backends();
  auto function = std::make_shared<ir::Function>("check");
  ir::Tracer tracer(*function);
  const InterpreterScope scope(tracer);
  Tensors inputs;
  for (size_t i = 0; i < example.inputs.size(); ++i)
    inputs.push_back(tracer.input({ir::PortKind::kValue, str("x", i)},
                                  {example.inputs[i].dtype, to_shape(example.inputs[i].shape)}));
  size_t results = 0;
  for (const Tensor& t : example.function(inputs))
    if (t.defined()) tracer.output({ir::PortKind::kValue, str("y", results++)}, t);
  return function;
}

std::vector<Array> results_with(const Example& example, const std::vector<std::string>& passes) {
  const auto executable = runtime::compile(traced(example), {.added = passes}, {});
  std::vector<Array> out;
  for (const Array& a : executable->run(example.inputs)) out.push_back(inspect::own_copy(a));
  return out;
}

/// The text before and after the pass, without the others.
std::string text_after(const Example& example, const std::string& pass, std::string* before) {
  const auto function = traced(example);
  std::string last, out;
  compiler::Observer observe{[&](const ir::Function& f, const std::string& stage) {
    std::string now = ir::print(f);
    if (stage == pass) {
      *before = last;
      out = now;
    }
    last = std::move(now);
  }};
  runtime::optimize(*function, {.added = std::vector<std::string>{pass}}, observe);
  return out;
}

std::vector<Example> examples_of(const std::string& check, const Extent& extent) {
  const size_t share = extent.quick ? 4 : 1;
  if (check == "gradients") return chain_gradients(40 / share, extent.seed);
  if (check == "unusual") return unusual_functions();
  return chains(70 / share, extent.seed);
}

}  // namespace

const std::vector<std::string>& pass_checks() {
  static const std::vector<std::string> all = {"modules", "gradients", "unusual", "repeat"};
  return all;
}

std::string check_pass(const std::string& pass, const std::string& check, const Extent& extent) {
  const auto added = compiler::added_passes().find(pass);
  ensure(added != nullptr, pass, ": not registered");
  const std::vector<Example> examples = examples_of(check, extent);
  size_t changed = 0;
  for (size_t i = 0; i < examples.size(); ++i) {
    const auto at = [&](const std::string& what) { return str("module ", i, ": ", what); };
    try {
      std::string before, again;
      const std::string after = text_after(examples[i], pass, &before);
      changed += after != before;
      if (check == "repeat") {
        if (text_after(examples[i], pass, &again) != after)
          return at("it gives another module again");
        continue;
      }
      const std::string bad =
          compare_results(results_with(examples[i], {pass}), results_with(examples[i], {}),
                          added->keeps_bits, "the pass");
      if (!bad.empty()) return at(bad);
    } catch (const Error& e) {
      return at(first_line(e.what()));
    }
  }
  if (check == "modules" && changed == 0)
    return str(kSkip, "it changes none of the ", examples.size(), " modules");
  return "";
}

}  // namespace paddle::conformance
