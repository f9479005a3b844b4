#include "autograd/precision_override.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

namespace paddle::autograd {
namespace {

using Classes = std::unordered_map<const Op*, PrecisionClass>;

/// The last one is current; earlier ones are kept for those that read them.
std::atomic<const Classes*> current = nullptr;

}  // namespace

void override_precision(const PrecisionOverrides& changes) {
  if (changes.empty()) return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const Classes* const before = current.load();
  auto after = before ? std::make_unique<Classes>(*before) : std::make_unique<Classes>();
  for (const auto& [op, precision] : changes)
    if (const auto [at, added] = after->emplace(op, precision); !added && at->second != precision)
      fail(ErrorCode::kConfig, "precision: '", op->name(),
           "' is already in the other list, by another plug-in");
  current.store(after.release());
}

std::optional<PrecisionClass> overridden_precision(const Op& op) {
  const Classes* const classes = current.load(std::memory_order_acquire);
  if (!classes) return std::nullopt;
  const auto at = classes->find(&op);
  return at == classes->end() ? std::nullopt : std::optional(at->second);
}

}  // namespace paddle::autograd
