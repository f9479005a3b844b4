#include "kernels/conv/onednn_descriptors.h"

#include <string_view>

namespace paddle::onednn {
namespace {

/// Workaround for a oneDNN 2.6 bug: with at least this many outputs of a row in right padding,
/// `brgconv` may read past the right edge and add what lies there (the next row, or foreign memory)
/// to an output. Seen where it computes 2n - 1 outputs at a time, n of them padded, for n >= 4.
constexpr int64_t kUnsafeOutputs = 3;

bool reads_out_of_bounds(const std::string_view implementation, int64_t right_padded_outputs) {
  return right_padded_outputs >= kUnsafeOutputs && implementation.starts_with("brgconv");
}

}  // namespace

dnnl::convolution_forward::primitive_desc ConvDescriptors::select_implementation(
    const dnnl::convolution_forward::desc& desc, const dnnl::primitive_attr& attributes) const {
  dnnl::convolution_forward::primitive_desc description(desc, attributes, cpu_engine(), true);
  while (description && reads_out_of_bounds(description.impl_info_str(), right_padded_outputs))
    if (!description.next_impl()) return {};
  return description;
}

dnnl::memory::desc stack_descs(const dnnl::memory::desc& one, int64_t count) {
  dnnl::memory::desc all = one;
  dnnl_memory_desc_t& m = all.data;
  dnnl_blocking_desc_t& blocks = m.format_desc.blocking;
  const auto shift = [&](dnnl_dims_t& dims, int64_t first) {
    std::copy_backward(dims, dims + m.ndims, dims + m.ndims + 1);
    dims[0] = first;
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
