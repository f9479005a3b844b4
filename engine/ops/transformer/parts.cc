#include "ops/transformer/parts.h"

#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/sequence.h"
#include "ops/generated/transformer.h"

namespace paddle::rules {

Tensor optional(CallContext& c, const char* name) {
  return c.operand(static_cast<size_t>(c.op().operand_index(name)));
}

Tensor quantized_result(std::string_view op, const Tensor& x, double quant_scale,
                        const Int8Rounding& rounding) {
  return quant_scale > 0 ? rounded_to_int8(op, x, quant_scale, rounding) : x;
}

Tensor activation(std::string_view op, const std::string& name, const Tensor& x) {
  if (name == "relu") return ops::relu(x);
  if (name == "gelu") return ops::gelu(x);
  if (name == "silu" || name == "swish") return ops::silu(x);
  if (name == "sigmoid") return ops::sigmoid(x);
  if (name == "tanh") return ops::tanh(x);
  if (name == "identity" || name == "linear" || name.empty()) return x;
  if (name == "swiglu") return ops::swiglu(x);
  if (name == "geglu") {
    const Dim width = x.dim(-1);
    const Dim half = floor_divide(width, 2);
    return ops::gelu(slice_axis(x, -1, 0, half)) * slice_axis(x, -1, half, width);
  }
  reject(op,
         "activation: expected one of relu, gelu, silu, sigmoid, tanh, identity, swiglu, geglu, "
         "found '",
         name, "'");
}

Tensor normalized(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon) {
  Tensor y = ops::layer_norm(x, AttrValue(AttrValue::List{AttrValue(x.dim(-1))}), weight, Tensor(),
                             epsilon);
  return bias.defined() ? y + bias : y;
}

Tensor plus(const Tensor& x, const Tensor& bias) { return bias.defined() ? x + bias : x; }

Tensor turned(const Tensor& x, const Tensor& cos, const Tensor& sin, bool adjacent) {
  return ops::rotary_embedding(x, ops::cast(cos, x.dtype()), ops::cast(sin, x.dtype()), adjacent);
}

}  // namespace paddle::rules
