#pragma once
// Reductions over any axes of a contiguous tensor. The order of the additions depends on the shape
// alone, never on the number of threads, nor on whether the elements lie in memory or are computed
// block by block in a group (group_reductions.h).

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/common/convert.h"
#include "kernels/reduce/reduce_simd.h"
#include "ops/kernel.h"

namespace paddle::cpu {

enum class ReduceForm : uint8_t { kPlain, kMean, kLogSumExp };

/// Which elements of a shape make up which result, and in which pieces they are folded. Kept and
/// reduced axes of the shape are told apart, neighbours of a kind merged. The innermost one is
/// either a run that is reduced, or results that are accumulated side by side, in strips. Where
/// there are few results, the reduced elements are cut into chunks, whose accumulators meet in
/// scratch.
class ReduceSchedule {
 public:
  /// The widest strip. Its accumulators stay in the caches, and memory is read in long pieces.
  static constexpr int64_t kStrip = 4096;

  /// `axes` count from 0; empty means all.
  ReduceSchedule(const Dims& shape, const std::vector<int64_t>& axes);

  /// A piece of work: the accumulators of `width` results from `first` on take the rows
  /// [begin, end) of the elements at `base`. A row is `width` elements side by side, or a run of
  /// `inner` elements; of a split run it is one element.
  struct Task {
    int64_t chunk, first, width, base, begin, end;
  };
  Task task(int64_t index) const;
  int64_t task_count() const { return outer * strips * chunks; }
  /// Where row `row` of a task begins, counted from its base.
  int64_t row_offset(int64_t row) const;
  /// Accumulators that a run uses; 1 at least, which holds the result.
  int64_t lanes(const ReduceLoops& loops) const {
    return std::clamp<int64_t>(inner, 1, loops.run_lanes);
  }

  struct Axis {
    int64_t size, stride;
  };
  std::vector<Axis> kept, reduced;  ///< without the innermost one, outermost first
  bool inner_kept = false;          ///< else runs are reduced
  bool split_run = false;           ///< chunks cut the only run of each result
  int64_t inner = 1;                ///< size of the innermost axis
  int64_t outer = 1, repeats = 1;   ///< products of the sizes in `kept` and `reduced`
  int64_t results = 1, count = 1;   ///< how many, and of how many elements each
  int64_t strips = 1, chunks = 1;
};

/// What a reduction does to the elements of a result.
class Reducer {
 public:
  Reducer(DType x, Reduction reduction, ReduceForm form, DType result_type);

  /// Writes n accumulators, which it may change, as the results from `first` on.
  void finish(std::byte* accumulators, int64_t first, int64_t n, int64_t count,
              std::byte* out) const;

  DType compute;  ///< the type that elements are folded in
  ReduceLoops loops;

 private:
  ReduceForm form_;
  ConvertFn store_;
  int64_t result_item_;
};

/// A call of an operation that folds elements one by one: over which axes (empty: all) and how.
struct ReduceCall {
  std::vector<int64_t> axes;
  Reduction reduction = Reduction::kSum;
  ReduceForm form = ReduceForm::kPlain;
};
/// None for other operations than those of the kernel `reduce`.
std::optional<ReduceCall> reduce_call(const Op& op, const Attrs& attrs, size_t rank);

/// The result is contiguous, with or without the axes.
std::unique_ptr<Kernel> reduce(const Layout& x, const ReduceCall& call, DType result_type);

}  // namespace paddle::cpu
