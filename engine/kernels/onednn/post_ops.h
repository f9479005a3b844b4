#pragma once
// Epilogues as oneDNN post-ops. Only for .cc files of kernels/: it exposes oneDNN types.

#include "kernels/epilogue.h"
#include "kernels/onednn/program.h"

namespace paddle::onednn {

using cpu::Epilogue;
using cpu::OperandIndices;

/// An activation as oneDNN's eltwise algorithm with its parameters.
struct EltwisePostOp {
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  float alpha = 0, beta = 0;
  explicit operator bool() const { return algorithm != dnnl::algorithm::undef; }
};
/// Empty for operations that oneDNN has no post-op for.
EltwisePostOp eltwise_post_op(const Op& op, const Attrs& attrs);

/// Attributes of a primitive that computes the whole result.
dnnl::primitive_attr post_ops(const Epilogue& epilogue);
/// Attributes of one of several primitives that accumulate into the result: whether it adds to what
/// is there, and whether it is the last one, which applies the activation.
dnnl::primitive_attr post_ops(const Epilogue& epilogue, bool accumulate, bool last);

/// Appends a copy of the residual to the result, where oneDNN's sum post-op expects it. Call it
/// before adding the primitive.
void add_residual_copy(Program& program, const Epilogue& epilogue, const Layout& result);

}  // namespace paddle::onednn
