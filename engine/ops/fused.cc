#include "ops/fused.h"

namespace paddle {
namespace {

std::vector<PrepareFusedFn>& backends() {
  static std::vector<PrepareFusedFn> list;
  return list;
}

}  // namespace

void register_fused(PrepareFusedFn prepare) { backends().push_back(prepare); }

std::unique_ptr<Kernel> prepare_fused(const FusedRequest& request) {
  for (auto it = backends().rbegin(); it != backends().rend(); ++it)
    if (auto kernel = (*it)(request)) return kernel;
  return nullptr;
}

bool can_fuse(const Op& op, const Attrs& attrs, std::span<const DType> operands, DType result) {
  constexpr int64_t kSome = 64;
  FusedRequest request;
  FusedStep step{&op, attrs, {}, result};
  for (const DType dtype : operands) {
    step.inputs.push_back(static_cast<int>(request.operands.size()));
    request.operands.push_back(Layout::contiguous(dtype, {kSome}));
  }
  request.result_values = {static_cast<int>(request.operands.size())};
  request.results = {Layout::contiguous(result, {kSome})};
  request.steps.push_back(std::move(step));
  return prepare_fused(request) != nullptr;
}

}  // namespace paddle
