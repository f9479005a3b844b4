#include "kernels/cuda/sorted.h"

#include "kernels/cuda/prepare.h"
#include "kernels/cuda/sort.h"
#include "kernels/cuda/waiting.h"
#include "paddle/plugin/device.h"

namespace paddle::cuda {

size_t Scratch::add(int64_t bytes) {
  const size_t at = bytes_;
  bytes_ += scratch_piece(static_cast<size_t>(bytes));
  return at;
}

Sorted::Sorted(const KernelRequest& request, DType type, const Dims& shape, int64_t axis,
               Scratch& scratch) {
  const Op& op = get_op("sort_pairs");
  Attrs attrs;
  attrs.values = op.defaults;
  attrs[static_cast<size_t>(op.attr_index("axis"))] = AttrValue(axis);
  const Layout values = Layout::contiguous(type, shape);
  const Layout results[] = {values, Layout::contiguous(DType::kI64, shape)};
  sort_ = prepare_sort_pairs({.op = op,
                              .attrs = attrs,
                              .operands = std::span(&values, 1),
                              .results = results,
                              .target = request.target,
                              .prepare = request.prepare});
  if (!sort_) return;
  values_ = scratch.add(values.size() * item_size(type));
  order_ = scratch.add(values.size() * 8);
  scratch_ = scratch.add(static_cast<int64_t>(sort_->scratch_bytes()));
}

Sorted::Places Sorted::run(const RunContext& context, const void* x) const {
  RunContext inner = context;
  inner.scratch = context.scratch + scratch_;
  void* operands[] = {const_cast<void*>(x)};
  void* results[] = {context.scratch + values_, context.scratch + order_};
  sort_->run(inner, operands, results);
  return {results[0], results[1]};
}

void read_back(const RunContext& context, Device device, void* to, const void* from, size_t bytes) {
  const auto& api = device_api(device);
  check_device(device, api.copy(context.stream, to, from, bytes, PADDLE_COPY_TO_HOST));
  check_device(device, api.synchronize_stream(context.stream));
}

}  // namespace paddle::cuda
