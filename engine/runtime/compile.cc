#include "runtime/compile.h"

#include "ops/fused.h"
#include "ops/quantized.h"
#include "runtime/batch_tiling.h"
#include "runtime/execute.h"

namespace paddle::runtime {
namespace {

/// Dims inside attributes do not decide whether a kernel is a map over elements: any number will
/// do.
Attrs some_attrs(const Attrs& attrs) {
  return bind_attrs(attrs, [](const std::string&) { return std::optional<int64_t>(1); });
}

bool fusable(const ir::Operation& operation) {
  std::vector<DType> operands;
  for (const ir::Value* v : operation.operands) operands.push_back(v->type.dtype);
  return can_fuse(*operation.op, some_attrs(operation.attrs),
                  operation.operands[0]->type.shape.size(), operands,
                  operation.results[0]->type.dtype);
}

bool joins(const std::vector<const ir::Operation*>& group, const ir::Operation& next) {
  const TensorType& made = group.back()->results[0]->type;
  for (const ir::Value* v : next.operands)
    if (!v || !same_type(v->type, made)) return false;
  for (const ir::Value* v : group[0]->operands)
    if (v && v->type.dtype != made.dtype) return false;
  std::vector<GroupMember> members;
  for (const ir::Operation* o : group) members.push_back({o->op, &o->attrs});
  return takes_along(members, {next.op, &next.attrs}, made.dtype);
}

/// True if the result is rounded to a type narrower than the one that it is computed in.
bool rounds(const ir::Operation& operation) {
  const DType result = operation.results[0]->type.dtype;
  return result == DType::kF16 || result == DType::kBF16;
}

}  // namespace

passes::PassOptions pass_options(const CompileOptions& options) {
  register_backends();  // what has a kernel stays whole when a pass traces it again
  passes::CanFuse can_fuse = fusable;
  if (options.exact)
    can_fuse = [](const ir::Operation& operation) {
      return !rounds(operation) && fusable(operation);
    };
  return {.evaluate = execute,
          .can_fuse = std::move(can_fuse),
          .takes_along = joins,
          .takes_integers = quantized::takes_integers,
          .fusion = options.fusion,
          .layout = options.layout && options.fusion && !options.exact,
          .rewrites = options.rewrites && options.fusion && !options.exact,
          .rules = options.rules};
}

std::unique_ptr<Executable> optimized(std::shared_ptr<ir::Function> function,
                                      const CompileOptions& compile, ExecutableOptions options,
                                      const passes::Observer& observe) {
  passes::run_standard(*function, pass_options(compile), observe);
  options.plan.codegen = compile.codegen;
  options.plan.policy = compile.policy;
  if (compile.exact) options.plan.policy.allow_winograd = false;
  options.plan.tile_bytes = compile.batch_tiling && !compile.exact ? tile_working_set() : 0;
  return std::make_unique<Executable>(std::move(function), std::move(options));
}

}  // namespace paddle::runtime
