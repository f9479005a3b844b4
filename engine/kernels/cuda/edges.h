#pragma once
// Rows along the edges of graphs, by segments, and of experts.

#include "ops/core/kernel.h"

namespace paddle::cuda {

std::unique_ptr<Kernel> prepare_graph_gather(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_graph_reduce(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_graph_dot(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_segment_reduce(const KernelRequest& request);
/// Waits for the largest id.
std::unique_ptr<Kernel> prepare_segment_pool(const KernelRequest& request);

std::unique_ptr<Kernel> prepare_expert_order(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_expert_rows(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_expert_sum(const KernelRequest& request);

}  // namespace paddle::cuda
