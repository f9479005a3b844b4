#pragma once
// Fusion groups: operations that one kernel computes in one pass over memory. They are elementwise
// operations with reductions of their results, or one operation with a kernel of its own, such as
// a matrix product or a normalization, with what follows it or the casts around it. Passes form the
// groups and the runtime asks the backends for a kernel; if all of them decline, the operations run
// one by one.

#include "ops/core/kernel.h"

namespace paddle {

/// One operation of a group.
struct FusedStep {
  const Op* op = nullptr;
  Attrs attrs;
  /// Values are indexed: the group's operands first, then the results of each step; -1 for an
  /// absent operand.
  std::vector<int> inputs;
  DType result = DType::kF32;  ///< of the first result
  /// Of all results, contiguous; empty for one result in the shape of an elementwise group.
  std::vector<Layout> results = {};
};

struct FusedRequest {
  std::vector<FusedStep> steps;
  Dims shape;  ///< of the results of all steps but reductions, in groups of elementwise operations
  /// Of any strides; each broadcasts to `shape`.
  std::vector<Layout> operands;
  /// Contiguous, of `shape` or reduced from it.
  std::vector<Layout> results;
  std::vector<int> result_values;  ///< by result: the index of its value
  TargetInfo target = {};
  PrepareOptions prepare = {};
};

/// Returns null to decline.
using PrepareFusedFn = std::unique_ptr<Kernel> (*)(const FusedRequest& request);

/// A kernel of the target for the group; null if all backends decline. An elementwise result may
/// share the memory of a contiguous operand of its shape and dtype.
std::unique_ptr<Kernel> prepare_fused(const FusedRequest& request);

/// One operation of a group that starts with a convolution or matrix product.
struct FusionMember {
  const Op* op;
  const Attrs* attrs;
};
/// True if the backend's kernel for `group` can also compute `next`, an operation on its result.
using CanFuseEpilogueFn = bool (*)(const TargetInfo& target, std::span<const FusionMember> group,
                                   const FusionMember& next, DType dtype);
bool can_fuse_epilogue(const TargetInfo& target, std::span<const FusionMember> group,
                       const FusionMember& next, DType dtype);

/// Operations that some kernels compute with their own, in a group with it.
enum class Around : uint8_t {
  kCasts,        ///< reads operands, and stores results, that are cast from and to 16-bit floats
  kConcat,       ///< stores its results where a concat of them has them
  kElementwise,  ///< computes elementwise operations on its result, and sums of their columns
};
using FusesAroundFn = bool (*)(const Op& op, std::span<const DType> operands, Around around);
/// True if a backend of the target has such a kernel of the operation for operands of these types.
bool fuses_around(const TargetInfo& target, const Op& op, std::span<const DType> operands,
                  Around around);

/// True if a fusion group on the target can contain this elementwise operation or reduction, for
/// operands of these types and this rank.
bool can_fuse(const TargetInfo& target, const Op& op, const Attrs& attrs, size_t rank,
              std::span<const DType> operands, DType result);

}  // namespace paddle
