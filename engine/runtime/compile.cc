#include "runtime/compile.h"

#include "runtime/execute.h"
#include "tensor/device_functions.h"

namespace paddle::runtime {
namespace {

/// Passes compute with constants on the host, whatever the device.
std::vector<Array> evaluate(const Op& op, const Attrs& attrs,
                            const std::vector<const Array*>& operands,
                            const std::vector<TensorType>& results) {
  return execute(op, attrs, operands, results);
}

}  // namespace

std::vector<compiler::Pass> pass_pipeline(const compiler::CompileOptions& options) {
  register_backends();  // passes keep operations whole for which there is a kernel
  return compiler::pass_pipeline(options, evaluate);
}

void optimize(ir::Function& function, const compiler::CompileOptions& options,
              const compiler::Observer& observe) {
  register_backends();
  compiler::run_pipeline(function, compiler::pass_pipeline(options, evaluate), observe);
}

void optimize_for_saving(ir::Function& function) {
  register_backends();
  compiler::run_pipeline(function, compiler::saving_pipeline(evaluate));
}

std::unique_ptr<Executable> compile(std::shared_ptr<ir::Function> function,
                                    const compiler::CompileOptions& compile,
                                    ExecutableOptions options, const compiler::Observer& observe) {
  if (const Device device = compile.target.device;
      compile.graphs == compiler::GraphMode::kOn && !has_graphs(device))
    fail(ErrorCode::kUsage, "compile.graphs: the device ", device.text(),
         " cannot record work; expected auto or off");
  optimize(*function, compile, observe);
  options.plan.target = resolved(compile.target);
  options.plan.prepare = compile.prepare;
  if (compile.exact) options.plan.prepare.allow_winograd = false;
  options.plan.tile_bytes =
      compile.batch_tiling && !compile.exact ? options.plan.target.tile_bytes : 0;
  options.plan.graphs = compile.graphs;
  return std::make_unique<Executable>(std::move(function), std::move(options));
}

}  // namespace paddle::runtime
