#include "ops/core/kernel.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "ops/core/backend.h"
#include "ops/core/engine_kernels.h"

namespace paddle {
namespace {

struct Entry {
  std::string backend;
  PrepareFn prepare;
};

using KernelTable = std::map<std::string, std::vector<Entry>, std::less<>>;

/// By kind of device; entries of an operation are in the order in which they are asked.
std::map<int16_t, KernelTable>& kernels() {
  static std::map<int16_t, KernelTable> tables;
  return tables;
}

std::span<const Entry> entries_of(const Op& op, Device device) {
  const auto table = kernels().find(device.kind);
  if (table == kernels().end()) return {};
  const auto it = table->second.find(op.name());
  return it == table->second.end() ? std::span<const Entry>() : it->second;
}

/// The kernels of `add_kernels`. Never changed once published, so that readers need no lock.
struct AddedKernels {
  struct Item {
    AddedKernel kernel;
    std::string backend;
    int16_t device_kind;
  };
  std::map<std::string, std::vector<Item>, std::less<>> by_op;
};

/// Null as long as nothing was added.
std::atomic<const AddedKernels*>& added_kernels() {
  static std::atomic<const AddedKernels*> current = nullptr;
  return current;
}

std::span<const AddedKernels::Item> added_of(const Op& op) {
  const AddedKernels* const all = added_kernels().load(std::memory_order_acquire);
  if (!all) return {};
  const auto it = all->by_op.find(op.name());
  return it == all->by_op.end() ? std::span<const AddedKernels::Item>() : it->second;
}

/// The backend that BackendScope asks for; empty for none.
std::string& wanted_backend() {
  thread_local std::string name;
  return name;
}

/// Whether kernels that were added are left out on this thread.
bool& engine_kernels_only() {
  thread_local bool only = false;
  return only;
}

}  // namespace

EngineKernelScope::EngineKernelScope() : before_(std::exchange(engine_kernels_only(), true)) {}
EngineKernelScope::~EngineKernelScope() { engine_kernels_only() = before_; }

BackendScope::BackendScope(std::string backend)
    : before_(std::exchange(wanted_backend(), std::move(backend))) {}
BackendScope::~BackendScope() { wanted_backend() = before_; }

bool backend_is_wanted() { return !wanted_backend().empty() || engine_kernels_only(); }

void register_kernel(std::string_view op, std::string_view backend, PrepareFn prepare) {
  const Backend* const owner = find_backend(backend);
  ensure(owner != nullptr, "kernel of ", op, ": unknown backend '", backend, "'");
  auto& entries = kernels()[owner->device_kind][std::string(op)];
  entries.insert(entries.begin(), Entry{std::string(backend), prepare});
}

void add_kernels(std::span<const AddedKernel> added) {
  static std::mutex mutex;
  static std::deque<AddedKernels> snapshots;  // all of them, since a reader may have one
  const std::lock_guard lock(mutex);
  const AddedKernels* const before = added_kernels().load(std::memory_order_acquire);
  AddedKernels next = before ? *before : AddedKernels();
  for (const AddedKernel& kernel : added) {
    const Op* const op = find_op(kernel.op);
    if (!op) fail(ErrorCode::kUsage, "a kernel of the unknown operation '", kernel.op, "'");
    const Backend* const owner = find_backend(kernel.backend);
    if (!owner)
      fail(ErrorCode::kUsage, "kernel of ", kernel.op, ": unknown backend '", kernel.backend, "'");
    auto& items = next.by_op[std::string(op->name())];
    items.insert(items.begin(), {kernel, std::string(kernel.backend), owner->device_kind});
  }
  snapshots.push_back(std::move(next));
  added_kernels().store(&snapshots.back(), std::memory_order_release);
  advance_registry_epoch();
}

namespace {

/// The first of the added kernels that does not decline; `backend` is empty for any.
std::unique_ptr<Kernel> prepare_added(const KernelRequest& request, const std::string& backend) {
  if (engine_kernels_only()) return nullptr;
  for (const AddedKernels::Item& item : added_of(request.op))
    if (item.device_kind == request.target.device.kind &&
        (backend.empty() || item.backend == backend))
      if (auto kernel = item.kernel.prepare(request, item.kernel.context)) return kernel;
  return nullptr;
}

std::unique_ptr<Kernel> prepare_first(const KernelRequest& request) {
  if (auto kernel = prepare_added(request, wanted_backend())) return kernel;
  const std::span<const Entry> entries = entries_of(request.op, request.target.device);
  std::string wanted = wanted_backend();
  if (wanted.empty() && request.prepare.choices && entries.size() > 1) {
    std::vector<std::string> names;
    for (const Entry& entry : entries) names.push_back(entry.backend);
    wanted = request.prepare.choices->choose(request, ChoiceLevel::kBackend, names);
  }
  if (!wanted.empty()) {
    KernelRequest pinned = request;
    pinned.prepare.backend_pinned = true;
    for (const Entry& entry : entries)
      if (entry.backend == wanted)
        if (auto kernel = entry.prepare(pinned)) return kernel;
  }
  for (const Entry& entry : entries)
    if (auto kernel = entry.prepare(request)) return kernel;
  for (const Backend* backend : backends_of(request.target.device))
    if (backend->prepare)
      if (auto kernel = backend->prepare(request)) return kernel;
  return nullptr;
}

}  // namespace

std::unique_ptr<Kernel> prepare_kernel(const KernelRequest& request) {
  try {
    return prepare_first(request);
  } catch (const std::bad_alloc&) {
    // Tables of a kernel may be as long as an axis of its result.
    fail(ErrorCode::kDevice, request.op.name(), ": not enough memory to prepare a kernel for ",
         request.results.empty() ? "" : str(request.results[0].shape));
  }
}

std::vector<std::string> kernel_backends(const Op& op) {
  std::vector<std::string> names;
  for (const AddedKernels::Item& item : added_of(op)) names.push_back(item.backend);
  for (const auto& [kind, table] : kernels())
    for (const Entry& entry : entries_of(op, {kind, 0})) names.push_back(entry.backend);
  return names;
}

bool has_kernel(const Op& op, const TargetInfo& target, std::span<const DType> operands) {
  return !entries_of(op, target.device).empty() ||
         std::ranges::any_of(
             added_of(op),
             [&](const auto& item) { return item.device_kind == target.device.kind; }) ||
         std::ranges::any_of(backends_of(target.device), [&](const Backend* backend) {
           return backend->has_kernel && backend->has_kernel(op, target, operands);
         });
}

}  // namespace paddle
