// Updates of parameters by optimizers.

#include <algorithm>
#include <array>

#include "kernels/cuda/device_types.h"
#include "kernels/cuda/program.h"
#include "kernels/cuda/tables.h"
#include "kernels/optimizer/update_operands.h"
#include "ops/generated/optimizer.h"

namespace paddle::cuda {
namespace {

/// As in device/update.cuh.
struct UpdateArguments {
  const void *param, *grad, *state[3], *master;
  void *out, *new_state[3], *new_master;
  const void *rate, *step, *skip, *scale;
  int64_t size;
  double a, b, epsilon, decay, bound;
  int64_t flag;
};

struct Rule {
  const char* name;  ///< in device/update.cuh
  size_t states;
};

/// The rule and the numbers of an operation; none for others.
std::optional<Rule> rule_of(const KernelRequest& request, UpdateArguments& base) {
  const std::string_view name = request.op.name();
  if (name == "sgd_update") {
    base.decay = SgdUpdateAttrs(request.attrs).weight_decay;
    return Rule{"Sgd", 0};
  }
  if (name == "momentum_update") {
    const MomentumUpdateAttrs attrs(request.attrs);
    base.decay = attrs.weight_decay;
    base.a = attrs.momentum;
    base.flag = attrs.nesterov;
    return Rule{"Momentum", 1};
  }
  if (name == "adam_update") {
    const AdamUpdateAttrs attrs(request.attrs);
    base.a = attrs.beta1;
    base.b = attrs.beta2;
    base.epsilon = attrs.epsilon;
    base.decay = attrs.weight_decay;
    base.flag = attrs.decoupled;
    return Rule{"Adam", 2};
  }
  if (name == "adagrad_update") {
    const AdagradUpdateAttrs attrs(request.attrs);
    base.decay = attrs.weight_decay;
    base.epsilon = attrs.epsilon;
    return Rule{"Adagrad", 1};
  }
  if (name == "rmsprop_update") {
    const RmspropUpdateAttrs attrs(request.attrs);
    base.decay = attrs.weight_decay;
    base.a = attrs.momentum;
    base.b = attrs.rho;
    base.epsilon = attrs.epsilon;
    base.flag = attrs.centered;
    return Rule{"Rmsprop", 3};
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Kernel> prepare_update(const KernelRequest& request) {
  UpdateArguments base{};
  const auto rule = rule_of(request, base);
  if (!rule) return nullptr;
  const Layout &param = request.operands[0], &grad = request.operands[1];
  const size_t states = rule->states, master_at = 2 + states;
  const bool has_master = request.operands[master_at].present;
  const char* const compute = compute_name(param.dtype);
  if (!compute || !compute_name(grad.dtype)) return nullptr;
  if (param.size() == 0) return nothing_to_do();
  // Packs of elements have to be aligned: those of the widest type fill 32 bytes.
  std::string types = str("typedef ", compute, " Compute;\ntypedef ", device_type(param.dtype),
                          " Param;\ntypedef ", device_type(grad.dtype), " Grad;\n");
  for (size_t s = 0; s < 3; ++s) {
    const char* const type = s < states ? compute_name(request.operands[2 + s].dtype) : compute;
    if (!type) return nullptr;
    types += str("typedef ", s < states ? device_type(request.operands[2 + s].dtype) : compute,
                 " State", s, ";\n");
  }
  if (has_master && !compute_name(request.operands[master_at].dtype)) return nullptr;
  types += str("typedef ", has_master ? device_type(request.operands[master_at].dtype) : compute,
               " Master;\n");
  std::array<size_t, 4> scalars{};
  const std::array<const char*, 4> names = {"lr", "step", "skip", "scale"};
  const std::array<const char*, 4> aliases = {"Rate", "Step", "Skip", "Scale"};
  for (size_t i = 0; i < names.size(); ++i) {
    const int at = request.op.operand_index(names[i]);
    const bool present = at >= 0 && request.operands[static_cast<size_t>(at)].present;
    scalars[i] = present ? static_cast<size_t>(at) : request.operands.size();
    const char* const type =
        present ? device_type(request.operands[static_cast<size_t>(at)].dtype) : "float";
    if (!type) return nullptr;
    types += str("typedef ", type, " ", aliases[i], ";\n");
  }
  if (scalars[0] == request.operands.size()) return nullptr;
  base.size = param.size();
  base.bound = cpu::gradient_bound(request);
  const std::string text =
      program_text({"scalar"}, types) + std::string(device_text("update")) +
      str("PADDLE_KERNEL(update_wide, UpdateArguments) { update_all<", rule->name, ", ",
          has_master ? "true" : "false",
          ", 4>(arguments); }\nPADDLE_KERNEL(update_1, UpdateArguments) { "
          "update_all<",
          rule->name, ", ", has_master ? "true" : "false", ", 1>(arguments); }\n");
  const auto program = Program::of(request.target.device.index, text);
  if (request.prepare.codegen) program->start();
  const Entry wide(program, "update_wide"), one(program, "update_1");
  const size_t operand_count = request.operands.size();
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        UpdateArguments arguments = base;
        const auto scalar = [&](size_t i) -> const void* {
          return scalars[i] < operand_count ? operands[scalars[i]] : nullptr;
        };
        uintptr_t addresses = 0;
        const auto used = [&](void* pointer) {
          addresses |= reinterpret_cast<uintptr_t>(pointer);
          return pointer;
        };
        arguments.param = used(operands[0]);
        arguments.grad = used(operands[1]);
        arguments.out = used(results[0]);
        for (size_t s = 0; s < states; ++s) {
          arguments.state[s] = used(operands[2 + s]);
          arguments.new_state[s] = used(results[1 + s]);
        }
        if (has_master) {
          arguments.master = used(operands[master_at]);
          arguments.new_master = used(results[1 + states]);
        }
        arguments.rate = scalar(0);
        arguments.step = scalar(1);
        arguments.skip = scalar(2);
        arguments.scale = scalar(3);
        const bool aligned = addresses % 16 == 0;
        const int64_t each = kBlockThreads * (aligned ? 4 : 1);
        (aligned ? wide : one)
            .launch(context.stream, std::min<int64_t>((base.size + each - 1) / each, 132 * 16),
                    &arguments);
      },
      0, "cuda:update");
}

}  // namespace paddle::cuda
