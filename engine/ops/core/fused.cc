#include "ops/core/fused.h"

namespace paddle {
namespace {

std::vector<PrepareFusedFn>& backends() {
  static std::vector<PrepareFusedFn> list;
  return list;
}

std::vector<CanFuseEpilogueFn>& epilogue_queries() {
  static std::vector<CanFuseEpilogueFn> list;
  return list;
}

}  // namespace

void register_fused(PrepareFusedFn prepare) { backends().push_back(prepare); }

std::unique_ptr<Kernel> prepare_fused(const FusedRequest& request) {
  for (auto it = backends().rbegin(); it != backends().rend(); ++it)
    if (auto kernel = (*it)(request)) return kernel;
  return nullptr;
}

void register_can_fuse_epilogue(CanFuseEpilogueFn function) {
  epilogue_queries().push_back(function);
}

bool can_fuse_epilogue(std::span<const FusionMember> group, const FusionMember& next, DType dtype) {
  for (const CanFuseEpilogueFn function : epilogue_queries())
    if (function(group, next, dtype)) return true;
  return false;
}

bool can_fuse(const Op& op, const Attrs& attrs, size_t rank, std::span<const DType> operands,
              DType result) {
  FusedRequest request;
  request.shape = Dims(rank, 2);
  FusedStep step{&op, attrs, {}, result};
  for (const DType dtype : operands) {
    step.inputs.push_back(static_cast<int>(request.operands.size()));
    request.operands.push_back(Layout::contiguous(dtype, request.shape));
  }
  request.result_values = {static_cast<int>(request.operands.size())};
  request.results = {Layout::contiguous(result, op.has(kReduction) ? Dims() : request.shape)};
  request.steps.push_back(std::move(step));
  return prepare_fused(request) != nullptr;
}

}  // namespace paddle
