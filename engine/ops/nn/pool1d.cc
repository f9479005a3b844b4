// Rules of pool.yaml: 1-D pooling, in terms of the 2-D operations.

#include "ops/generated/nn.h"
#include "ops/generated/nn_rules.h"
#include "ops/generated/shape.h"
#include "ops/nn/channels.h"
#include "ops/nn/window.h"

namespace paddle::rules {

Tensors decompose_max_pool1d(CallContext& c) {
  const auto a = c.attrs_as<MaxPool1dAttrs>();
  const Tensor& x = c.operand(0);
  check_rank("max_pool1d", x, 3);
  const int64_t kernel = window_sizes(a.kernel_size, 1, "max_pool1d: kernel_size")[0];
  const int64_t stride =
      a.stride.is_none() ? kernel : window_sizes(a.stride, 1, "max_pool1d: stride")[0];
  const Tensors pooled =
      ops::max_pool2d(ops::unsqueeze(x, {2}), pair_of(1, kernel), pair_of(1, stride),
                      line_padding(max_pool_padding(a.padding, a.return_mask), x, 2, kernel, stride,
                                   1, false, "max_pool1d"),
                      true, a.ceil_mode);
  Tensors out = {ops::squeeze(pooled[0], Axes{2})};
  if (a.return_mask) out.push_back(ops::squeeze(pooled[1], Axes{2}));
  return out;
}

Tensors decompose_avg_pool1d(CallContext& c) {
  const auto a = c.attrs_as<AvgPool1dAttrs>();
  const Tensor& x = c.operand(0);
  check_rank("avg_pool1d", x, 3);
  const int64_t kernel = window_sizes(a.kernel_size, 1, "avg_pool1d: kernel_size")[0];
  const int64_t stride =
      a.stride.is_none() ? kernel : window_sizes(a.stride, 1, "avg_pool1d: stride")[0];
  const Tensor pooled =
      ops::avg_pool2d(ops::unsqueeze(x, {2}), pair_of(1, kernel), pair_of(1, stride),
                      line_padding(a.padding, x, 2, kernel, stride, 1, false, "avg_pool1d"),
                      a.ceil_mode, a.exclusive);
  return {ops::squeeze(pooled, Axes{2})};
}

}  // namespace paddle::rules
