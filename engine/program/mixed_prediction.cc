#include "program/mixed_prediction.h"

#include "autograd/autocast.h"
#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/generated/math.h"

namespace paddle::program {

std::shared_ptr<ir::Function> in_mixed_precision(ir::Function& function, DType low) {
  auto out = std::make_shared<ir::Function>(function.name, function.target);
  ir::Tracer tracer(*out);
  const InterpreterScope below(tracer);
  Tensors inputs, results;
  for (size_t i = 0; i < function.inputs.size(); ++i)
    inputs.push_back(tracer.input(function.inputs[i], function.body.arguments[i]->type));
  {
    autograd::AutocastOptions options;
    options.low = low;
    autograd::Autocast autocast(options);
    const InterpreterScope above(autocast);
    results = ir::replay(function, inputs);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const DType wanted = function.body.results[i]->type.dtype;
    tracer.output(function.outputs[i],
                  results[i].dtype() == wanted ? results[i] : ops::cast(results[i], wanted));
  }
  out->constraints = function.constraints;
  return out;
}

}  // namespace paddle::program
