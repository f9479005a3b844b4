// Rules of debug.yaml.

#include "ops/generated/debug.h"
#include "ops/generated/debug_rules.h"

namespace paddle::rules {

Tensors vjp_print(VjpContext& c) {
  const auto a = c.attrs_as<PrintAttrs>();
  if (a.print_phase == "forward") return {c.cotangent()};
  const std::string message = a.message.value_or("");
  return {ops::print(c.cotangent(), a.first_n,
                     message.empty() ? "gradient" : message + ", gradient", a.summarize,
                     a.print_tensor_name, a.print_tensor_type, a.print_tensor_shape,
                     a.print_tensor_layout, a.print_tensor_lod, "forward", a.place)};
}

}  // namespace paddle::rules
