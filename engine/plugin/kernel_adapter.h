#pragma once
// A kernel of a plug-in (paddle/plugin/kernel.h) as one of the engine.

#include <deque>
#include <string>
#include <vector>

#include "ops/core/kernel.h"
#include "ops/core/operand_types.h"
#include "paddle/plugin/kernel.h"

namespace paddle::plugin {

/// The target of AddedKernel::context.
struct KernelContext {
  std::string plugin;     ///< "acme 1.0.0"
  std::string operation;  ///< "acme.twice"
  std::string backend;
  DTypeSet dtypes = 0;  ///< of the first operand
  const paddle_kernel* kernel = nullptr;
};

std::unique_ptr<Kernel> prepare_plugin_kernel(const KernelRequest& request, const void* context);

/// Layouts as views of C, which live as long as this.
class LayoutViews {
 public:
  explicit LayoutViews(std::span<const Layout> layouts);
  LayoutViews(const LayoutViews&) = delete;
  LayoutViews& operator=(const LayoutViews&) = delete;
  const paddle_view* const* data() const { return pointers_.data(); }
  const paddle_view* at(size_t i) const { return pointers_[i]; }

 private:
  std::vector<Layout> layouts_;
  std::deque<paddle_view> views_;
  std::vector<const paddle_view*> pointers_;
};

/// The kernel of an instance that a plug-in has filled in. `plugin` and `subject`, which it
/// computes, are for messages and outlive it.
std::unique_ptr<Kernel> kernel_of_instance(const std::string& plugin, const std::string& subject,
                                           const paddle_instance& instance, size_t operands,
                                           size_t results);

}  // namespace paddle::plugin
