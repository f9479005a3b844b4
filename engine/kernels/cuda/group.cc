#include "kernels/cuda/group.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "kernels/cuda/copies.h"
#include "kernels/cuda/group_call.h"
#include "kernels/cuda/program.h"
#include "kernels/elementwise/elementwise.h"

namespace paddle::cuda {
namespace {

/// Blocks enough to keep every GPU busy; threads go on to further elements.
constexpr int64_t kMaxBlocks = 132 * 32;

class GroupKernel final : public Kernel {
 public:
  GroupKernel(const FusedRequest& request, Group group, GroupCall call)
      : group_(std::move(group)), call_(std::move(call)) {
    const auto compiled = Program::of(request.target.device.index, std::move(group_.text));
    if (request.prepare.codegen) compiled->start();
    one_ = Entry(compiled, "group_1");
    wide_ = Entry(compiled, "group_wide");
  }

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    ArgumentWords words;
    call_.write_arguments(operands, results, context.scratch, context.stream->counters,
                          words.data());
    const int64_t width = call_.is_aligned(operands, results) ? group_.width : 1;
    const Entry& entry = width > 1 ? wide_ : one_;
    if (group_.form == GroupForm::kElements) {
      const int64_t blocks = (group_.size + kBlockThreads * width - 1) / (kBlockThreads * width);
      return entry.launch(context.stream, std::min(blocks, kMaxBlocks), words.data());
    }
    const int64_t per_block =
        group_.form == GroupForm::kRows ? kBlockThreads / group_.row_threads : 32 * width;
    entry.launch(context.stream, (group_.results + per_block - 1) / per_block, group_.chunks,
                 words.data());
  }
  size_t scratch_bytes() const override { return call_.scratch_bytes(); }
  std::string implementation() const override { return "cuda:group"; }

 private:
  Group group_;
  GroupCall call_;
  Entry one_, wide_;
};

std::unique_ptr<Kernel> group_kernel(const FusedRequest& request,
                                     const cpu::FusionProgram& program) {
  auto group = describe_group(request, program);
  if (!group) return nullptr;
  if (program.reductions.empty() ? group->size == 0 : group->results == 0) return nothing_to_do();
  GroupCall call(request, program, *group);
  if (call.size() > kMaxArgumentWords) return nullptr;
  return std::make_unique<GroupKernel>(request, std::move(*group), std::move(call));
}

/// A type of the same size that the generator knows, for copies; none for types of 16 bytes or
/// parts of a byte.
std::optional<DType> copied_as(DType type) {
  if (device_type(type)) return type;
  if (info(type).bits < 8) return std::nullopt;
  switch (item_size(type)) {
    case 1:
      return DType::kU8;
    case 2:
      return DType::kU16;
    case 4:
      return DType::kU32;
    case 8:
      return DType::kU64;
    default:
      return std::nullopt;
  }
}

/// Reads the only operand in this layout, stores it in order as the result's type.
std::unique_ptr<Kernel> copy_group(const KernelRequest& request, Layout source) {
  DType result = request.results[0].dtype;
  source.offset = 0;
  if (source.dtype == result) {
    const auto type = copied_as(result);
    if (!type) return prepare_strided_copy(request, source);
    source.dtype = result = *type;
  }
  if (!group_type(source.dtype) || !group_type(result)) return nullptr;
  FusedRequest group;
  group.shape = source.shape;
  group.results = {Layout::contiguous(result, source.shape)};
  group.operands = {source};
  group.target = request.target;
  group.prepare = request.prepare;
  cpu::FusionProgram program;
  cpu::FusionNode read;
  read.type = source.dtype;
  read.operand = 0;
  program.nodes.push_back(read);
  program.stores.push_back({0, 0});
  return group_kernel(group, program);
}

/// A reduction of the only operand, of any type.
std::unique_ptr<Kernel> reduce_single(const KernelRequest& request) {
  const Layout& x = request.operands[0];
  auto call = cpu::reduce_call(request.op, request.attrs, x.shape.size());
  if (!call || call->form == cpu::ReduceForm::kLogSumExp) return nullptr;
  const DType result = request.results[0].dtype;
  if (!group_type(x.dtype) || !group_type(result)) return nullptr;
  FusedRequest group;
  group.shape = x.shape;
  group.operands = {x};
  group.results = {request.results[0]};
  group.target = request.target;
  group.prepare = request.prepare;
  cpu::FusionProgram program;
  cpu::FusionNode read;
  read.operand = 0;
  if (call->reduction == cpu::Reduction::kAll || call->reduction == cpu::Reduction::kAny)
    read.type = DType::kBool;
  else if (is_float(result))
    read.type = is_float(x.dtype) ? cpu::compute_type(x.dtype) : DType::kF64;
  else
    read.type = is_float(x.dtype) ? result : x.dtype;
  program.nodes.push_back(read);
  std::sort(call->axes.begin(), call->axes.end());
  program.reductions.push_back({0, 0, *call, read.type, result});
  return group_kernel(group, program);
}

bool has_complex(const FusedRequest& request) {
  const auto is_one = [](const Layout& layout) { return is_complex(layout.dtype); };
  return std::ranges::any_of(request.operands, is_one) ||
         std::ranges::any_of(request.results, is_one);
}

/// An elementwise operation of complex numbers: the CPU's loop names the function.
std::optional<cpu::FusionProgram> complex_program(const FusedRequest& request) {
  if (request.steps.size() != 1) return std::nullopt;
  const FusedStep& operation = request.steps[0];
  std::vector<Layout> operands;
  for (const Layout& operand : request.operands)
    operands.push_back(Layout::contiguous(operand.dtype, {64}));
  const Layout result = Layout::contiguous(operation.result, {64});
  const auto kernel =
      prepare_kernel({*operation.op, operation.attrs, operands, std::span(&result, 1)});
  auto step = kernel ? cpu::any_elementwise_step(*kernel) : std::nullopt;
  if (!step || step->operands.size() != operands.size()) return std::nullopt;
  cpu::FusionProgram program;
  cpu::FusionNode apply;
  apply.kind = cpu::FusionNode::Kind::kApply;
  apply.type = step->result;
  for (size_t i = 0; i < operands.size(); ++i) {
    cpu::FusionNode read;
    read.type = step->operands[i];
    read.operand = static_cast<int>(i);
    program.nodes.push_back(std::move(read));
    apply.inputs.push_back(static_cast<int>(i));
  }
  apply.step = std::move(*step);
  program.nodes.push_back(std::move(apply));
  program.stores.push_back({static_cast<int>(operands.size()), 0});
  return program;
}

}  // namespace

