#include "ops/kernel.h"

#include <map>

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

}  // namespace

void register_kernel(std::string_view op, std::string_view backend, PrepareFn prepare) {
  auto& entries = kernels()[std::string(op)];
  entries.insert(entries.begin(), Entry{std::string(backend), prepare});
}

std::unique_ptr<Kernel> prepare_kernel(const KernelRequest& request) {
  const auto it = kernels().find(request.op.name());
  if (it == kernels().end()) return nullptr;
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
