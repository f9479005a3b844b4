#pragma once
// A kernel of a plug-in (paddle/plugin/kernel.h) as one of the engine.

#include <deque>
#include <string>
#include <vector>

#include "ops/core/kernel.h"
#include "ops/core/operand_types.h"
#include "paddle/plugin/kernel.h"
#include "plugin/host.h"

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

/// An operation as a plug-in sees it: layouts, whose unknown sizes are -1, and attributes.
class OperationRequest {
 public:
  OperationRequest(const Op& op, Attrs attrs, std::span<const Layout> operands,
                   std::span<const Layout> results);
  OperationRequest(const OperationRequest&) = delete;
  OperationRequest& operator=(const OperationRequest&) = delete;
  const paddle_request* get() const { return &request_; }

 private:
  Attrs attrs_;
  LayoutViews operands_, results_;
  RequestData data_;
  paddle_request request_{};
};
/// The contiguous layout of a type, whose unknown sizes, and the strides that depend on them, are
/// -1.
Layout layout_of_type(const TensorType& type);

/// The kernel of an instance that a plug-in has filled in. `plugin` and `subject`, which it
/// computes, are for messages and outlive it.
std::unique_ptr<Kernel> kernel_of_instance(const std::string& plugin, const std::string& subject,
                                           const paddle_instance& instance, size_t operands,
                                           size_t results);

}  // namespace paddle::plugin