std::unique_ptr<Kernel> prepare_group(const FusedRequest& request) {
  const auto program =
      has_complex(request) ? complex_program(request) : cpu::build_fusion_program(request);
  return program ? group_kernel(request, *program) : nullptr;
}

bool can_group(const Op& op) {
  const std::string_view name = op.name();
  if (name == "logsumexp") return false;
  return op.has(kElementwise) || op.def->view != nullptr || op.has(kReduction) ||
         name == "assign" || name == "detach" || name == "cast" || name == "reshape";
}

std::unique_ptr<Kernel> prepare_single(const KernelRequest& request) {
  const std::string_view name = request.op.name();
  const Layout& first = request.operands[0];
  if (request.results.size() != 1 || !first.present) return nullptr;
  if (name == "assign" || name == "detach" || name == "cast" ||
      ((name == "real" || name == "conj") && !is_complex(first.dtype)))
    return copy_group(request, first);
  if (request.op.def->view) {
    Layout source = first;
    source.offset = 0;
    const Layout view = request.op.def->view(source, request.attrs, request.results[0].shape);
    if (!view.present) return copy_group(request, first);
    if (view.offset != 0) return prepare_strided_copy(request, view);
    return copy_group(request, view);
  }
  if (request.op.has(kReduction)) return reduce_single(request);
  if (!request.op.has(kElementwise)) return nullptr;
  FusedRequest group;
  group.shape = request.results[0].shape;
  group.operands.assign(request.operands.begin(), request.operands.end());
  group.results = {request.results[0]};
  group.target = request.target;
  group.prepare = request.prepare;
  FusedStep step{&request.op, request.attrs, {}, request.results[0].dtype};
  for (size_t i = 0; i < group.operands.size(); ++i) {
    if (!group.operands[i].present) return nullptr;
    step.inputs.push_back(static_cast<int>(i));
  }
  group.steps.push_back(std::move(step));
  group.result_values = {static_cast<int>(group.operands.size())};
  return prepare_group(group);
}

}  // namespace paddle::cuda
