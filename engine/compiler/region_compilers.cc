#include "compiler/region_compilers.h"

#include "base/log.h"

namespace paddle::compiler {
namespace {

using ir::Operation;

const Op& region_op() {
  static const Op& op = get_op("plugin.region");
  return op;
}

std::string compiler_of(const Operation& operation) {
  return operation.attrs[static_cast<size_t>(operation.op->attr_index("compiler"))].as_string();
}

/// A kernel that several plans use.
class SharedKernel final : public Kernel {
 public:
  explicit SharedKernel(std::shared_ptr<const Kernel> kernel) : kernel_(std::move(kernel)) {}
  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    kernel_->run(context, operands, results);
  }
  size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  bool reads(size_t i) const override { return kernel_->reads(i); }
  bool capturable() const override { return kernel_->capturable(); }
  std::string implementation() const override { return kernel_->implementation(); }

 private:
  std::shared_ptr<const Kernel> kernel_;
};

}  // namespace

Registry<RegionCompiler>& region_compilers() {
  static Registry<RegionCompiler> compilers("compiler", {});
  return compilers;
}

bool is_claimed(const Operation& operation) { return operation.op == &region_op(); }

std::unique_ptr<Kernel> compile_region(const RegionRequest& request) {
  if (request.operation.kernel) return std::make_unique<SharedKernel>(request.operation.kernel);
  const std::string name = compiler_of(request.operation);
  const auto compiler = region_compilers().find(name);
  if (!compiler || compiler->device_kind != request.device.kind) return nullptr;
  try {
    return compiler->compile(request);
  } catch (const Error& e) {
    log(LogLevel::kWarning,
        str(name, " does not compile a region, which runs on the engine's kernels: ", e.what()));
    return nullptr;
  }
}

}  // namespace paddle::compiler
