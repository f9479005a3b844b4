#include "runtime/decomposed.h"

#include <algorithm>
#include <cstring>

#include "ops/core/call.h"
#include "paddle/plugin/device.h"
#include "runtime/execute.h"
#include "runtime/host_fallback.h"

namespace paddle::runtime {
namespace {

class DecomposedKernel final : public Kernel {
 public:
  explicit DecomposedKernel(const KernelRequest& request)
      : op_(request.op),
        attrs_(request.attrs),
        operands_(request.operands.begin(), request.operands.end()),
        results_(request.results.begin(), request.results.end()),
        target_(request.target),
        prepare_(request.prepare) {
    for (const Layout& result : results_) types_.push_back({result.dtype, to_shape(result.shape)});
  }

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    if (!target_.device.is_cpu())
      check_device(target_.device, device_api(target_.device).synchronize_stream(context.stream));
    std::vector<Array> arrays(operands_.size());
    std::vector<const Array*> pointers(operands_.size());
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (!operands_[i].present) continue;
      arrays[i] = view_of(operands_[i], operands[i]);
      pointers[i] = &arrays[i];
    }
    std::vector<Array> out =
        execute_decomposition(op_, attrs_, pointers, types_, target_, prepare_);
    // A result may have the place of an operand that another one is a view of.
    for (Array& result : out)
      for (const Array& operand : arrays)
        if (operand.storage && result.storage == operand.storage) {
          result = copied(result);
          break;
        }
    for (size_t i = 0; i < out.size(); ++i)
      if (results[i]) store(packed(out[i]), results[i]);
    if (!target_.device.is_cpu()) synchronize(target_.device);
  }
  bool capturable() const override { return false; }
  std::string implementation() const override { return "decomposition"; }

 private:
  Array view_of(const Layout& layout, void* data) const {
    Array out;
    out.dtype = layout.dtype;
    out.shape = layout.shape;
    out.strides = layout.strides;
    int64_t elements = layout.size() > 0 ? 1 : 0;
    for (size_t d = 0; elements > 0 && d < layout.shape.size(); ++d)
      elements += std::max<int64_t>(0, layout.strides[d]) * (layout.shape[d] - 1);
    out.storage = Storage::borrow(data, static_cast<size_t>(storage_bytes(layout.dtype, elements)),
                                  nullptr, target_.device);
    return out;
  }
  void store(const Array& from, void* to) const {
    const auto bytes = static_cast<size_t>(storage_bytes(from.dtype, from.size()));
    if (bytes == 0) return;
    if (target_.device.is_cpu()) {
      std::memcpy(to, from.raw(), bytes);
      return;
    }
    check_device(target_.device, device_api(target_.device)
                                     .copy(compute_stream(target_.device), to, from.address(),
                                           bytes, PADDLE_COPY_ON_DEVICE));
  }

  const Op& op_;
  Attrs attrs_;
  std::vector<Layout> operands_, results_;
  std::vector<TensorType> types_;
  TargetInfo target_;
  PrepareOptions prepare_;
};

}  // namespace

std::vector<Array> execute_decomposition(const Op& op, const Attrs& attrs,
                                         const std::vector<const Array*>& operands,
                                         const std::vector<TensorType>& types,
                                         const TargetInfo& target, const PrepareOptions& prepare) {
  Tensors tensors;
  for (const Array* operand : operands) tensors.push_back(operand ? Tensor(*operand) : Tensor());
  EagerExecutor eager(target, prepare);
  const InterpreterScope scope(eager);
  std::vector<Array> out;
  for (const Tensor& result : decompose({op, tensors, attrs, types, {}}))
    out.push_back(result.array());
  return out;
}

std::unique_ptr<Kernel> prepare_decomposition(const KernelRequest& request) {
  if (!request.op.def->decompose) return nullptr;
  return std::make_unique<DecomposedKernel>(request);
}

}  // namespace paddle::runtime
