#include "ops/core/cost.h"

namespace paddle {
double element_product(const Dims& dims) {
  double n = 1;
  for (const int64_t d : dims) n *= static_cast<double>(d);
  return n;
}

double call_flops(const Op& op, const Attrs& attrs, const std::vector<Dims>& operands,
                  const std::vector<Dims>& results) {
  if (op.def->cost) return op.def->cost(attrs, operands, results);
  if (op.def->view) return 0;
  double flops = 0;
  for (const Dims& r : results) flops += element_product(r);
  return flops;
}

}  // namespace paddle
