#include "kernels/cuda/product_group.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "kernels/cuda/group_call.h"
#include "kernels/cuda/prepare.h"

namespace paddle::cuda {
namespace {

class ProductGroup final : public Kernel {
 public:
  ProductGroup(ProductLaunch product, std::array<int, 3> inputs, GroupCall group,
               const std::shared_ptr<Program>& program, bool wide)
      : product_(std::move(product)),
        inputs_(inputs),
        group_(std::move(group)),
        one_(program, "group_1") {
    if (wide) wide_ = Entry(program, "group_wide");
    has_wide_ = wide;
  }

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    const auto input = [&](size_t i) { return inputs_[i] < 0 ? nullptr : operands[inputs_[i]]; };
    const MatmulArguments product =
        product_.arguments(context.stream, input(0), input(1), input(2), nullptr, context.scratch);
    constexpr size_t kProductWords = sizeof product / sizeof(uint64_t);
    ArgumentWords words;
    std::memcpy(words.data(), &product, sizeof product);
    group_.write_arguments(operands, results, context.scratch + sums_offset(),
                           context.stream->counters + kSplitCounters * sizeof(uint32_t),
                           words.data() + kProductWords);
    const Entry& entry = has_wide_ && group_.is_aligned(operands, results) ? wide_ : one_;
    entry.launch(context.stream, product_.tiles(), product_.parts(), words.data());
  }
  size_t scratch_bytes() const override { return sums_offset() + group_.scratch_bytes(); }
  std::string implementation() const override { return "cuda:product_group"; }

 private:
  /// Of the sums of columns in scratch, which the sums of a split product precede.
  size_t sums_offset() const { return scratch_piece(product_.scratch_bytes()); }

  ProductLaunch product_;
  std::array<int, 3> inputs_;  ///< x, y and bias: operands of the group, -1 if absent
  GroupCall group_;
  Entry one_, wide_;
  bool has_wide_ = false;
};

}  // namespace

bool begins_product_group(const Op& op, std::span<const DType> operands) {
  return is_product(op) &&
         std::ranges::all_of(operands, [](DType type) { return compute_name(type) != nullptr; });
}

std::optional<FirstProduct> first_product(const FusedRequest& request) {
  const FusedStep& first = request.steps[0];
  if (!is_product(*first.op) || request.steps.size() < 2 || first.results.size() != 1)
    return std::nullopt;
  std::vector<Layout> operands;
  std::array<int, 3> inputs = {-1, -1, -1};
  for (size_t i = 0; i < first.inputs.size(); ++i) {
    inputs[i] = first.inputs[i];
    operands.emplace_back().present = false;
    if (inputs[i] >= 0) operands.back() = request.operands[static_cast<size_t>(inputs[i])];
  }
  auto product = product_of({.op = *first.op,
                             .attrs = first.attrs,
                             .operands = operands,
                             .results = first.results,
                             .target = request.target,
                             .prepare = request.prepare});
  if (!product) return std::nullopt;
  return FirstProduct{std::move(*product), inputs};
}

FusedRequest after_product(const FusedRequest& request) {
  FusedRequest rest = request;
  rest.operands.push_back(request.steps[0].results[0]);
  rest.steps.erase(rest.steps.begin());
  return rest;
}

std::unique_ptr<Kernel> prepare_product_group(const FusedRequest& request) {
  const auto first = first_product(request);
  if (!first) return nullptr;
  const Product& product = first->product;
  if (!compute_name(product.x) || !compute_name(product.out)) return nullptr;
  const auto launch = ProductLaunch::divided(product, true);
  if (!launch) return nullptr;
  const FusedRequest rest = after_product(request);
  const auto program = cpu::build_fusion_program(rest);
  if (!program) return nullptr;
  const GroupProduct source{static_cast<int>(request.operands.size()), launch->types(),
                            compute_name(product.x), product.n,
                            launch->row_tiles() * launch->batches()};
  auto group = describe_group(rest, *program, &source);
  if (!group) return nullptr;
  if (group->size == 0) return program->reductions.empty() ? nothing_to_do() : nullptr;
  GroupCall call(rest, *program, *group);
  if (call.size() + sizeof(MatmulArguments) / sizeof(uint64_t) > kMaxArgumentWords ||
      (!program->reductions.empty() && launch->column_tiles() > kStreamCounters - kSplitCounters))
    return nullptr;
  const auto compiled = Program::of(request.target.device.index, std::move(group->text));
  if (request.prepare.codegen) compiled->start();
  return std::make_unique<ProductGroup>(*launch, first->inputs, std::move(call), compiled,
                                        group->width > 1);
}

}  // namespace paddle::cuda
