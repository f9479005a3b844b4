// The operations that oneDNN computes. Their kernels are asked before our own and decline what
// oneDNN cannot compute or computes more slowly; convolutions choose among several algorithms
// (kernels/conv/conv.cc).

#include <utility>

#include "kernels/onednn/program.h"
#include "ops/core/kernel.h"

namespace paddle::onednn {

std::unique_ptr<Kernel> prepare_avg_pool2d(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_avg_pool2d_grad(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_batch_norm(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_batch_norm_grad(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_conv2d(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_conv2d_input_grad(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_conv2d_weight_grad(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_conv3d(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_layer_norm(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_layer_norm_grad(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_linear(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_matmul(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_quantized_conv(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_quantized_linear(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_quantized_matmul(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_recurrent_scan(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_recurrent_scan_grad(const KernelRequest& request);

namespace {

/// Declines what oneDNN fails to make, such as kernels for more elements than their 32-bit offsets
/// reach.
template <auto kPrepare>
std::unique_ptr<Kernel> prepare_or_decline(const KernelRequest& request) {
  try {
    return kPrepare(request);
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

}  // namespace

void register_kernels() {
  constexpr std::pair<const char*, PrepareFn> kKernels[] = {
      {"avg_pool2d", prepare_or_decline<prepare_avg_pool2d>},
      {"avg_pool2d_grad", prepare_or_decline<prepare_avg_pool2d_grad>},
      {"batch_norm", prepare_or_decline<prepare_batch_norm>},
      {"batch_norm_grad", prepare_or_decline<prepare_batch_norm_grad>},
      {"conv2d", prepare_or_decline<prepare_conv2d>},
      {"conv2d_input_grad", prepare_or_decline<prepare_conv2d_input_grad>},
      {"conv2d_weight_grad", prepare_or_decline<prepare_conv2d_weight_grad>},
      {"conv3d", prepare_or_decline<prepare_conv3d>},
      {"layer_norm", prepare_or_decline<prepare_layer_norm>},
      {"layer_norm_grad", prepare_or_decline<prepare_layer_norm_grad>},
      {"linear", prepare_or_decline<prepare_linear>},
      {"matmul", prepare_or_decline<prepare_matmul>},
      {"quantized_conv", prepare_or_decline<prepare_quantized_conv>},
      {"quantized_linear", prepare_or_decline<prepare_quantized_linear>},
      {"quantized_matmul", prepare_or_decline<prepare_quantized_matmul>},
      {"recurrent_scan", prepare_or_decline<prepare_recurrent_scan>},
      {"recurrent_scan_grad", prepare_or_decline<prepare_recurrent_scan_grad>},
  };
  for (const auto& [op, prepare] : kKernels) register_kernel(op, "onednn", prepare);
}

}  // namespace paddle::onednn
