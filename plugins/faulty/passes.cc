// The pass of plugins/fold_scales, and rewrite rules, with a fault: what `paddle plugin check` has
// to find (faults.txt).

#include "example.h"

#include "../fold_scales/fold_scales.cc"

#pragma pop_macro("PADDLE_PLUGIN")

namespace {

std::optional<std::string> faulty_fold(std::string_view module) {
  static int calls = 0;
  if (fault_is("other_text") && ++calls % 2 == 0) return std::nullopt;
  std::optional<std::string> out = fold_scales(module);
  if (fault_is("wrong_value") && out)
    if (const size_t at = out->find(" = multiply("); at != std::string::npos)
      out->replace(at, 12, " = subtract(");
  return out;
}

}  // namespace

PADDLE_PLUGIN(faulty, "1.0.0", plugin) {
  plugin.pass("fold", PADDLE_STAGE_CANONICALIZE,
              PADDLE_PASS_TRAINING | (fault_is("other_bits") ? PADDLE_PASS_KEEPS_BITS : 0),
              faulty_fold);
  plugin.rewrite_rules(fault_is("wrong_rule") ? "root: sqrt(multiply(x, x)) -> relu(x)"
                                              : "root: sqrt(multiply(x, x)) -> abs(x)");
}
