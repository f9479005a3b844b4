#pragma once
// Scalar operands of optimizer updates, for whole parameters and for rows.

#include <limits>
#include <string_view>

#include "kernels/common/convert.h"
#include "ops/core/kernel.h"

namespace paddle::cpu {

/// A 0-D operand by name, which may be absent.
class ScalarOperand {
 public:
  ScalarOperand(const KernelRequest& request, std::string_view name) {
    const int index = request.op.operand_index(name);
    if (index < 0 || !request.operands[static_cast<size_t>(index)].present) return;
    at_ = static_cast<size_t>(index);
    read_ = convert_fn(request.operands[at_].dtype, DType::kF64);
  }
  double read(void* const* operands, double otherwise = 0) const {
    double number = otherwise;
    if (read_) read_(operands[at_], 1, &number, 1);
    return number;
  }

 private:
  size_t at_ = 0;
  ConvertFn read_ = nullptr;
};

/// The limit that gradients are clipped to, infinity for none.
inline double gradient_bound(const KernelRequest& request) {
  const AttrValue& bound = request.attrs[static_cast<size_t>(request.op.attr_index("bound"))];
  return bound.is_none() ? std::numeric_limits<double>::infinity() : bound.as_double();
}

}  // namespace paddle::cpu
