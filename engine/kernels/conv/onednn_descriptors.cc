#include "kernels/conv/onednn_descriptors.h"

#include <string_view>

namespace paddle::onednn {
namespace {

/// From so many results of a row on whose window ends beyond the right edge, the code `brgconv` of
/// oneDNN 2.6 may sum what lies there in memory (the next row, or no part of the image) into one of
/// them: seen where it computes 2n - 1 results at a time, n of them of that kind, n from 4 on.
constexpr int64_t kMisread = 3;

bool misreads(const std::string_view implementation, int64_t beyond) {
  return beyond >= kMisread && implementation.starts_with("brgconv");
}

}  // namespace

dnnl::convolution_forward::primitive_desc ConvGeometry::describe(
    const dnnl::convolution_forward::desc& wanted, const dnnl::primitive_attr& attributes) const {
  dnnl::convolution_forward::primitive_desc description(wanted, attributes, cpu_engine(), true);
  while (description && misreads(description.impl_info_str(), beyond))
    if (!description.next_impl()) return {};
  return description;
}

dnnl::memory::desc stacked(const dnnl::memory::desc& one, int64_t count) {
  dnnl::memory::desc all = one;
  dnnl_memory_desc_t& m = all.data;
  dnnl_blocking_desc_t& blocks = m.format_desc.blocking;
  const auto shift = [&](dnnl_dims_t& numbers, int64_t first) {
    std::copy_backward(numbers, numbers + m.ndims, numbers + m.ndims + 1);
    numbers[0] = first;
  };
  const auto item = static_cast<int64_t>(sizeof(float));
  shift(blocks.strides, static_cast<int64_t>(one.get_size()) / item);
  shift(m.dims, count);
  shift(m.padded_dims, count);
  shift(m.padded_offsets, 0);
  for (int i = 0; i < blocks.inner_nblks; ++i) ++blocks.inner_idxs[i];
  ++m.ndims;
  return all;
}

}  // namespace paddle::onednn
