#pragma once
// Kernels that look up rows of tables by index, optimizer updates, random tensors, and attention.

#include "ops/core/kernel.h"

namespace paddle::cuda {

std::unique_ptr<Kernel> prepare_embedding(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_embedding_grad(const KernelRequest& request);

/// sgd, momentum, adam, adagrad and rmsprop.
std::unique_ptr<Kernel> prepare_update(const KernelRequest& request);

/// uniform, gaussian, randint, bernoulli and dropout_mask.
std::unique_ptr<Kernel> prepare_random(const KernelRequest& request);

std::unique_ptr<Kernel> prepare_attention(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_attention_grad(const KernelRequest& request);

}  // namespace paddle::cuda
