#pragma once
// Passes: each takes a function and changes it in place. They ask traits, never names, and keep
// types (symbolic dims included) as they are.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/passes/rule.h"
#include "ir/module.h"

namespace paddle::passes {

/// Computes an operation on constants; given by the runtime, because passes hold no kernels.
using Evaluate = std::function<std::vector<Array>(const Op& op, const Attrs& attrs,
                                                  const std::vector<const Array*>& operands,
                                                  const std::vector<TensorType>& results)>;

/// True if the operation, or one in its regions, has an effect.
bool has_effect(const ir::Operation& operation);

/// True for sizes that operations make while they run.
bool has_run_time_size(const TensorType& type);

/// Removes operations without effect whose results nobody uses.
void remove_dead_code(ir::Function& function);
/// Drops copies, casts, reshapes and the like that change nothing, and casts to a wider float type
/// before operands that kernels widen themselves.
void remove_identities(ir::Function& function);
/// Merges operations that compute the same from the same operands. Random operations differ by
/// their stream and stay apart.
void merge_common_subexpressions(ir::Function& function);
/// Replaces operations on constants by their value, up to `max_elements` per result.
void fold_constants(ir::Function& function, const Evaluate& evaluate, int64_t max_elements = 4096);

/// Sums of tensors that are zero but for one part each, which are what comes back from the slices
/// of a tensor, become those parts joined.
void join_slices(ir::Function& function);

/// Puts the replacements of rules (compiler/passes/rule.h) in the place of operations that look
/// like their patterns, where the types stay the same; earlier rules first. kConfig if rules go on
/// without end.
void rewrite(ir::Function& function, const std::vector<Rule>& rules,
             const std::vector<Rule>& more = {});

/// Where an operation prefers it, images and volumes and what is computed from them element by
/// element, reduced or along named axes move to channels last; transposes stand where the layouts
/// meet.
void prefer_channels_last(ir::Function& function);
/// Puts operations that say how into forms that fusion can join with their neighbours.
void lower(ir::Function& function);

/// True if a kernel can compute this elementwise operation as part of a group.
using CanFuse = std::function<bool(const ir::Operation& operation)>;
/// Gathers elementwise operations that feed each other into `fused` operations.
void fuse_elementwise(ir::Function& function, const CanFuse& can_fuse);

/// Moves optimizer updates, and what makes one number of a tensor, up to where all they need is
/// there.
void consume_early(ir::Function& function);

/// Puts batch normalisation by constant statistics into the constant weight and bias of the
/// convolution that alone feeds it.
void fold_batch_norm(ir::Function& function);

/// True if a kernel multiplies integers of type `x` with the int8 constant `weight`.
using TakesIntegers = std::function<bool(DType x, const Array& weight)>;
/// Convolutions and products of integers that stand for numbers are computed on the integers, with
/// what follows them, where `takes_integers` (null: nowhere) says so; quantized operations that no
/// kernel takes become what they are made of. Constants are brought to numbers where they are
/// needed so.
void compute_on_integers(ir::Function& function, const TakesIntegers& takes_integers,
                         const Evaluate& evaluate);

/// True if a kernel that computes `group`, an operation and what is done to its result, can take
/// `next` along, which reads that result.
using TakesAlong =
    std::function<bool(const std::vector<const ir::Operation*>& group, const ir::Operation& next)>;
/// Gathers convolutions and products with what follows them into `fused` operations.
void fuse_epilogues(ir::Function& function, const TakesAlong& takes_along);

/// A pass by name, as `--passes` and `--dump-ir` call it.
struct Pass {
  std::string name;
  std::function<void(ir::Function&)> run;
};
/// What passes ask the runtime, and which of them run.
struct PassOptions {
  Evaluate evaluate;
  CanFuse can_fuse;              ///< null: nothing is fused
  TakesAlong takes_along;        ///< null: nothing joins convolutions and products
  TakesIntegers takes_integers;  ///< null: integers that stand for numbers are computed as numbers
  bool fusion = true;            ///< off: for comparison, and for modules that are saved
  /// Sums may be taken in another order, in another layout.
  bool layout = true;
  bool rewrites = true;
  /// Rules beside the standard ones, tried before them.
  std::vector<Rule> rules = {};
};
/// The passes of the compiled mode, in order.
std::vector<Pass> standard_passes(PassOptions options);
std::vector<std::string> pass_names();
/// Told of a function as it is traced ("trace") and after each pass, by the pass's name.
using Observer = std::function<void(const ir::Function& function, const std::string& stage)>;
/// Runs the passes of the compiled mode. kInternal, with the pass's name, if one fails.
void run_standard(ir::Function& function, PassOptions options, const Observer& observe = nullptr);

}  // namespace paddle::passes
