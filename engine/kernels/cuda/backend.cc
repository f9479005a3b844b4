// The backend `cuda`: which kernels there are.

#include <map>
#include <mutex>

#include "kernels/cuda/alignment.h"
#include "kernels/cuda/channels.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/conversions.h"
#include "kernels/cuda/convolution.h"
#include "kernels/cuda/copies.h"
#include "kernels/cuda/count.h"
#include "kernels/cuda/create.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/edges.h"
#include "kernels/cuda/group.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/library_dnn.h"
#include "kernels/cuda/library_product.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/pool.h"
#include "kernels/cuda/product_group.h"
#include "kernels/cuda/recurrent.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/run_time_sizes.h"
#include "kernels/cuda/sequences.h"
#include "kernels/cuda/sort.h"
#include "kernels/cuda/tables.h"
#include "ops/core/backend.h"

namespace paddle::cuda {
namespace {

/// Kernels of operations that are neither elementwise nor copies nor reductions.
const std::map<std::string_view, PrepareFn>& kernel_table() {
  static const std::map<std::string_view, PrepareFn> table = {
      {"adagrad_update", prepare_update},
      {"adam_update", prepare_update},
      {"all_finite", prepare_all_finite},
      {"arange", prepare_arange},
      {"as_complex", prepare_view_dtype},
      {"as_real", prepare_view_dtype},
      {"argmax", prepare_arg_extremum},
      {"argmin", prepare_arg_extremum},
      {"attention", prepare_attention},
      {"attention_grad", prepare_attention_grad},
      {"avg_pool2d", prepare_average_pool},
      {"avg_pool2d_grad", prepare_average_pool_grad},
      {"batch_norm", prepare_batch_norm},
      {"batch_norm_grad", prepare_batch_norm_grad},
      {"batch_norm_grad_statistics", prepare_batch_norm_grad},
      {"batch_norm_statistics", prepare_batch_norm},
      {"bincount", prepare_bincount},
      {"concat", prepare_concat},
      {"concat_ranges", prepare_ragged_rows},
      {"conv2d", prepare_conv},
      {"conv2d_input_grad", prepare_conv_input_grad},
      {"conv2d_weight_grad", prepare_conv_weight_grad},
      {"conv3d", prepare_conv},
      {"ctc_alignment", prepare_ctc_alignment},
      {"ctc_occupancy", prepare_ctc_occupancy},
      {"cummax", prepare_running_extremum},
      {"cummin", prepare_running_extremum},
      {"cumprod", prepare_running_fold},
      {"cumsum", prepare_running_fold},
      {"dim_value", prepare_dim_value},
      {"dropout_mask", prepare_random},
      {"embedding", prepare_embedding},
      {"embedding_grad", prepare_embedding_grad},
      {"expert_order", prepare_expert_order},
      {"expert_rows", prepare_expert_rows},
      {"expert_sum", prepare_expert_sum},
      {"full", prepare_full},
      {"gather_along", prepare_gather_along},
      {"gather_nd", prepare_gather_nd},
      {"gather_tree", prepare_gather_tree},
      {"gaussian", prepare_random},
      {"graph_dot", prepare_graph_dot},
      {"graph_gather", prepare_graph_gather},
      {"graph_reduce", prepare_graph_reduce},
      {"histogram", prepare_histogram},
      {"index_add", prepare_index_add},
      {"index_select", prepare_index_select},
      {"layer_norm", prepare_layer_norm},
      {"layer_norm_grad", prepare_layer_norm_grad},
      {"linear", prepare_linear},
      {"linspace", prepare_linspace},
      {"log_softmax", prepare_softmax},
      {"logcumsumexp", prepare_logcumsumexp},
      {"logsumexp", prepare_logsumexp},
      {"masked_select", prepare_masked_select},
      {"matmul", prepare_matmul},
      {"max_pool2d", prepare_max_pool},
      {"max_pool2d_grad", prepare_max_pool_grad},
      {"max_pool2d_take", prepare_max_pool_take},
      {"mode", prepare_mode},
      {"momentum_update", prepare_update},
      {"nonzero_rows", prepare_nonzero_rows},
      {"one_hot", prepare_one_hot},
      {"overlap_frames", prepare_overlap_frames},
      {"pad", prepare_pad},
      {"randint", prepare_random},
      {"recurrent_scan", prepare_recurrent_scan},
      {"recurrent_scan_grad", prepare_recurrent_scan_grad},
      {"rms_norm", prepare_rms_norm},
      {"rmsprop_update", prepare_update},
      {"rnnt_alignment", prepare_rnnt_alignment},
      {"rnnt_occupancy", prepare_rnnt_occupancy},
      {"run_time_sizes", prepare_run_time_sizes},
      {"scatter_along", prepare_scatter_along},
      {"scatter_nd_add", prepare_scatter_nd},
      {"scatter_nd_put", prepare_scatter_nd},
      {"searchsorted", prepare_searchsorted},
      {"segment_pool", prepare_segment_pool},
      {"segment_reduce", prepare_segment_reduce},
      {"sequence_rows", prepare_ragged_rows},
      {"sgd_update", prepare_update},
      {"softmax", prepare_softmax},
      {"softmax_cross_entropy", prepare_softmax_cross_entropy},
      {"softmax_cross_entropy_grad", prepare_softmax_cross_entropy_grad},
      {"sort_pairs", prepare_sort_pairs},
      {"sparse_linear_index", prepare_sparse_linear_index},
      {"strided_slice_scatter", prepare_strided_slice_scatter},
      {"sum_of_squares", prepare_sum_of_squares},
      {"uniform", prepare_random},
      {"unique", prepare_unique},
      {"unique_consecutive", prepare_unique},
      {"view_dtype", prepare_view_dtype},
  };
  return table;
}

std::unique_ptr<Kernel> prepare(const KernelRequest& request) {
  const auto it = kernel_table().find(request.op.name());
  if (it != kernel_table().end()) return it->second(request);
  return can_group(request.op) ? prepare_single(request) : nullptr;
}

/// Groups hold operations that the CPU has loops for.
bool has_cuda_kernel(const Op& op, const TargetInfo&, std::span<const DType>) {
  return kernel_table().contains(op.name()) || (can_group(op) && has_kernel(op));
}

/// The kernels of rows take any float types, those of attention any strides of results.
bool fuses_around_kernel(const Op& op, std::span<const DType> operands, Around around) {
  const std::string_view name = op.name();
  if (around == Around::kElementwise) return begins_product_group(op, operands);
  if (around == Around::kConcat) return name == "attention_grad";
  return name == "layer_norm" || name == "layer_norm_grad" || name == "rms_norm" ||
         name == "softmax" || name == "log_softmax" || name == "softmax_cross_entropy" ||
         name == "softmax_cross_entropy_grad";
}

std::unique_ptr<Kernel> prepare_any_group(const FusedRequest& request) {
  if (auto kernel = prepare_group(request)) return kernel;
  if (auto kernel = prepare_product_group(request)) return kernel;
  return prepare_conversions(request, prepare);
}

void describe(TargetInfo& target) {
  constexpr int64_t kAlignment = 256;  // of what the driver allocates
  target.architecture = gpu(target.device.index).architecture();
  target.alignment = kAlignment;
}

}  // namespace

void register_device() {
  static std::once_flag once;
  std::call_once(once, [] {
    const int16_t kind = register_device_kind(device_functions());
    register_backend({.name = "cuda",
                      .device_kind = kind,
                      .prepare = prepare,
                      .has_kernel = has_cuda_kernel,
                      .prepare_fused = prepare_any_group,
                      .fuses_around = fuses_around_kernel,
                      .describe = describe});
    // Asked before our own kernels.
    register_backend({.name = "cublaslt",
                      .device_kind = kind,
                      .prepare = prepare_library_product,
                      .has_kernel = has_library_product,
                      .prepare_fused = prepare_library_product_group});
    register_backend({.name = "cudnn",
                      .device_kind = kind,
                      .prepare = prepare_dnn,
                      .has_kernel = has_dnn_kernel,
                      .prepare_fused = prepare_dnn_group});
  });
}

}  // namespace paddle::cuda
