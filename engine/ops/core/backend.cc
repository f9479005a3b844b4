#include "ops/core/backend.h"

#include <algorithm>
#include <deque>
#include <map>

namespace paddle {
namespace {

/// In order of registration; addresses stay valid.
std::deque<Backend>& backends() {
  static std::deque<Backend> list;
  return list;
}

/// By kind of device, in the order in which they are asked.
std::map<int16_t, std::vector<const Backend*>>& by_device() {
  static std::map<int16_t, std::vector<const Backend*>> table;
  return table;
}

}  // namespace

void register_backend(const Backend& backend) {
  ensure(!backend.prepare == !backend.has_kernel, backend.name,
         ": prepare and has_kernel come together");
  const Backend& kept = backends().emplace_back(backend);
  std::vector<const Backend*>& of_device = by_device()[backend.device_kind];
  of_device.insert(of_device.begin(), &kept);
}

const Backend* find_backend(std::string_view name) {
  for (const Backend& backend : backends())
    if (backend.name == name) return &backend;
  return nullptr;
}

const std::vector<const Backend*>& backends_of(Device device) {
  static const std::vector<const Backend*> kNone;
  const auto it = by_device().find(device.kind);
  return it == by_device().end() ? kNone : it->second;
}

bool has_int8_kernel(const Target& target, DType x, const Array& weight) {
  return std::ranges::any_of(backends_of(target.device), [&](const Backend* b) {
    return b->has_int8_kernel && b->has_int8_kernel(x, weight);
  });
}

bool has_int8_matmul(const Target& target) {
  return std::ranges::any_of(backends_of(target.device), [](const Backend* b) {
    return b->has_int8_matmul && b->has_int8_matmul();
  });
}

std::unique_ptr<Kernel> prepare_fused(const FusedRequest& request) {
  for (const Backend* backend : backends_of(request.target.device))
    if (backend->prepare_fused)
      if (auto kernel = backend->prepare_fused(request)) return kernel;
  return nullptr;
}

bool can_fuse_epilogue(const Target& target, std::span<const FusionMember> group,
                       const FusionMember& next, DType dtype) {
  return std::ranges::any_of(backends_of(target.device), [&](const Backend* b) {
    return b->can_fuse_epilogue && b->can_fuse_epilogue(group, next, dtype);
  });
}

bool can_fuse(const Target& target, const Op& op, const Attrs& attrs, size_t rank,
              std::span<const DType> operands, DType result) {
  FusedRequest request;
  request.target = target;
  request.target.codegen = false;  // one operation, which is not worth compiling
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
