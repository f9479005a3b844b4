#include "runtime/host_fallback.h"

#include <atomic>
#include <mutex>

#include "paddle/plugin/device.h"

namespace paddle::runtime {
namespace {

std::atomic<bool> allowed{true};

struct Counts {
  std::mutex mutex;
  std::map<std::string, int64_t> by_operation;
};

Counts& counts() {
  static Counts all;
  return all;
}

class HostFallback final : public Kernel {
 public:
  HostFallback(std::unique_ptr<Kernel> kernel, const KernelRequest& request)
      : kernel_(std::move(kernel)), op_(request.op), device_(request.target.device) {
    for (const Layout& operand : request.operands)
      operands_.push_back(operand.present && kernel_->reads(operands_.size()) ? window_of(operand)
                                                                              : Window());
    for (const Layout& result : request.results)
      results_.push_back(result.present ? Array::empty(result.dtype, result.shape) : Array());
    if (kernel_->scratch_bytes() > 0) scratch_ = Storage::allocate(kernel_->scratch_bytes());
  }

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    count_host_fallback(op_, device_);
    const paddle_device_api& api = device_api(device_);
    const auto bytes = [](const Array& array) {
      return static_cast<size_t>(storage_bytes(array.dtype, array.size()));
    };
    std::vector<void*> in(operands_.size()), out(results_.size());
    for (size_t i = 0; i < in.size(); ++i) {
      const Window& window = operands_[i];
      if (!window.memory) continue;
      in[i] = window.memory->data() - window.begin;
      if (window.memory->bytes() > 0)
        check_device(device_, api.copy(context.stream, window.memory->data(),
                                       static_cast<const std::byte*>(operands[i]) + window.begin,
                                       window.memory->bytes(), PADDLE_COPY_TO_HOST));
    }
    check_device(device_, api.synchronize_stream(context.stream));
    for (size_t i = 0; i < out.size(); ++i)
      if (results_[i].storage) out[i] = results_[i].raw();
    RunContext host;
    host.collectives = context.collectives;
    if (scratch_) host.scratch = scratch_->data();
    kernel_->run(host, in.data(), out.data());
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i] && bytes(results_[i]) > 0)
        check_device(device_, api.copy(context.stream, results[i], out[i], bytes(results_[i]),
                                       PADDLE_COPY_TO_DEVICE));
    // The next run overwrites the host's copies.
    check_device(device_, api.synchronize_stream(context.stream));
  }
  bool capturable() const override { return false; }
  std::string implementation() const override { return kOnHost + kernel_->implementation(); }

 private:
  /// The host's copy of the bytes between the first and the last element of an operand, which may
  /// have any strides.
  struct Window {
    std::shared_ptr<Storage> memory;
    int64_t begin = 0;  ///< in bytes from the operand's address
  };
  static Window window_of(const Layout& layout) {
    int64_t lowest = 0, highest = 0;
    for (size_t d = 0; d < layout.shape.size(); ++d) {
      const int64_t reach = (layout.shape[d] - 1) * layout.strides[d];
      (reach < 0 ? lowest : highest) += reach;
    }
    if (layout.size() == 0) return {Storage::allocate(0), 0};
    const auto bytes = static_cast<size_t>(storage_bytes(layout.dtype, highest - lowest + 1));
    return {Storage::allocate(bytes), lowest * item_size(layout.dtype)};
  }

  std::unique_ptr<Kernel> kernel_;
  const Op& op_;
  Device device_;
  std::vector<Window> operands_;
  std::vector<Array> results_;
  std::shared_ptr<Storage> scratch_;
};

}  // namespace

void check_host_fallback(const Op& op, Device device) {
  if (!allowed)
    fail(ErrorCode::kDevice, op.name(), ": the device ", device.text(),
         " has no kernel, and running it on the host is rejected");
}

void count_host_fallback(const Op& op, Device device) {
  check_host_fallback(op, device);
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  ++all.by_operation[std::string(op.name())];
}

std::map<std::string, int64_t> host_fallbacks() {
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  return all.by_operation;
}

void allow_host_fallback(bool allow) { allowed = allow; }

std::unique_ptr<Kernel> prepare_host_fallback(const KernelRequest& request) {
  KernelRequest on_host = request;
  on_host.target.device = Device::cpu();
  auto kernel = prepare_kernel(on_host);
  if (!kernel) return nullptr;
  check_host_fallback(request.op, request.target.device);
  return std::make_unique<HostFallback>(std::move(kernel), request);
}

}  // namespace paddle::runtime
