#include "ops/core/kernel.h"

#include <map>
#include <utility>

namespace paddle {
namespace {

struct Entry {
  std::string backend;
  PrepareFn prepare;
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
  entries.insert(entries.begin(), Entry{std::string(backend), prepare});
}

std::unique_ptr<Kernel> prepare_kernel(const KernelRequest& request) {
  const auto it = kernels().find(request.op.name());
  if (it == kernels().end()) return nullptr;
  std::string wanted = wanted_backend();
  if (wanted.empty() && request.policy.choices && it->second.size() > 1) {
    std::vector<std::string> names;
    for (const Entry& entry : it->second) names.push_back(entry.backend);
    wanted = request.policy.choices->choose(request, ChoiceLevel::kBackend, names);
  }
  if (!wanted.empty()) {
    KernelRequest pinned = request;
    pinned.policy.backend_pinned = true;
    for (const Entry& entry : it->second)
      if (entry.backend == wanted)
        if (auto kernel = entry.prepare(pinned)) return kernel;
  }
  for (const Entry& entry : it->second)
    if (auto kernel = entry.prepare(request)) return kernel;
  return nullptr;
}

std::vector<std::string> kernel_backends(const Op& op) {
  std::vector<std::string> names;
  const auto it = kernels().find(op.name());
  if (it != kernels().end())
    for (const Entry& entry : it->second) names.push_back(entry.backend);
  return names;
}

bool has_kernel(const Op& op) { return kernels().count(op.name()) > 0; }

}  // namespace paddle
