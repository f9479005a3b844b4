#include "ops/core/kernel.h"

#include <map>
#include <utility>

#include "ops/core/backend.h"

namespace paddle {
namespace {

struct Entry {
  std::string backend;
  PrepareFn prepare;
  int16_t device_kind;
};

std::map<std::string, std::vector<Entry>, std::less<>>& kernels() {
  static std::map<std::string, std::vector<Entry>, std::less<>> table;
  return table;
}

/// The backend that BackendScope asks for; empty for none.
std::string& wanted_backend() {
  thread_local std::string name;
  return name;
}

}  // namespace

BackendScope::BackendScope(std::string backend)
    : before_(std::exchange(wanted_backend(), std::move(backend))) {}
BackendScope::~BackendScope() { wanted_backend() = before_; }

void register_kernel(std::string_view op, std::string_view backend, PrepareFn prepare) {
  auto& entries = kernels()[std::string(op)];
  const Backend* const owner = find_backend(backend);
  ensure(owner != nullptr, "kernel of ", op, ": there is no backend '", backend, "'");
  entries.insert(entries.begin(), Entry{std::string(backend), prepare, owner->device_kind});
}

namespace {

/// The kernels of one device, in the order in which they are asked.
std::vector<const Entry*> entries_of(const Op& op, Device device) {
  std::vector<const Entry*> out;
  if (const auto it = kernels().find(op.name()); it != kernels().end())
    for (const Entry& entry : it->second)
      if (entry.device_kind == device.kind) out.push_back(&entry);
  return out;
}

}  // namespace

std::unique_ptr<Kernel> prepare_kernel(const KernelRequest& request) {
  const std::vector<const Entry*> entries = entries_of(request.op, request.device);
  std::string wanted = wanted_backend();
  if (wanted.empty() && request.policy.choices && entries.size() > 1) {
    std::vector<std::string> names;
    for (const Entry* entry : entries) names.push_back(entry->backend);
    wanted = request.policy.choices->choose(request, ChoiceLevel::kBackend, names);
  }
  if (!wanted.empty()) {
    KernelRequest pinned = request;
    pinned.policy.backend_pinned = true;
    for (const Entry* entry : entries)
      if (entry->backend == wanted)
        if (auto kernel = entry->prepare(pinned)) return kernel;
  }
  for (const Entry* entry : entries)
    if (auto kernel = entry->prepare(request)) return kernel;
  if (!request.device.is_cpu())
    for (const Backend* backend : backends_of(request.device))
      if (backend->prepare)
        if (auto kernel = backend->prepare(request)) return kernel;
  return nullptr;
}

std::vector<std::string> kernel_backends(const Op& op) {
  std::vector<std::string> names;
  const auto it = kernels().find(op.name());
  if (it != kernels().end())
    for (const Entry& entry : it->second) names.push_back(entry.backend);
  return names;
}

bool has_kernel(const Op& op, Device device) {
  if (const auto it = kernels().find(op.name()); it != kernels().end())
    for (const Entry& entry : it->second)
      if (entry.device_kind == device.kind) return true;
  if (device.is_cpu()) return false;
  for (const Backend* backend : backends_of(device))
    if (backend->has_kernel && backend->has_kernel(op)) return true;
  return false;
}

}  // namespace paddle
