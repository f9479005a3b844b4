#pragma once
// Gathers, scatters, positions of extrema and running sums.

#include "ops/core/kernel.h"

namespace paddle::cuda {

std::unique_ptr<Kernel> prepare_gather_along(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_index_select(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_gather_nd(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_scatter_along(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_index_add(const KernelRequest& request);
/// scatter_nd_add and scatter_nd_put.
std::unique_ptr<Kernel> prepare_scatter_nd(const KernelRequest& request);
/// Row-major places of coordinates [axes, count].
std::unique_ptr<Kernel> prepare_sparse_linear_index(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_one_hot(const KernelRequest& request);
/// argmax and argmin.
std::unique_ptr<Kernel> prepare_arg_extremum(const KernelRequest& request);
/// cumsum and cumprod.
std::unique_ptr<Kernel> prepare_running_fold(const KernelRequest& request);
/// cummax and cummin.
std::unique_ptr<Kernel> prepare_running_extremum(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_logcumsumexp(const KernelRequest& request);

/// Places and values of selected elements; the kernels wait for their number.
std::unique_ptr<Kernel> prepare_nonzero_rows(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_masked_select(const KernelRequest& request);

}  // namespace paddle::cuda
