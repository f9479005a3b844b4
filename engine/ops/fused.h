#pragma once
// Groups of operations that run in one pass over memory: elementwise ones and reductions of what
// they give, or a convolution or matrix product with what is done to its result. A pass forms the
// groups, the runtime asks a backend for a kernel that computes a whole group; a backend that can't
// declines, and the operations run one by one.

#include "ops/kernel.h"

namespace paddle {

/// One operation of a group.
struct FusedStep {
  const Op* op = nullptr;
  Attrs attrs;
  /// Values are numbered: the group's operands first, then each step's result; -1 for an absent
  /// operand.
  std::vector<int> inputs;
  DType result = DType::kF32;
};

struct FusedRequest {
  std::vector<FusedStep> steps;
  Dims shape;  ///< of what all steps but reductions give
  /// Of any strides; each broadcasts to the shape.
  std::vector<Layout> operands;
  /// Contiguous, of the shape or what reductions make of it.
  std::vector<Layout> results;
  std::vector<int> result_values;  ///< per result: the value that it takes
  bool compile = false;            ///< machine code may be generated for it
  ExecutionPolicy policy = {};
};

/// Returns null to decline.
using PrepareFusedFn = std::unique_ptr<Kernel> (*)(const FusedRequest& request);

void register_fused(PrepareFusedFn prepare);
/// A kernel for the group. A result that is not reduced may share the memory of an operand that has
/// its type, its shape and contiguous layout. Null if no backend computes the group as one.
std::unique_ptr<Kernel> prepare_fused(const FusedRequest& request);
/// One operation of a group that begins with a convolution or product.
struct GroupMember {
  const Op* op;
  const Attrs* attrs;
};
/// True if a backend's kernel for `group` can compute `next`, on the group's result, along with it.
using TakesAlongFn = bool (*)(std::span<const GroupMember> group, const GroupMember& next,
                              DType dtype);
void register_takes_along(TakesAlongFn takes_along);
bool takes_along(std::span<const GroupMember> group, const GroupMember& next, DType dtype);

/// True if an elementwise operation or reduction of these types, on tensors of this rank, can be
/// part of a group.
bool can_fuse(const Op& op, const Attrs& attrs, size_t rank, std::span<const DType> operands,
              DType result);

}  // namespace paddle
