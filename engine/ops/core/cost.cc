#include "ops/core/cost.h"

#include "ops/generated/rules.h"

namespace paddle {
namespace {

double count(const Dims& dims) {
  double n = 1;
  for (const int64_t d : dims) n *= static_cast<double>(d);
  return n;
}

}  // namespace

double call_flops(const Op& op, const Attrs& attrs, const std::vector<Dims>& operands,
                  const std::vector<Dims>& results) {
  if (op.def->cost) return op.def->cost(attrs, operands, results);
  if (op.def->view) return 0;
  double flops = 0;
  for (const Dims& r : results) flops += count(r);
  return flops;
}

namespace rules {

double cost_matmul(const Attrs& attrs, const std::vector<Dims>& operands,
                   const std::vector<Dims>& results) {
  const Dims& x = operands[0];
  const bool transposed = attrs[0].as_bool() && x.size() > 1;
  const int64_t inner = transposed ? x[x.size() - 2] : x.back();
  return 2 * count(results[0]) * static_cast<double>(inner);
}

double cost_linear(const Attrs&, const std::vector<Dims>& operands,
                   const std::vector<Dims>& results) {
  return 2 * count(results[0]) * static_cast<double>(operands[0].back());
}

namespace {
/// Output elements times the products that each one sums.
double convolution(const Dims& output, const Dims& weight) {
  return 2 * count(output) * count(weight) / static_cast<double>(std::max<int64_t>(1, weight[0]));
}
}  // namespace

double cost_conv(const Attrs&, const std::vector<Dims>& operands,
                 const std::vector<Dims>& results) {
  return convolution(results[0], operands[1]);
}

double cost_conv_input_grad(const Attrs&, const std::vector<Dims>& operands,
                            const std::vector<Dims>&) {
  return convolution(operands[1], operands[0]);
}

double cost_conv_weight_grad(const Attrs&, const std::vector<Dims>& operands,
                             const std::vector<Dims>& results) {
  return convolution(operands[1], results[0]);
}

/// Two products of [queries, dim] and [keys, dim]; a causal limit is not taken off, as elsewhere.
double cost_attention(const Attrs&, const std::vector<Dims>& operands, const std::vector<Dims>&) {
  const Dims &q = operands[0], &k = operands[1], &v = operands[2];
  return 2 * count({q[0], q[2], q[1], k[1]}) * static_cast<double>(q[3] + v[3]);
}

double cost_attention_grad(const Attrs&, const std::vector<Dims>& operands,
                           const std::vector<Dims>&) {
  const Dims &q = operands[1], &k = operands[2], &v = operands[3];
  return 2 * count({q[0], q[2], q[1], k[1]}) * static_cast<double>(2 * q[3] + 2 * v[3]);
}

/// The hidden states' products with the weight; the inputs' share comes in as gates.
double cost_recurrent_scan(const Attrs&, const std::vector<Dims>& operands,
                           const std::vector<Dims>&) {
  return 2 * count(operands[0]) * static_cast<double>(operands[1].back());
}

double cost_recurrent_scan_grad(const Attrs&, const std::vector<Dims>& operands,
                                const std::vector<Dims>&) {
  return 2 * count(operands[3]) * static_cast<double>(operands[4].back());
}

}  // namespace rules
}  // namespace paddle
