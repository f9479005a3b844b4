// The backend of mirror: the kernels of the CPU, queued on a stream.

#include <algorithm>
#include <mutex>

#include "base/source_location.h"
#include "kernels/mirror/address.h"
#include "kernels/mirror/mirror.h"
#include "ops/core/backend.h"

namespace paddle::mirror {
namespace {

std::vector<std::string>& missing() {
  static std::vector<std::string> operations;
  return operations;
}

bool is_missing(const Op& op) { return std::ranges::count(missing(), op.name()) > 0; }

/// Hands out device memory to a kernel that runs on the host.
class HostAddresses final : public ResultAllocator {
 public:
  explicit HostAddresses(ResultAllocator& allocator) : allocator_(allocator) {}
  void* allocate(size_t index, const Dims& shape) override {
    return to_host_address(allocator_.allocate(index, shape));
  }

 private:
  ResultAllocator& allocator_;
};

class MirrorKernel final : public Kernel {
 public:
  /// `waits`: for other ranks, so the kernel must not keep a stream that they may share.
  MirrorKernel(std::unique_ptr<Kernel> kernel, size_t operands, size_t results, bool waits)
      : kernel_(std::move(kernel)), operands_(operands), results_(results), waits_(waits) {}

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    ensure(context.stream != nullptr, "mirror: a kernel without a stream");
    // Pointers may change before the stream gets here.
    std::vector<void*> in(operands_), out(results_);
    for (size_t i = 0; i < operands_; ++i)
      if (kernel_->reads(i)) in[i] = to_host_address(operands[i]);
    for (size_t i = 0; i < results_; ++i) out[i] = to_host_address(results[i]);
    std::string location =
        context.location ? parse_source_location(*context.location).text() : std::string();
    auto work = [kernel = kernel_, in = std::move(in), out = std::move(out),
                 scratch = to_host_address(context.scratch), allocator = context.allocator,
                 collectives = context.collectives] {
      RunContext inner;
      inner.collectives = collectives;
      inner.scratch = static_cast<std::byte*>(scratch);
      std::optional<HostAddresses> addresses;
      if (allocator) inner.allocator = &addresses.emplace(*allocator);
      kernel->run(inner, in.data(), out.data());
    };
    if (waits_) {
      launch_and_wait(context.stream, [] {}, {});
      work();
    } else if (context.allocator) {
      launch_and_wait(context.stream, std::move(work), std::move(location));
    } else {
      launch(context.stream, std::move(work), std::move(location));
    }
  }
  size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  bool reads(size_t i) const override { return kernel_->reads(i); }
  bool capturable() const override { return !waits_ && kernel_->capturable(); }
  std::string implementation() const override { return "mirror:" + kernel_->implementation(); }

 private:
  std::shared_ptr<const Kernel> kernel_;  ///< queued work may outlive this object
  size_t operands_, results_;
  bool waits_;
};

std::unique_ptr<Kernel> on_mirror(std::unique_ptr<Kernel> kernel, size_t operands, size_t results,
                                  bool waits = false) {
  if (!kernel) return nullptr;
  return std::make_unique<MirrorKernel>(std::move(kernel), operands, results, waits);
}

std::unique_ptr<Kernel> prepare(const KernelRequest& request) {
  if (is_missing(request.op)) return nullptr;
  KernelRequest on_cpu = request;
  on_cpu.target.device = Device::cpu();
  return on_mirror(prepare_kernel(on_cpu), request.operands.size(), request.results.size(),
                   request.op.has(kAccessesRanks));
}

std::unique_ptr<Kernel> prepare_group(const FusedRequest& request) {
  for (const FusedStep& step : request.steps)
    if (is_missing(*step.op)) return nullptr;
  FusedRequest on_cpu = request;
  on_cpu.target.device = Device::cpu();
  return on_mirror(prepare_fused(on_cpu), request.operands.size(), request.results.size());
}

/// The kernels are those of the CPU.
TargetInfo cpu_of(const TargetInfo& target) {
  TargetInfo out = target;
  out.device = Device::cpu();
  return out;
}

bool has_mirror_kernel(const Op& op, const TargetInfo& target, std::span<const DType> operands) {
  return !is_missing(op) && has_kernel(op, cpu_of(target), operands);
}

bool can_fuse_on_mirror(const TargetInfo& target, std::span<const FusionMember> group,
                        const FusionMember& next, DType dtype) {
  return !is_missing(*next.op) && can_fuse_epilogue(cpu_of(target), group, next, dtype);
}

bool has_int8(const TargetInfo& target, DType x, const Array& weight) {
  return has_int8_kernel(cpu_of(target), x, weight);
}
bool has_int8_product(const TargetInfo& target, DType x, DType y) {
  return has_int8_matmul(cpu_of(target), x, y);
}

void describe(TargetInfo& target) {
  const Device device = target.device;
  target = resolved(cpu_of(target));
  target.device = device;
}

}  // namespace

void register_device() {
  static std::once_flag once;
  std::call_once(once, [] {
    const int16_t kind = register_device_kind(device_functions());
    register_backend({.name = "mirror",
                      .device_kind = kind,
                      .prepare = prepare,
                      .has_kernel = has_mirror_kernel,
                      .prepare_fused = prepare_group,
                      .can_fuse_epilogue = can_fuse_on_mirror,
                      .has_int8_kernel = has_int8,
                      .has_int8_matmul = has_int8_product,
                      .describe = describe});
  });
}

void set_missing_kernels(std::vector<std::string> operations) { missing() = std::move(operations); }

}  // namespace paddle::mirror
