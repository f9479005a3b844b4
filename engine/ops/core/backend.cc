#include "ops/core/backend.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>

namespace paddle {
namespace {

/// All backends at one time. Never changed once it can be seen, and never freed, since kernels are
/// prepared in other threads while backends are added.
struct Backends {
  std::vector<const Backend*> all;  ///< in the order of registration
  /// By kind of device, in the order in which they are asked.
  std::map<int16_t, std::vector<const Backend*>> by_device;
};

/// All of them since the start; guarded by `registration`.
std::vector<std::unique_ptr<const Backends>>& all_backends() {
  static auto& all = *new std::vector<std::unique_ptr<const Backends>>;
  return all;
}

std::atomic<const Backends*>& current_backends() {
  static std::atomic<const Backends*> current{
      all_backends().emplace_back(std::make_unique<const Backends>()).get()};
  return current;
}

const Backends& backends() { return *current_backends().load(std::memory_order_acquire); }

std::mutex& registration() {
  static std::mutex mutex;
  return mutex;
}

const Backend* find_in(const Backends& backends, std::string_view name) {
  for (const Backend* backend : backends.all)
    if (backend->name == name) return backend;
  return nullptr;
}

}  // namespace

void add_backends(const std::vector<Backend>& added, const SourceLocation& where) {
  const std::lock_guard lock(registration());
  auto next = std::make_unique<Backends>(backends());
  std::vector<std::unique_ptr<const Backend>> kept;
  for (const Backend& backend : added) {
    const auto reject = [&](const std::string& why) {
      throw Error(ErrorCode::kUsage, str("backend '", backend.name ? backend.name : "", "' ", why),
                  where);
    };
    if (!backend.name || !*backend.name) reject("has no name");
    if (!backend.prepare != !backend.has_kernel) reject("has one of prepare and has_kernel only");
    if (find_in(*next, backend.name)) reject("is already registered");
    const Backend* const place = kept.emplace_back(std::make_unique<const Backend>(backend)).get();
    next->all.push_back(place);
    std::vector<const Backend*>& of_device = next->by_device[backend.device_kind];
    of_device.insert(of_device.begin(), place);
  }
  for (auto& backend : kept) static_cast<void>(backend.release());  // in `next`
  const Backends* const current = all_backends().emplace_back(std::move(next)).get();
  current_backends().store(current, std::memory_order_release);
  advance_registry_epoch();
}

void register_backend(const Backend& backend) { add_backends({backend}, {}); }

const Backend* find_backend(std::string_view name) { return find_in(backends(), name); }

const std::vector<const Backend*>& backends_of(Device device) {
  static const std::vector<const Backend*> kNone;
  const Backends& now = backends();  // others may be added meanwhile
  const auto it = now.by_device.find(device.kind);
  return it == now.by_device.end() ? kNone : it->second;
}

bool has_int8_kernel(const TargetInfo& target, DType x, const Array& weight) {
  return std::ranges::any_of(backends_of(target.device), [&](const Backend* b) {
    return b->has_int8_kernel && b->has_int8_kernel(target, x, weight);
  });
}

bool has_int8_matmul(const TargetInfo& target, DType x, DType y) {
  return std::ranges::any_of(backends_of(target.device), [&](const Backend* b) {
    return b->has_int8_matmul && b->has_int8_matmul(target, x, y);
  });
}

TargetInfo resolved(const TargetInfo& target) {
  TargetInfo out = target;
  if (!out.architecture.empty()) return out;
  const std::vector<const Backend*>& backends = backends_of(target.device);
  for (auto backend = backends.rbegin(); backend != backends.rend(); ++backend)
    if ((*backend)->describe) (*backend)->describe(out);
  return out;
}

std::unique_ptr<Kernel> prepare_fused(const FusedRequest& request) {
  for (const Backend* backend : backends_of(request.target.device))
    if (backend->prepare_fused)
      if (auto kernel = backend->prepare_fused(request)) return kernel;
  return nullptr;
}

bool can_fuse_epilogue(const TargetInfo& target, std::span<const FusionMember> group,
                       const FusionMember& next, DType dtype) {
  return std::ranges::any_of(backends_of(target.device), [&](const Backend* b) {
    return b->can_fuse_epilogue && b->can_fuse_epilogue(target, group, next, dtype);
  });
}

bool fuses_around(const TargetInfo& target, const Op& op, std::span<const DType> operands,
                  Around around) {
  return std::ranges::any_of(backends_of(target.device), [&](const Backend* b) {
    return b->fuses_around && b->fuses_around(op, operands, around);
  });
}

bool can_fuse(const TargetInfo& target, const Op& op, const Attrs& attrs, size_t rank,
              std::span<const DType> operands, DType result) {
  FusedRequest request;
  request.target = target;
  request.prepare.codegen = false;  // one operation, which is not worth compiling
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
