#pragma once
// The passes of the compiled mode. Each transforms a function in place and keeps its types,
// symbolic dims included. Generic passes query traits of operations; pattern passes name their
// operations. compiler/pipeline.h lists them in the order in which they run.

#include <functional>
#include <vector>

#include "compiler/passes/rules/rule.h"
#include "ir/module.h"
#include "ops/core/fused.h"

namespace paddle::passes {

/// Computes an operation on constants. The runtime provides it, since passes have no kernels.
using Evaluate = std::function<std::vector<Array>(const Op& op, const Attrs& attrs,
                                                  const std::vector<const Array*>& operands,
                                                  const std::vector<TensorType>& results)>;

// --- queries ---

/// True if the operation, or one in its regions, has a side effect.
bool has_effect(const ir::Operation& operation);
/// True if a dim is known only after an operation has run.
bool has_run_time_size(const TensorType& type);

// --- lower/ ---

/// Makes `target` that of the function, and decomposes operations without a kernel there, where
/// they can be decomposed.
void for_target(ir::Function& function, const TargetInfo& target);

// --- canonicalize/ ---

/// Removes operations without side effects whose results are unused (DCE).
void remove_dead_code(ir::Function& function);
/// Removes operations that return their operand unchanged (a cast to the same type, a reshape to
/// the same shape, a copy), and casts to a wider float type before operands that kernels convert
/// while reading.
void canonicalize(ir::Function& function);
/// Merges operations that compute the same from the same operands (CSE). Random operations differ
/// by their stream and are kept apart.
void merge_common_subexpressions(ir::Function& function);
/// Replaces operations on constants by their value, up to `max_elements` per result.
void fold_constants(ir::Function& function, const Evaluate& evaluate, int64_t max_elements = 4096);
/// Replaces a sum of zero-padded slices, which is how the gradients of all slices of a tensor are
/// accumulated, by their concatenation.
void merge_slice_grads(ir::Function& function);
/// Folds batch normalization with constant statistics into the constant weight and bias of the
/// convolution before it, if nothing else reads that convolution. A constant for each channel that
/// is added to a convolution becomes its bias.
void fold_batch_norm(ir::Function& function);

// --- rules/ ---

/// Rules by the operation that is the root of their pattern.
using RulesOfRoot = std::function<std::vector<const Rule*>(const Op& root)>;
/// Replaces matches of rewrite rules (rules/rule.h) where the result type stays the same; `rules`
/// take precedence over `more`, which is called once for each operation of the function that may
/// be a root, and earlier rules over later ones. kConfig if the rules do not terminate.
void apply_rules(ir::Function& function, const std::vector<Rule>& rules,
                 const RulesOfRoot& more = {});

// --- layout/ ---

/// Layout assignment: moves convolutions with enough channels for the function's target
/// (TargetInfo::images) to channels last (NHWC, NDHWC), with
/// the elementwise operations, reductions and layout-transparent operations around them, and
/// inserts transposes where the layouts meet.
void assign_layouts(ir::Function& function);

// --- fusion/ ---

/// Decomposes operations into parts that fuse with their neighbors, where the schema has such a
/// decomposition.
void decompose_for_fusion(ir::Function& function);
/// True if the kernel of an operation can also compute this (ops/core/fused.h).
using FusesAround = std::function<bool(const ir::Operation& operation, Around around)>;
/// Groups operations with the casts around them, and with the concat of their results, as far as
/// their kernels can compute these.
void fuse_conversions(ir::Function& function, const FusesAround& fuses_around);
/// True if a fusion group can contain this elementwise operation or reduction.
using CanFuse = std::function<bool(const ir::Operation& operation)>;
/// Groups elementwise operations that feed each other, the reductions of their results, and the
/// product that they read, into `fused` operations, within the limits of the function's target.
void fuse_elementwise(ir::Function& function, const CanFuse& can_fuse,
                      const FusesAround& fuses_around);
/// True if the kernel of `group`, an operation and the epilogue fused so far, can also compute
/// `next`, which reads the group's result.
using CanFuseEpilogue =
    std::function<bool(const std::vector<const ir::Operation*>& group, const ir::Operation& next)>;
/// Groups convolutions and matrix products with their epilogues into `fused` operations.
void fuse_epilogues(ir::Function& function, const CanFuseEpilogue& can_fuse_epilogue);
/// Groups products of one x with several packed weights, and an RMS norm that only they read.
void fuse_packed_linears(ir::Function& function);

// --- quantization/ ---

/// The integer kernels of the target.
struct Int8Kernels {
  /// True if a kernel multiplies 8-bit values of type `x` by the int8 constant `weight`; null if
  /// the target has no integer kernels.
  std::function<bool(DType x, const Array& weight)> multiplies;
  bool matmul = false;  ///< there is one for two activations (quantized_matmul)
  bool packed = false;  ///< there is a fast one for packed weights (packed_linear)
  explicit operator bool() const { return multiplies != nullptr; }
};
/// QDQ lowering: replaces convolutions and matrix products between dequantize and quantize
/// operations by integer ones, as far as the target has kernels. Decomposes quantized operations
/// without a kernel, and dequantizes constants that are still read as floats.
void lower_qdq(ir::Function& function, const Int8Kernels& kernels, const Evaluate& evaluate);
/// Replaces 8-bit quantize operations at the top level whose values follow from constants by these
/// values, however large: weights of models that were trained with quantization.
void fold_quantize(ir::Function& function, const Evaluate& evaluate);

// --- schedule/ ---

/// Moves optimizer updates, and reductions of a tensor to a scalar, to right after the last of
/// their operands, so that gradients are consumed while they are in the cache and freed early.
void schedule_updates_early(ir::Function& function);

}  // namespace paddle::passes
