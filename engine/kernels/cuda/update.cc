// Updates of parameters by optimizers.

#include <algorithm>
#include <array>

#include "kernels/cuda/device_types.h"
#include "kernels/cuda/prepare.h"
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

/// As in device/update.cuh: as many as a kernel takes.
constexpr size_t kMergedUpdates = 22;
struct MergedArguments {
  UpdateArguments updates[kMergedUpdates];
};
static_assert(sizeof(MergedArguments) <= kMaxArgumentBytes);

/// The update of one parameter, and where its operands are.
struct Update {
  UpdateArguments base{};
  size_t states = 0, operand_count = 0, result_count = 0;
  size_t master_at = 0;             ///< 0: none
  std::array<size_t, 4> scalars{};  ///< operands; the number of operands where there is none

  /// The arguments of a run, and whether all addresses are those of 16 bytes.
  bool fill(UpdateArguments& arguments, void* const* operands, void* const* results) const {
    arguments = base;
    uintptr_t addresses = 0;
    const auto used = [&](void* pointer) {
      addresses |= reinterpret_cast<uintptr_t>(pointer);
      return pointer;
    };
    const auto scalar = [&](size_t i) -> const void* {
      return scalars[i] < operand_count ? operands[scalars[i]] : nullptr;
    };
    arguments.param = used(operands[0]);
    arguments.grad = used(operands[1]);
    arguments.out = used(results[0]);
    for (size_t s = 0; s < states; ++s) {
      arguments.state[s] = used(operands[2 + s]);
      arguments.new_state[s] = used(results[1 + s]);
    }
    if (master_at > 0) {
      arguments.master = used(operands[master_at]);
      arguments.new_master = used(results[1 + states]);
    }
    arguments.rate = scalar(0);
    arguments.step = scalar(1);
    arguments.skip = scalar(2);
    arguments.scale = scalar(3);
    return addresses % 16 == 0;
  }
};

int64_t blocks_of(int64_t size, bool aligned, int64_t most) {
  const int64_t each = kBlockThreads * (aligned ? 4 : 1);
  return std::min<int64_t>((size + each - 1) / each, most);
}

/// Several updates with one program.
class MergedUpdates final : public Kernel {
 public:
  MergedUpdates(std::vector<const Update*> updates, const std::shared_ptr<Program>& program)
      : updates_(std::move(updates)), wide_(program, "merged_wide"), one_(program, "merged_1") {}

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    constexpr int64_t kMaxBlocks = 132 * 4;  // of a parameter
    MergedArguments arguments;
    for (size_t begin = 0; begin < updates_.size(); begin += kMergedUpdates) {
      const size_t count = std::min(kMergedUpdates, updates_.size() - begin);
      bool aligned = true;
      int64_t largest = 0;
      for (size_t i = 0; i < count; ++i) {
        const Update& update = *updates_[begin + i];
        aligned = update.fill(arguments.updates[i], operands, results) && aligned;
        largest = std::max(largest, update.base.size);
        operands += update.operand_count;
        results += update.result_count;
      }
      (aligned ? wide_ : one_)
          .launch(context.stream, blocks_of(largest, aligned, kMaxBlocks),
                  static_cast<int64_t>(count), &arguments);
    }
  }
  std::string implementation() const override { return "cuda:updates"; }

 private:
  std::vector<const Update*> updates_;
  Entry wide_, one_;
};

class UpdateKernel final : public Kernel {
 public:
  UpdateKernel(const Update& update, const std::shared_ptr<Program>& program)
      : update_(update),
        program_(program),
        wide_(program, "update_wide"),
        one_(program, "update_1") {}

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    constexpr int64_t kMaxBlocks = 132 * 16;
    UpdateArguments arguments;
    const bool aligned = update_.fill(arguments, operands, results);
    (aligned ? wide_ : one_)
        .launch(context.stream, blocks_of(update_.base.size, aligned, kMaxBlocks), &arguments);
  }
  std::string implementation() const override { return "cuda:update"; }
  const void* merge_key() const override { return program_.get(); }
  std::unique_ptr<Kernel> merged(std::span<const Kernel* const> kernels) const override {
    std::vector<const Update*> updates;
    for (const Kernel* const kernel : kernels)
      updates.push_back(&static_cast<const UpdateKernel*>(kernel)->update_);
    return std::make_unique<MergedUpdates>(std::move(updates), program_);
  }

 private:
  Update update_;
  std::shared_ptr<Program> program_;
  Entry wide_, one_;
};

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
  Update update;
  auto& scalars = update.scalars;
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
  update.base = base;
  update.states = states;
  update.master_at = has_master ? master_at : 0;
  update.operand_count = request.operands.size();
  update.result_count = request.results.size();
  const auto entry = [&](const char* name, const char* form, const char* arguments, int width) {
    return entry_text(
        name, arguments,
        str(form, "<", rule->name, ", ", has_master ? "true" : "false", ", ", width, ">"));
  };
  const std::string text = program_text({"math", "scalar"}, types) +
                           std::string(device_text("update")) +
                           entry("update_wide", "update_all", "UpdateArguments", 4) +
                           entry("update_1", "update_all", "UpdateArguments", 1) +
                           entry("merged_wide", "update_each", "MergedArguments", 4) +
                           entry("merged_1", "update_each", "MergedArguments", 1);
  const auto program = start_program(request, text);
  return std::make_unique<UpdateKernel>(update, program);
}

}  // namespace paddle::cuda
